"""The log of a run says what was not modelled."""

from __future__ import annotations

from oomdoctor.virtual.unmodelled import Unmodelled, read_log


def test_calls_are_listed_once_by_what_became_of_them() -> None:
    log = "refused cudaOne\nignored cudaTwo\nrefused cudaOne\nassumed cufftPlan: 0 bytes\n"

    assert read_log(log) == Unmodelled(
        refused=("cudaOne",), ignored=("cudaTwo",), assumed=("cufftPlan: 0 bytes",)
    )


def test_the_last_count_of_each_process_counts() -> None:
    log = "unknown-reads 10 1\nunknown-reads 10 2\nunknown-reads 11 1\nunknown-reads 10 5\n"

    assert read_log(log).unknown_reads == 6


def test_what_every_static_runtime_asks_for_is_not_listed() -> None:
    assert read_log("missing cuGLInit\nmissing cuReally\n").missing == ("cuReally",)


def test_lines_that_are_cut_are_passed_over() -> None:
    assert read_log("refused\nunknown-reads 10\nunknown-reads 10 x\nnoise\n\n") == Unmodelled()


def test_a_run_without_gaps_has_nothing_to_say() -> None:
    assert list(Unmodelled().sentences()) == []


def test_each_kind_of_gap_is_a_sentence() -> None:
    said = list(Unmodelled(refused=("cudaOne",), unknown_reads=3).sentences())

    assert said[0].endswith(": cudaOne")
    assert said[1].startswith("3 reads of values")
