"""The same log in another dress gives the same answer: prefixes, stamps, line ends, cut, mixed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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


def lines_of(name: str) -> list[str]:
    text = (CASES / name / "crash.log").read_text(encoding="utf-8")
    return text.rstrip("\n").split("\n")


def essence(diagnosis: Diagnosis) -> tuple[str, str, str | None]:
    leading = diagnosis.causes[0].cause if diagnosis.causes else None
    return diagnosis.answer, diagnosis.resource, leading


def said(tmp_path: Path, lines: Sequence[str], end: str = "\n") -> Diagnosis:
    path = tmp_path / "crash.log"
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    return diagnose(str(path))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dress", sorted(DRESSES))
def test_a_prefix_on_every_line_changes_nothing(name: str, dress: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    dressed = [DRESSES[dress](at, line) for at, line in enumerate(lines)]

    assert essence(said(tmp_path, lines)) == essence(said(tmp_path, dressed))


@pytest.mark.parametrize("name", NAMES)
def test_line_ends_of_windows_change_nothing(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)

    assert essence(said(tmp_path, lines)) == essence(said(tmp_path, lines, "\r\n"))


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_of_an_idle_rank_in_between_change_nothing(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    mixed = [
        text
        for at, line in enumerate(lines)
        for text in (f"[rank3]: {line}", f"[rank0]: tick {at}")
    ]

    assert essence(said(tmp_path, lines)) == essence(said(tmp_path, mixed))


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_after_the_failing_line_is_not_needed(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    whole = said(tmp_path, lines)
    assert whole.event is not None

    cut = said(tmp_path, lines[: whole.event.line_quote.line])

    assert essence(whole) == essence(cut)
