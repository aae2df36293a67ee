"""The log of a run says what was not modelled."""

from __future__ import annotations

from oomdoctor.virtual.unmodelled import Read, Unmodelled, read_log


def test_calls_are_listed_once_by_what_became_of_them() -> None:
    log = "refused cudaOne\nignored cudaTwo\nrefused cudaOne\nassumed cufftPlan: 0 bytes\n"

    assert read_log(log) == Unmodelled(
        refused=("cudaOne",), ignored=("cudaTwo",), assumed=("cufftPlan: 0 bytes",)
    )


def test_the_last_count_of_each_process_counts() -> None:
    first = "read 10 1 a.py:1 in f\nread 10 2 a.py:1 in f\n"
    log = f"{first}read 11 1 a.py:1 in f\nread 10 5 b.py:2 in g\n"

    found = read_log(log)

    assert found.reads == (Read("a.py:1 in f", 3), Read("b.py:2 in g", 5))
    assert found.unknown_reads == 8


def test_what_every_static_runtime_asks_for_is_not_listed() -> None:
    assert read_log("missing cuGLInit\nmissing cuReally\n").missing == ("cuReally",)


def test_lines_that_are_cut_are_passed_over() -> None:
    assert read_log("refused\nread 10\nread 10 x here\nread 10 3\nnoise\n\n") == Unmodelled()


def test_a_run_without_gaps_has_nothing_to_say() -> None:
    assert list(Unmodelled().sentences()) == []


def test_each_kind_of_gap_is_a_sentence() -> None:
    reads = (Read("a.py:1 in f", 1), Read("b.py:2 in g", 2))
    said = list(Unmodelled(refused=("cudaOne",), reads=reads).sentences())

    assert said[0].endswith(": cudaOne")
    assert said[1].startswith("3 reads of values")
    assert said[1].endswith("(b.py:2 in g: 2; a.py:1 in f: 1)")


def test_of_many_lines_those_that_read_most_are_named() -> None:
    reads = tuple(Read(f"a.py:{line} in f", line) for line in range(1, 12))

    (said,) = Unmodelled(reads=reads).sentences()

    assert "a.py:11 in f: 11; a.py:10 in f: 10" in said
    assert said.endswith("and 3 more lines)")


def test_runs_that_are_alike_say_the_same_however_often_they_read() -> None:
    few, many = (
        Unmodelled(reads=(Read("a.py:1 in f", 1), Read("b.py:2 in g", times))) for times in (1, 9)
    )

    assert list(few.sentences(counts=False)) == list(many.sentences(counts=False))
    assert "(a.py:1 in f; b.py:2 in g)" in next(few.sentences(counts=False))
