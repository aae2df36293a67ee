"""Escapes, bars and prefixes go, ranks and writers are kept, unprefixed lines stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import read_source, source_of_text
from oomdoctor.model.core import LogLine
from tests.unit.evidence.documents import RAW, raw_text


def cleaned(text: str) -> list[LogLine]:
    return list(clean(source_of_text(text)).lines)


FRAME = '  File "a.py", line 3, in f'


@pytest.mark.parametrize(
    ("raw", "text", "rank", "stream", "stamp"),
    [
        (f"[rank3]: {FRAME}", FRAME, 3, "rank3", None),
        ("[rank0] text", "text", 0, "rank0", None),
        ("[Rank 1] Watchdog caught", "Watchdog caught", 1, "rank1", None),
        ("rank0: Traceback (most recent call last):", None, 0, "rank0", None),
        (f"[1,3]<stderr>:{FRAME}", FRAME, 3, "rank3", None),
        (f"[default5]:{FRAME}", FRAME, 5, "rank5", None),
        (f"(Actor pid=7, ip=10.0.0.1) {FRAME}", FRAME, None, "Actor pid=7", None),
        (f"(W rank=3 pid=10) ERROR [x.py:470] {FRAME}", FRAME, 3, "W rank=3 pid=10", None),
        (
            f"(Worker_TP2 pid=1) ERROR 01-02 10:00:00 [x.py:4] {FRAME}",
            FRAME,
            2,
            None,
            "01-02 10:00:00",
        ),
        (f"\x1b[36m(task pid=5)\x1b[0m {FRAME}", FRAME, None, "task pid=5", None),
        (f"[36m(task pid=5)[0m {FRAME}", FRAME, None, "task pid=5", None),
        ("INFO 12-01 10:00:00 [x.py:12] msg", "INFO [x.py:12] msg", None, "", "12-01 10:00:00"),
        ("INFO 12-01 10:00:00 x.py:12] msg", "INFO x.py:12] msg", None, "", "12-01 10:00:00"),
        ("E0101 10:00:00.000 12 f.cc:1] no", "E f.cc:1] no", None, "", "0101 10:00:00.000"),
        ("[rank0]:[W1203 10:00:00.12 P.cpp:2] x", "[W P.cpp:2] x", 0, "rank0", "1203 10:00:00.12"),
        ("2024-01-01 10:00:00,123 - root - INFO - x", "root - INFO - x", None, "", None),
        ("2024-01-01 10:00:00.1: E tf/x.cc:2] x", "E tf/x.cc:2] x", None, "", None),
        ("2024-01-02T10:00:00.12Z stderr F " + FRAME, FRAME, None, "", "2024-01-02T10:00:00.12Z"),
        ("2024-01-02T10:00:00.1234567Z " + FRAME, FRAME, None, "", None),
        ("Jan  2 10:00:00 node python[77]: x", "x", None, "python[77]", "Jan  2 10:00:00"),
        ("Jan  2 10:00:00 node kernel: [123.456789] x", "x", None, "", None),
        ("[12345.678901] Out of memory", "Out of memory", None, "", "12345.678901"),
        ("[Tue Jan  2 10:00:00 2024] x", "x", None, "", "Tue Jan  2 10:00:00 2024"),
        ("[10/01 10:10:10 d2.utils]: x", "[d2.utils]: x", None, "", "10/01 10:10:10"),
        (
            "[2024-01-01 10:00:00,123] [INFO] [l.py:4:h] Killing",
            "[INFO] [l.py:4:h] Killing",
            None,
            "",
            "2024-01-01 10:00:00,123",
        ),
        ("[2024-01-01 10:00:00,123] [ERROR] [x.py:1:f] " + FRAME, FRAME, None, "", None),
    ],
)
def test_a_prefix_is_taken_off(
    raw: str, text: str | None, rank: int | None, stream: str | None, stamp: str | None
) -> None:
    (line,) = cleaned(raw)

    assert line.text == (text or "Traceback (most recent call last):")
    assert line.rank == rank
    assert stream is None or line.stream == stream
    assert stamp is None or line.stamp == stamp
    assert line.raw == raw


@pytest.mark.parametrize(
    "text",
    [
        "2024/01/01 10:00:00.123, 0, 24000 MiB",
        "Wed Jan 10 09:00:00 2024       ",
        "node-a:5101:5301 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
        "INFO worker.py:266] model weights take 0.00GiB",
        "[ERROR] [launch.py:434:sigkill_handler] ['python'] exits with return code = -9",
        "[INFO] [axolotl.load_model:404] [PID:5470] [RANK:0] GPU memory usage",
        "Rank: 0 partition count [1] and sizes[(6049711186, False)]",
        "INFO:     Started server process [1]",
        "|    0   N/A  N/A   2695172      C   ./train.par                     26167MiB |",
        "Metric  | Cur Usage  | Peak Usage",
        "  6%|6         | 310/5200 [loss: 0.61]",
        "    arr[1m]",
        "    x = (pid, ip)",
        "torch.OutOfMemoryError: CUDA out of memory.",
    ],
)
def test_what_is_no_prefix_stays(text: str) -> None:
    (line,) = cleaned(text)

    assert line == LogLine(1, text, text)


@pytest.mark.parametrize("path", sorted((RAW / "tracebacks").glob("*.txt")), ids=lambda p: p.stem)
def test_an_unprefixed_traceback_passes_unchanged(path: object) -> None:
    text = raw_text("tracebacks", str(path).rpartition("/")[2]).rstrip("\n")
    if any(mark in text for mark in ("[rank", "ERROR", "[36m")):
        return

    assert [line.text for line in cleaned(text)] == text.split("\n")


NAMES = st.text("abcdefgh_", min_size=1, max_size=12)


@given(st.lists(st.tuples(NAMES, st.integers(1, 9999), NAMES, NAMES), min_size=1, max_size=6))
def test_any_plain_traceback_passes_unchanged(frames: list[tuple[str, int, str, str]]) -> None:
    lines = ["Traceback (most recent call last):"]
    for path, number, function, code in frames:
        lines += [f'  File "{path}.py", line {number}, in {function}', f"    {code}({path})"]
    lines.append("RuntimeError: CUDA out of memory.")

    assert [line.text for line in cleaned("\n".join(lines))] == lines


@given(st.text(max_size=300))
def test_cleaning_never_raises_and_keeps_line_numbers(text: str) -> None:
    lines = cleaned(text)

    assert [line.number for line in lines] == sorted(line.number for line in lines)


def test_a_bar_becomes_lines_of_one_number_and_lets_go_of_what_follows_it() -> None:
    document = clean(read_source(str(RAW / "logs" / "bars_crlf.txt")))

    assert [(line.number, line.text) for line in document.lines] == [
        (1, "Loading checkpoint shards:   0%|          | 0/2 [00:00<?, ?it/s]"),
        (1, "Loading checkpoint shards:  50%|█████     | 1/2 [00:07<00:07,  7.10s/it]"),
        (2, "  0%|          | 0/23 [00:00<?, ?it/s]"),
        (2, "  4%|▍         | 1/23 [00:01<00:29,  1.33s/it]"),
        (2, "Traceback (most recent call last):"),
        (3, '  File "a.py", line 1, in f'),
        (4, "    g()"),
    ]


def test_a_quote_of_a_cleaned_line_shows_where_it_stands_in_the_input() -> None:
    raw = "[rank1]: RuntimeError: CUDA out of memory."
    document = clean(source_of_text(raw))

    quote = document.quote(document.lines[0])

    assert raw[quote.column - 1 : (quote.end_column or 0) - 1] == quote.text
    assert quote.text == "RuntimeError: CUDA out of memory."


def test_numbered_tasks_are_ranks_only_where_nearly_all_lines_have_them() -> None:
    labelled = "\n".join(f"{n % 2}: line {n}" for n in range(10))

    assert {line.rank for line in cleaned(labelled)} == {0, 1}
    assert cleaned("3: one line alone")[0].text == "3: one line alone"


def test_node_and_service_names_are_writers_where_they_repeat() -> None:
    nodes = "\n".join(f"node-{n % 2}: text {n}" for n in range(10))
    services = "api-1  | started\napi-1  | Killed\napi-1 exited with code 137"

    assert {line.stream for line in cleaned(nodes)} == {"node-0", "node-1"}
    assert [line.text for line in cleaned(services)][:2] == ["started", "Killed"]
    assert cleaned("INFO: a\n" * 9)[0].text == "INFO: a"


def test_ranks_that_share_a_line_are_parted() -> None:
    lines = cleaned("[rank0]: one[rank1]: two")

    assert [(line.rank, line.text) for line in lines] == [(0, "one"), (1, "two")]


def test_the_message_of_a_json_record_is_unwrapped() -> None:
    record = r'{"log":"Traceback (most recent call last):\n","stream":"stderr","time":"t"}'

    assert cleaned(record)[0].text == "Traceback (most recent call last):"
    assert cleaned('{"log": 1}')[0].text == '{"log": 1}'


@pytest.mark.parametrize("mark", ["\x85", "\x9b", "\u2028", "\u2029", "\u200b", "\x00"])
def test_marks_that_nobody_sees_part_no_word(mark: str) -> None:
    lines = clean(source_of_text(f"CUDA out of mem{mark}ory")).lines

    assert [line.text for line in lines] == ["CUDA out of memory"]


def test_a_bracket_and_an_m_are_no_colour_where_a_word_is_in_brackets() -> None:
    assert cleaned("Error: [metal::malloc] no room")[0].text == "Error: [metal::malloc] no room"
    assert cleaned("[31mError[m: no room")[0].text == "Error: no room"
