"""Logs too large to hold answer as small ones do: the failure, its line number, its words."""

from __future__ import annotations

import gzip
import io
import os
import threading
from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import halves
from oomdoctor.evidence.blocks import BLOCK_BYTES, keep
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.sifter import KEPT_BYTES
from oomdoctor.evidence.source import Source, read_source
from tests.unit.evidence.large_logs import FAILING, FAILURE, ORDINARY, lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.evidence.blocks import Kept
    from oomdoctor.model.core import Failure

SMALL = 256 * 1024
COUNT = 12_000
FAILURE_LINES = FAILURE.count("\n") + 1


def read(data: bytes) -> Source:
    return read_source("-", stdin=io.BytesIO(data), whole_bytes=SMALL)


def gpu_failures(source: Source) -> list[Failure]:
    return [one for one in read_all(clean(source)).failures if one.kind == "gpu-oom"]


def said(failure: Failure) -> dict[str, object]:
    return {fact.key: fact.value for fact in failure.facts}


def log_with_failure(kind: str, share: float) -> tuple[bytes, int]:
    """Return a log with a failure at a share of its lines, and the number of the failing line."""
    lines = lines_of(kind, COUNT)
    at = int(share * COUNT)
    text = "\n".join([*lines[:at], FAILURE, *lines[at:]]) + "\n"
    return text.encode(), at + FAILURE_LINES


@pytest.mark.parametrize(
    ("kind", "share"),
    [*((kind, 0.5) for kind in ORDINARY), *(("trainer", one) for one in (0.0, 0.31, 0.77, 1.0))],
)
def test_the_only_failure_of_a_large_log_is_found_wherever_it_stands(
    kind: str, share: float
) -> None:
    data, number = log_with_failure(kind, share)

    source = read(data)
    (failure,) = gpu_failures(source)

    assert failure.order == number
    assert said(failure)["trace.code"] == "loss.backward()"
    assert (number, FAILING) in source.lines
    assert sum(len(text) for _, text in source.lines) < KEPT_BYTES


@pytest.mark.parametrize("kind", ORDINARY)
def test_lines_that_are_kept_carry_the_numbers_that_they_have_in_the_file(kind: str) -> None:
    data, _ = log_with_failure(kind, 0.6)
    lines = data.decode().split("\n")

    source = read(data)

    assert source.lines[0][0] == 1
    assert [text for number, text in source.lines if lines[number - 1] != text] == []
    assert source.lines[-1] == (len(lines) - 1, lines[-2])


@pytest.mark.parametrize("offset", [-60, -18, -8, -2, 0, 9])
def test_a_failure_on_the_border_of_two_chunks_is_found(offset: int) -> None:
    border = 3 * BLOCK_BYTES
    filler = b"step 1 loss 1.0\n" * (border // 16)
    start = border + offset
    data = filler[:start] + b"\n" + FAILING.encode() + b"\n" + filler * 2

    (failure,) = gpu_failures(read(data))

    assert failure.order == data[: start + 1].count(b"\n") + 1


@pytest.mark.parametrize("noise", ["killed workers: 0", "CUDA out of memory, retrying smaller"])
def test_a_hundred_thousand_signs_before_a_failure_do_not_hide_it(noise: str) -> None:
    many = [f"{noise} ({at})" for at in range(100_000)]
    quiet = lines_of("trainer", 30_000)
    text = "\n".join([*many, *quiet, FAILURE, *quiet])

    source = read(text.encode())

    number = len(many) + len(quiet) + FAILURE_LINES
    assert (number, FAILING) in source.lines
    assert number in [failure.order for failure in gpu_failures(source)]


def test_a_rare_sign_is_kept_among_many_of_another_kind() -> None:
    many = [f"CUDA out of memory, retrying smaller ({at})" for at in range(60_000)]
    killed = "Memory cgroup out of memory: Killed process 77 (python) total-vm:9kB, anon-rss:8kB"

    source = read("\n".join([*many, killed, *many]).encode())

    assert (60_001, killed) in source.lines


@pytest.mark.parametrize(
    "changed",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.removesuffix(b"\n"),
        lambda data: data.decode().encode("utf-16"),
        lambda data: gzip.compress(data, 1, mtime=0),
        lambda data: data + b"\x00" * 4096,
        lambda data: b"\xef\xbb\xbf" + data,
    ],
    ids=["crlf", "open end", "utf-16", "gzip", "nul", "bom"],
)
def test_a_large_log_may_come_in_any_form(changed: object) -> None:
    data, number = log_with_failure("torchtune", 0.5)
    assert callable(changed)

    (failure,) = gpu_failures(read(changed(data)))

    assert failure.order == number


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_progress_bar_of_many_megabytes_is_one_line_with_the_failure_in_it(share: float) -> None:
    lines = lines_of("bars", 50_000)
    at = int(share * len(lines))
    data = "first\n" + "\r".join([*lines[:at], FAILURE.replace("\n", "\r"), *lines[at:]])

    source = read(data.encode())

    (failure,) = gpu_failures(source)
    assert failure.order == 2
    assert said(failure)["trace.code"] == "loss.backward()"
    assert {number for number, _ in source.lines} == {1, 2}
    assert max(len(text.encode()) for _, text in source.lines) <= 64 * 1024


def test_a_bar_that_fits_is_parted_at_its_carriage_returns_and_nothing_is_cut() -> None:
    bars = lines_of("bars", 4_000)

    source = read(("\r".join(bars) + "\nend\n").encode())

    kept = "".join(text for number, text in source.lines if number == 1)
    assert kept == "\r".join(bars)
    assert source.lines[-1] == (2, "end")
    assert source.notes == ()


def halved(path: Path) -> Kept:
    with path.open("rb") as file:
        return halves.keep_halves(file.fileno(), size=path.stat().st_size)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # test runners have threads
@pytest.mark.parametrize("share", [0.0, 0.499, 0.5, 0.501, 1.0])
def test_two_processes_keep_what_one_keeps(tmp_path: Path, share: float) -> None:
    data, number = log_with_failure("deepspeed", share)
    path = tmp_path / "job.log"
    path.write_bytes(data)

    kept = halved(path)
    alone = keep([data], whole_bytes=SMALL)

    assert (kept.total_bytes, kept.total_lines) == (alone.total_bytes, alone.total_lines)
    for found in (kept, alone):
        numbered = {
            block.first_line + at: line
            for block in found.blocks
            for at, line in enumerate(block.data.split(b"\n")[: block.lines])
        }
        assert numbered[number] == FAILING.encode()
        assert {1, COUNT + FAILURE_LINES} <= set(numbered)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # test runners have threads
def test_the_parent_reads_all_where_no_process_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, number = log_with_failure("json", 0.8)
    path = tmp_path / "job.log"
    path.write_bytes(data)
    told: list[int] = []

    def refuse() -> int:
        raise OSError

    monkeypatch.setattr(os, "fork", refuse)
    with path.open("rb") as file:
        kept = halves.keep_halves(file.fileno(), size=len(data), progress=told.append)

    assert kept.total_bytes == len(data)
    assert any(FAILING.encode() in block.data for block in kept.blocks)
    assert number in range(kept.total_lines)
    assert sum(told) <= len(data) + 1


def test_a_program_with_threads_is_not_forked() -> None:
    wait = threading.Event()
    thread = threading.Thread(target=wait.wait)
    thread.start()
    try:
        assert not halves.may_halve()
    finally:
        wait.set()
        thread.join()


def test_progress_is_told_of_bytes_read_and_of_all(tmp_path: Path) -> None:
    data, _ = log_with_failure("trainer", 0.5)
    path = tmp_path / "job.log"
    path.write_bytes(data)
    told: list[tuple[int, int | None]] = []

    read_source(str(path), whole_bytes=SMALL, progress=lambda *one: told.append(one))

    assert told[-1] == (len(data), len(data))
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_fifo_is_read_as_a_stream(tmp_path: Path) -> None:
    data, number = log_with_failure("serving", 0.5)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()

    source = read_source(str(path), whole_bytes=SMALL)
    writer.join()

    assert [failure.order for failure in gpu_failures(source)] == [number]
