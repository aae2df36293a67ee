"""What the engines say of records: peaks, and verdicts on the card that measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measured import RESERVED
from oomdoctor.errors import OomdoctorError
from oomdoctor.estimating.cards import cards_of
from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.peak import bare_peak
from oomdoctor.estimating.verdicts import word_for
from oomdoctor.lab.protocol import TraceRequest, encode
from oomdoctor.lab.session import WorkerSession
from oomdoctor.memory import bands
from oomdoctor.memory.outside import CONTEXT, Outside, outside
from oomdoctor.memory.stream_json import from_json
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.measured import Record
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.job import CardSpec, Job

TRACE = Path(__file__).resolve().parent / "twins" / "trace.py"
PHASES = {"after-load": ("load",)}
LONGER = 1.3


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one engine says: bytes of the quantity, the verdict, and that of a longer job."""

    bytes: int | None = None
    verdict: str | None = None
    longer: str | None = None
    error: str | None = None


def simulated(wanted: Sequence[Record], python: str) -> Iterator[tuple[Record, Said]]:
    """Yield what the simulation says of each record; `python` is an interpreter with torch."""
    twins = [one for one in wanted if one.twin is not None]
    jobs = [one for one in wanted if one.twin is None and one.job is not None]
    yield from _twins(twins, python)
    with WorkerSession(python=python) as session:
        for record in jobs:
            yield record, _job(record, session)


def by_formula(record: Record) -> Said | None:
    """Return what the formula says; None where it does not speak of that quantity."""
    job = record.job
    if job is None or record.point == "after-step":
        return None
    try:
        peak = Formula().peak(job)
    except (ValueError, OomdoctorError) as error:
        return Said(error=str(error))
    found = peak
    if record.point == "after-load":
        found = replace(peak, allocated=peak.phases[0].allocated_bytes)
    return Said(
        bytes=found.needed if record.quantity == RESERVED else found.allocated,
        verdict=verdict(record, peak),
        longer=_longer(record, lambda job: Formula().peak(job)),
    )


def verdict(record: Record, peak: Peak) -> str:
    """Return fits, tight or oom for the card of a record."""
    beside = Outside(*CONTEXT, "") if record.job is None else outside(record.job)
    return word_for(peak, card_of(record).total_bytes, beside)


def card_of(record: Record) -> CardSpec:
    """Return the card that a record names."""
    return cards_of([record.card])[0]


def _twins(wanted: Sequence[Record], python: str) -> Iterator[tuple[Record, Said]]:
    with tempfile.TemporaryDirectory() as folder:
        asked = []
        for record in wanted:
            twin = record.twin
            if twin is not None:
                path = str(Path(folder) / f"{record.id}.json")
                asked.append({**vars(twin), "card": encode(card_of(record)), "path": path})
        process = subprocess.Popen(
            [python, str(TRACE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process without pipes")
        for record, request in zip(wanted, asked, strict=True):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if not process.stdout.readline():
                raise RuntimeError(f"{TRACE.name} ended; does {python} have torch and peft?")
            yield record, _traced(record, json.loads(Path(request["path"]).read_text()))
            Path(request["path"]).unlink()
        process.stdin.close()
        process.wait()


def _traced(record: Record, values: dict[str, object]) -> Said:
    if "error" in values:
        return Said(error=str(values["error"]).strip().splitlines()[-1])
    return _said(record, from_json(values))


def _job(record: Record, session: WorkerSession) -> Said:
    job = record.job
    if job is None:
        return Said(error="no job")

    def traced(job: Job) -> Stream:
        phases = PHASES.get(record.point, ())
        return session.trace(TraceRequest(job=job, card=card_of(record), phases=phases))

    try:
        said = _said(record, traced(job))
        longer = _longer(record, lambda job: _peak(traced(job)))
    except OomdoctorError as error:
        return Said(error=str(error))
    return Said(bytes=said.bytes, verdict=said.verdict, longer=longer)


def _said(record: Record, stream: Stream) -> Said:
    peak = _peak(stream)
    played = peak.played
    if played is None:
        return Said(error="nothing to replay")
    figure = played.peak_reserved if record.quantity == RESERVED else played.peak_allocated
    if record.point == "after-step":
        figure = played.allocated[-1]
    return Said(bytes=figure, verdict=verdict(record, peak))


def _peak(stream: Stream) -> Peak:
    return bare_peak(stream, band=bands.SIMULATION)


def _longer(record: Record, peak_of: Callable[[Job], Peak]) -> str | None:
    """Return the verdict on a job that is surely longer than the longest that fitted."""
    job = record.job
    if record.outcome != "max" or job is None:
        return None
    return verdict(record, peak_of(replace(job, seq_len=int(job.seq_len * LONGER))))


if __name__ == "__main__":
    sys.exit("run benchmarks/accuracy.py")
