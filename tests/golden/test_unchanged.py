"""The same log in another dress gives the same answer: prefixes, stamps, line ends, cut, mixed."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text
from oomdoctor.pipeline import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.model.plan import Diagnosis

    Dress = Callable[[int, str], str]

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
NAMES = (
    "bare-message",
    "card24-cache-fragmented",
    "dataloader-bus-error",
    "evaluation-keeps-logits",
    "optimizer-first-step",
    "host-oom-kill",
)
START = datetime(2026, 11, 30, 8, 30, 45, 123000, tzinfo=timezone.utc)


def stamp(at: int, form: str) -> str:
    return (START + timedelta(milliseconds=37 * at)).strftime(form)


def docker(at: int, line: str) -> str:
    time = stamp(at, "%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": time})


DRESSES: dict[str, Dress] = {
    "torchrun": lambda _, line: f"[rank3]: {line}",
    "torchrun --tee": lambda _, line: f"[default3]:{line}",
    "srun -l": lambda _, line: f"3: {line}",
    "bare number": lambda _, line: f"[3] {line}",
    "pdsh": lambda _, line: f"node1: {line}",
    "vllm worker": lambda _, line: f"(Worker pid=3) {line}",
    "ray actor": lambda _, line: f"(TrainWorker pid=3, ip=10.0.0.7) {line}",
    "python logging": lambda at, line: f"[{stamp(at, '%Y-%m-%d %H:%M:%S')},123] {line}",
    "iso": lambda at, line: f"{stamp(at, '%Y-%m-%dT%H:%M:%SZ')} {line}",
    "kubernetes": lambda at, line: f"{stamp(at, '%Y-%m-%dT%H:%M:%S.%f')}789Z stderr F {line}",
    "docker": docker,
    "syslog": lambda at, line: f"Nov 30 {stamp(at, '%H:%M:%S')} gpu07 python[42]: {line}",
    "mpirun": lambda _, line: f"[1,3]<stderr>:{line}",
    "compose": lambda _, line: f"trainer-1  | {line}",
    "kubectl": lambda _, line: f"[pod/job-worker-3/main] {line}",
    "stamp and rank": lambda at, line: f"{stamp(at, '%Y-%m-%dT%H:%M:%S.%fZ')} [rank3]: {line}",
    "node and rank": lambda _, line: f"node1: [rank3]: {line}",
}
PASTED: dict[str, Dress] = {
    "mail": lambda _, line: f"> {line}",
    "margin": lambda _, line: f"    {line}",
    "cat -n": lambda at, line: f"{at + 1:6d}\t{line}",
    "grep -n": lambda at, line: f"{at + 7}:{line}",
    "ci": lambda at, line: f"fit\tRun it\t{stamp(at, '%Y-%m-%dT%H:%M:%S.%f')}7Z {line}",
    "rsyslog": lambda at, line: f"{stamp(at, '%Y-%m-%dT%H:%M:%S.%f')}+00:00 gpu07 fit[42]: {line}",
    "stamp and number": lambda at, line: f"[{stamp(at, '%Y-%m-%dT%H:%M:%S.%fZ')}] [3] {line}",
    "stern": lambda _, line: f"job-worker-3 main {line}",
    "node and stamp": lambda at, line: f"node-3 {stamp(at, '%Y-%m-%d %H:%M:%S')} {line}",
    "time": lambda at, line: f"{stamp(at, '%H:%M:%S')} {line}",
    "sagemaker": lambda _, line: f"[1,mpirank:3,algo-1]<stderr>:{line}",
}
LEVELS: dict[str, Dress] = {
    "loguru": lambda at, line: f"{stamp(at, '%Y-%m-%d %H:%M:%S')} | ERROR | {line}",
    "logging": lambda at, line: f"{stamp(at, '%Y-%m-%d %H:%M:%S')},123 - ERROR - {line}",
    "plain": lambda _, line: f"INFO: {line}",
}
LONG = [
    path.parent.name
    for path in sorted(CASES.glob("*/crash.log"))
    if path.read_bytes().count(b"\n") >= 5 and b"\0" not in path.read_bytes()
]
TRACED = "optimizer-first-step"
RANKS = CASES / "ranks-interleaved" / "crash.log"


def lines_of(name: str) -> list[str]:
    text = (CASES / name / "crash.log").read_text(encoding="utf-8")
    return text.rstrip("\n").split("\n")


def essence(diagnosis: Diagnosis) -> tuple[str, str, str | None]:
    leading = diagnosis.causes[0].cause if diagnosis.causes else None
    return diagnosis.answer, diagnosis.resource, leading


@cache
def undressed(name: str) -> tuple[str, str, str | None]:
    return essence(diagnose(str(CASES / name / "crash.log")))


def said(tmp_path: Path, lines: Sequence[str], end: str = "\n") -> Diagnosis:
    path = tmp_path / "crash.log"
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    return diagnose(str(path))


def cleaned(lines: Sequence[str]) -> list[str]:
    source = source_of_text("\n".join(lines))
    return [line.text for line in clean(source).lines if line.text.strip()]


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("dress", sorted(PASTED))
def test_what_collectors_put_before_every_line_leaves_the_same_text(name: str, dress: str) -> None:
    lines = [line for line in lines_of(name) if line.strip()]

    assert cleaned(lines) == cleaned([PASTED[dress](at, line) for at, line in enumerate(lines)])


@pytest.mark.parametrize("dress", [*sorted(PASTED), *sorted(LEVELS)])
def test_what_collectors_put_before_every_line_changes_no_answer(
    dress: str, tmp_path: Path
) -> None:
    lines = lines_of(TRACED)
    dressed = [{**PASTED, **LEVELS}[dress](at, line) for at, line in enumerate(lines)]

    assert undressed(TRACED) == essence(said(tmp_path, dressed))


@pytest.mark.parametrize("seed", range(4))
def test_ranks_shuffled_among_each_other_keep_their_first_failure(
    seed: int, tmp_path: Path
) -> None:
    ranks: dict[str, list[str]] = {}
    for at, line in enumerate(RANKS.read_text(encoding="utf-8").splitlines()):
        time = stamp(at, "%Y-%m-%dT%H:%M:%S.%fZ")
        ranks.setdefault(line[:7], []).append(f"{time} {line}")
    whole = said(tmp_path, sorted(line for lines in ranks.values() for line in lines))
    shuffled = random.Random(seed)  # noqa: S311 - an order, no secret
    turns = [rank for rank, lines in ranks.items() for _ in lines]
    shuffled.shuffle(turns)

    mixed = said(tmp_path, [ranks[rank].pop(0) for rank in turns])

    assert whole.event is not None
    assert mixed.event is not None
    assert (whole.event.rank, essence(whole)) == (mixed.event.rank, essence(mixed))


@pytest.mark.parametrize("name", NAMES)
def test_a_log_that_is_given_twice_or_runs_twice_changes_nothing(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    whole = essence(said(tmp_path, lines))
    copy = tmp_path / "copy.log"
    copy.write_bytes((tmp_path / "crash.log").read_bytes())

    assert whole == essence(diagnose([str(copy), str(tmp_path / "crash.log")]))
    assert whole == essence(said(tmp_path, [*lines, "", *lines]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dress", sorted(DRESSES))
def test_a_prefix_on_every_line_changes_nothing(name: str, dress: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    dressed = [DRESSES[dress](at, line) for at, line in enumerate(lines)]

    assert undressed(name) == essence(said(tmp_path, dressed))


@pytest.mark.parametrize("name", NAMES)
def test_line_ends_of_windows_change_nothing(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)

    assert undressed(name) == essence(said(tmp_path, lines, "\r\n"))


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_of_an_idle_rank_in_between_change_nothing(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    mixed = [
        text
        for at, line in enumerate(lines)
        for text in (f"[rank3]: {line}", f"[rank0]: tick {at}")
    ]

    assert undressed(name) == essence(said(tmp_path, mixed))


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_after_the_failing_line_is_not_needed(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    whole = said(tmp_path, lines)
    assert whole.event is not None

    cut = said(tmp_path, lines[: whole.event.line_quote.line])

    assert essence(whole) == essence(cut)
