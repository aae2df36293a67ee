"""What a snapshot tells a diagnosis: facts, and the failure where a request failed.

    add_snapshots(gathered, ["snapshot.pickle"])

They are those of one card: the one where a request failed, else the one that held most. A quote
names the event before which something was so; its text is in our words, since a snapshot has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.facts.segments import segment_bytes
from oomdoctor.model.core import Artifact
from oomdoctor.record import dataclass
from oomdoctor.snapshot.telling import Telling
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.gathering import Gathered
    from oomdoctor.model.core import Fact, Failure
    from oomdoctor.snapshot.report import DeviceReport, SnapshotReport

KIND = "memory-snapshot"
BALANCE = ("torch.allocated", "torch.reserved", "torch.reserved_unallocated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one snapshot says; `failure` is the latest request that failed."""

    artifact: Artifact
    facts: tuple[Fact, ...]
    failure: Failure | None
    requested_bytes: int | None


def add_snapshots(gathered: Gathered, paths: Sequence[str]) -> None:
    """Add what snapshots say to what the other inputs say, which has the first word."""
    from oomdoctor.snapshot.reading import read_snapshot
    from oomdoctor.snapshot.report import report_on

    for path in paths:
        found = findings(report_on(read_snapshot(path), try_settings=False), path)
        if found is None:
            gathered.notes.append(f"{path}: the snapshot has neither events nor blocks")
            continue
        gathered.artifacts.append(found.artifact)
        gathered.facts += _not_said(gathered, found.facts)
        if found.failure is not None:
            _add_failure(gathered, found.failure, path)


def _not_said(gathered: Gathered, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts of which no input speaks; a series and a balance are one thing each."""
    said = {fact.key for fact in gathered.facts}
    said |= {fact.key for one in gathered.failures for fact in one.facts}
    if any(key.startswith("growth.") for key in said):
        said |= {fact.key for fact in facts if fact.key.startswith("growth.")}
    if said.intersection(BALANCE):
        said.update(BALANCE)
    return [fact for fact in facts if fact.key not in said]


def _add_failure(gathered: Gathered, failure: Failure, path: str) -> None:
    """Add the failed request, unless a log tells of one; say where the two differ."""
    logged = next((one for one in gathered.failures if one.kind == failure.kind), None)
    if logged is None:
        gathered.failures.append(failure)
        return
    sizes = [fact for one in (logged, failure) for fact in one.facts if fact.key == "oom.requested"]
    if len(sizes) == 2:
        stated, recorded = (int(fact.value) for fact in sizes)
        if not recorded - sizes[0].slack <= stated <= segment_bytes(recorded) + sizes[0].slack:
            gathered.notes.append(
                f"{path}: its failed request is {format_size(recorded)}, the log's"
                f" {format_size(stated)}; it may be of another failure"
            )


def findings(report: SnapshotReport, path: str) -> Found | None:
    """Return what a snapshot says; None where it has neither an event nor a block."""
    device = max(report.devices, key=_weight, default=None)
    if device is None:
        return None
    told = Telling(report, device, path)
    return Found(
        artifact=Artifact(id=path, kind=KIND, path=path, size_bytes=_size(path)),
        facts=(*told.memory(), *told.shares(), *told.frames(), *told.leaks(), *told.settings()),
        failure=told.failure(),
        requested_bytes=device.failed_bytes,
    )


def _weight(device: DeviceReport) -> tuple[bool, int]:
    return device.failure is not None, device.peak.held_bytes


def _size(path: str) -> int | None:
    return Path(path).stat().st_size if Path(path).exists() else None
