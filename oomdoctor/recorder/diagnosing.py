"""Diagnoses a bundle: its output, the kernel's lines and the configs, with what was recorded.

examined = examine(read_bundle(folder))
examined.outcome.word, examined.diagnosis.headline
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor import pipeline
from oomdoctor.errors import InputError, OomdoctorError
from oomdoctor.facts.given import parse_possible
from oomdoctor.model.core import Failure
from oomdoctor.record import dataclass
from oomdoctor.recorder.bundle import IN_GROUP, ON_MACHINE
from oomdoctor.recorder.facts_inside import facts_inside, process_of_outcome
from oomdoctor.recorder.facts_outside import facts_outside
from oomdoctor.recorder.outcome import KERNEL_KILL, Outcome, outcome_of
from oomdoctor.recorder.output_file import read_output
from oomdoctor.recorder.places import CONFIGS, KERNEL_FILE, OUTPUT_FILE, PROCESSES
from oomdoctor.recorder.quoting import Quoting
from oomdoctor.recorder.refusals import failures_inside
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.gathering import Gathered
    from oomdoctor.model.core import Fact
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.recorder.bundle import Run

_MEMORY = ("gpu-oom", "host-oom", "shm")
SNAPSHOT_FILE = "snapshot.pickle"
LARGEST_SNAPSHOT_BYTES = 256 << 20
"""A larger one takes longer to read than people wait at the end of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is asked of a diagnosis beyond the bundle: facts, rules, further inputs."""

    inputs: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    preview: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A run with what came of it, and its diagnosis."""

    run: Run
    outcome: Outcome
    diagnosis: Diagnosis


def examine(run: Run, wishes: Wishes | None = None) -> Examined:
    """Diagnose a run from its bundle."""
    wishes = wishes or Wishes()
    inputs, configs = parts_of(run)
    gathered = _gathered([*inputs, *wishes.inputs], [*configs, *wishes.configs])
    outcome = outcome_of(run, gathered.failures)
    _add_recorded(gathered, run, outcome)
    ruleset = pipeline.chosen_rules(
        wishes.rules, preview=wishes.preview, select=wishes.select, ignore=wishes.ignore
    )
    book = pipeline.assemble(gathered, parse_possible(wishes.facts))
    return Examined(run=run, outcome=outcome, diagnosis=pipeline.concluded(gathered, book, ruleset))


def _gathered(inputs: list[str], configs: list[str]) -> Gathered:
    """Read all; a run may have printed nothing, or what is no text."""
    try:
        return pipeline.gather(inputs or [""], config=configs or None)
    except InputError as error:
        gathered = pipeline.gather([""], config=configs or None)
        gathered.notes.append(f"left out: {error.message}")
        return gathered


def parts_of(run: Run) -> tuple[list[str], list[str]]:
    """Return the files of a bundle that are read as logs and tables, and its configs."""
    join_output(run)
    folder = run.folder
    logs = [one for one in (folder / OUTPUT_FILE, folder / KERNEL_FILE) if _has_text(one)]
    found = [one for one in sorted((folder / CONFIGS).glob("*")) if _has_text(one)]
    return list(map(str, logs)), [str(_as_named(run, one)) for one in found]


def _as_named(run: Run, copy: Path) -> Path:
    """Return the file that the command named, as long as it is what was copied."""
    for one in run.told.get("configs") or ():
        if one.get("name") == copy.name:
            path = Path(str(run.told.get("folder"))) / str(one.get("path"))
            with suppress(OSError, ValueError):
                if path.is_file() and path.read_bytes() == copy.read_bytes():
                    return Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path
    return copy


def join_output(run: Run) -> None:
    """Put the output in one file where nobody came to that: its copier was killed."""
    output = run.folder / OUTPUT_FILE
    parts = [one for one in sorted(run.folder.glob("output.*.part")) if one.is_file()]
    if parts and not run.alive and (output.is_file() or not output.exists()):
        data = read_output(run.folder)
        output.write_bytes(data)
        for one in parts:
            one.unlink()


def _add_recorded(gathered: Gathered, run: Run, outcome: Outcome) -> None:
    """Add what was recorded to what the files say: facts, failures that no file shows, a snapshot.

    A series that does not rise gives way to that of the snapshot, which names what is kept.
    """
    quoting = Quoting(run.folder)
    of_failures = (fact for one in gathered.failures for fact in one.facts)
    said = {fact.key for fact in (*gathered.facts, *of_failures)}
    facts = [*facts_inside(run, outcome, quoting), *facts_outside(run, outcome, quoting)]
    rises = any(one.key == "growth.monotone" and one.value for one in facts)
    series = [one for one in facts if one.key.startswith("growth.")]
    gathered.facts += _not_said([one for one in facts if rises or one not in series], said)
    if not any(one.kind in _MEMORY and not one.consequence for one in gathered.failures):
        gathered.failures += failures_inside(run, quoting)
        gathered.failures += _kernel_kill(run, outcome, quoting)
    _add_snapshot(gathered, run, outcome)
    if not rises and not any(one.key.startswith("growth.") for one in gathered.facts):
        gathered.facts += series
    gathered.artifacts += quoting.artifacts
    gathered.notes += run.left_out


def _add_snapshot(gathered: Gathered, run: Run, outcome: Outcome) -> None:
    """Add what the memory snapshot shows of the process that ran out, where one was dumped."""
    process = process_of_outcome(run, outcome)
    dumped = [] if process is None else [one.folder for one in process.ooms if not one.went_on]
    for name in [one for one in dumped if one is not None][-1:]:
        path = run.folder / PROCESSES / (process.key if process else "") / name / SNAPSHOT_FILE
        if not _has_text(path):
            continue
        if path.stat().st_size > LARGEST_SNAPSHOT_BYTES:
            size = format_size(path.stat().st_size)
            gathered.notes.append(f"{path}: not read, it has {size}; give it to --snapshot")
            continue
        from oomdoctor.snapshot.findings import add_snapshots

        try:
            add_snapshots(gathered, [str(path)])
        except OomdoctorError as error:
            gathered.notes.append(f"left out: {error}")


def _not_said(facts: Sequence[Fact], said: set[str]) -> Iterator[Fact]:
    """Yield facts of which no input speaks; a series is one thing, and not mixed."""
    has_series = any(key.startswith("growth.") for key in said)
    for fact in facts:
        if fact.key not in said and not (has_series and fact.key.startswith("growth.")):
            yield fact


def _kernel_kill(run: Run, outcome: Outcome, quoting: Quoting) -> Iterator[Failure]:
    """Yield the kill that only the kernel's counts tell of: its log is closed to this user."""
    if outcome.word == KERNEL_KILL:
        quote = quoting.run(IN_GROUP if run.kills(IN_GROUP) else ON_MACHINE)
        facts = tuple(
            one
            for one in facts_outside(run, outcome, quoting)
            if one.key in ("host.oom_kill", "host.killed", "host.kill_scope")
        )
        yield Failure(kind="host-oom", order=quote.line, line_quote=quote, facts=facts)


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
