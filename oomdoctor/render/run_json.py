"""A recorded run as JSON, with its diagnosis: docs/run.schema.json describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor import __version__
from oomdoctor.recorder import balance
from oomdoctor.recorder.facts_inside import growth_of
from oomdoctor.render.json import as_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.recorder.balance import Peak
    from oomdoctor.recorder.diagnosing import Examined
    from oomdoctor.recorder.listing import Listed
    from oomdoctor.recorder.told import OutOfMemory, Process

    Json: TypeAlias = Any

SCHEMA_VERSION = 1


def run_json(examined: Examined) -> str:
    """Return a run with all that is known of it."""
    run, outcome = examined.run, examined.outcome
    told: dict[str, Json] = {
        "schema_version": SCHEMA_VERSION,
        "oomdoctor_version": __version__,
        "id": run.id,
        "bundle": str(run.folder),
        "command": list(run.command),
        "started": run.told.get("started"),
        "seconds": run.seconds,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "outcome": outcome.word,
        "why": outcome.why,
        "rank": outcome.rank,
        "virtual": run.told.get("virtual"),
        "steps": balance.steps(run),
        "peaks": {
            "allocated": _peak(balance.allocated_peak(run)),
            "reserved": _peak(balance.reserved_peak(run)),
            "host": _peak(balance.host_peak(run)),
        },
        "processes": [_process(one) for one in run.working],
        "growth": [_growth(one) for one in growth_of(run)],
        "silence": run.told.get("silence"),
        "signals": run.told.get("signals") or [],
        "skipped_lines": run.skipped,
        "diagnosis": as_dict(examined.diagnosis),
    }
    return _text(told)


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """Return a diagnosis alone."""
    return _text(as_dict(diagnosis))


def list_json(runs: Sequence[Listed]) -> str:
    """Return the list of runs, as they are told."""
    rows = [
        {
            "id": one.id,
            "bundle": str(one.folder),
            "command": list(one.command),
            "started": one.started,
            "seconds": one.seconds,
            "exit_code": one.exit_code,
            "outcome": one.outcome,
            "cause": one.cause,
            "peak_bytes": one.peak_bytes,
            "bytes": one.size_bytes,
        }
        for one in runs
    ]
    return _text({"schema_version": SCHEMA_VERSION, "oomdoctor_version": __version__, "runs": rows})


def _peak(peak: Peak | None) -> Json:
    if peak is None:
        return None
    return {"bytes": peak.bytes, "rank": peak.rank, "limit_bytes": peak.limit_bytes}


def _process(process: Process) -> Json:
    return {
        "pid": process.pid,
        "rank": process.rank,
        "world": process.world,
        "steps": process.steps[-1].number if process.steps else 0,
        "last_phase": process.phase,
        "came_to_its_end": process.exited,
        "versions": dict(process.versions),
        "phases": [
            {
                "name": one.name,
                "seconds": round(one.seconds, 6),
                "times": one.times,
                "peak_allocated_bytes": one.peak_allocated_bytes,
                "peak_reserved_bytes": one.peak_reserved_bytes,
                "host_bytes": one.host_bytes,
            }
            for one in process.phases
        ],
        "out_of_memory": [_oom(one) for one in process.ooms],
        "errors": [{"exception": one.exception, "text": one.text} for one in process.errors],
    }


def _oom(oom: OutOfMemory) -> Json:
    return {
        "device": oom.device,
        "requested_bytes": oom.requested_bytes,
        "free_bytes": oom.free_bytes,
        "card_bytes": oom.card_bytes,
        "allocated_bytes": oom.allocated_bytes,
        "reserved_bytes": oom.reserved_bytes,
        "phase": oom.phase,
        "step": oom.step,
        "got_over": oom.went_on,
        "dump": oom.folder,
    }


def _growth(found: Json) -> Json:
    growth = found.verdict.growth
    return {
        "memory": found.memory,
        "kind": found.verdict.kind.value,
        "level": found.verdict.level.name.lower(),
        "pid": found.pid,
        "rank": found.rank,
        "card": found.card,
        "by_step": found.by_step,
        "slope_bytes": None if growth is None else round(growth.slope),
        "rise_bytes": None if growth is None else growth.rise,
    }


def _text(told: Json) -> str:
    return json.dumps(told, indent=2, sort_keys=True, allow_nan=False, default=str) + "\n"
