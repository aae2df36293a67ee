"""A threshold as JSON: sorted keys, bytes as int, schema version 1.

The schema is docs/bisect.schema.json.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.lab.protocol import encode

if TYPE_CHECKING:
    from oomdoctor.model.bisect import Bisected, BisectPlan, StartCurve
    from oomdoctor.model.trial import SearchAnswer, TrialResult

DIGITS = 6


def to_json(made: Bisected) -> str:
    """Return a run as a JSON document."""
    return _written(as_dict(made))


def plan_json(plan: BisectPlan) -> str:
    """Return the plan of a run as a JSON document."""
    return _written(plan_dict(plan))


def as_dict(made: Bisected) -> dict[str, object]:
    """Return a run as plain values."""
    answer, frontier = made.answer, made.frontier
    return {
        **_head(made),
        "proven": made.proven,
        "answer": None if answer is None else _answer(answer),
        "frontier": None
        if frontier is None
        else {
            "outer": frontier.outer,
            "inner": frontier.inner,
            "rows": [{"value": value, **_answer(one)} for value, one in frontier.rows],
        },
        "best": None if made.best is None else _trial(made.best),
        "trials": [_trial(one) for one in made.trials],
        "replayed": made.replayed,
        "seconds": round(made.seconds, DIGITS),
        "folder": made.folder,
        "stopped": made.stopped,
    }


def plan_dict(plan: BisectPlan) -> dict[str, object]:
    """Return a plan as plain values."""
    return {
        **_head(plan),
        "expected": [dict(one) for one in plan.expected],
        "most_trials": plan.most,
        "seconds_each": plan.seconds_each,
    }


def _head(made: Bisected | BisectPlan) -> dict[str, object]:
    return {
        "schema_version": 1,
        "oomdoctor": __version__,
        "backend": made.backend,
        "axes": [encode(one) for one in made.axes],
        "job": None if made.job is None else encode(made.job),
        "command": None if made.command is None else list(made.command.arguments),
        "card": made.card,
        "cap_bytes": made.cap_bytes,
        "limit_bytes": made.limit_bytes,
        "host_cap_bytes": made.host_cap_bytes,
        "start": _start(made.start),
        "executor": made.executor,
        "width": made.width,
        "notes": list(made.notes),
    }


def _start(start: StartCurve) -> dict[str, object]:
    return {**encode(start), "error": round(start.error, DIGITS)}


def _answer(answer: SearchAnswer) -> dict[str, object]:
    return {
        "bracket": encode(answer.bracket),
        "safe_value": answer.safe_value,
        "headroom": round(answer.headroom, DIGITS),
        "curve": None if answer.curve is None else encode(answer.curve),
        "trials": [one.key for one in answer.trials],
        "slipped": [one.key for one in answer.slipped],
        "stopped": answer.stopped,
    }


def _trial(one: TrialResult) -> dict[str, object]:
    return {**encode(one), "peak_bytes": one.peak_bytes}


def _written(values: dict[str, object]) -> str:
    plain = _finite(values)
    return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    """Return plain values without what JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
