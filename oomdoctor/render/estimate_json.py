"""An estimate or a plan as JSON: sorted keys, bytes as int, schema version 1.

The schema is docs/estimate.schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.lab.protocol import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.estimate import Estimate, FitPlan, Table, Variant

DIGITS = 6


def to_json(made: Estimate) -> str:
    """Return an estimate as a JSON document."""
    return _written(as_dict(made))


def plan_json(plan: FitPlan) -> str:
    """Return a plan as a JSON document."""
    return _written(plan_dict(plan))


def _written(values: dict[str, object]) -> str:
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def as_dict(made: Estimate) -> dict[str, object]:
    """Return an estimate as plain values."""
    return {
        **_head(),
        "engine": made.engine,
        "fallback": made.fallback,
        "origin": made.origin,
        "versions": dict(made.versions),
        "device": made.device or None,
        "alloc_conf": made.alloc_conf,
        "job": encode(made.job),
        "peak_allocated_bytes": made.peak_allocated_bytes,
        "peak_reserved_bytes": made.peak_reserved_bytes,
        "peak_phase": made.peak_phase,
        "band": round(made.band, DIGITS),
        "need_band": round(made.need_band, DIGITS),
        "outside_allocator_bytes": {
            "low": made.outside_low_bytes,
            "high": made.outside_high_bytes,
            "what": made.outside_says,
        },
        "host_bytes": made.host_bytes,
        "phases": _rows(made.phases),
        "parts": _rows(made.parts),
        "categories": _rows(made.categories),
        "owners": _rows(made.owners),
        "timeline": _rows(made.line),
        "verdicts": _rows(made.verdicts),
        "rates": None
        if made.rates is None
        else {
            "row_bytes": made.rates.row_bytes,
            "thousand_tokens_bytes": made.rates.thousand_tokens_bytes,
            "how": made.rates.how,
        },
        "limits": _rows(made.limits),
        "table": None if made.table is None else _table(made.table, made),
        "what_if": [_variant(one) for one in made.variants],
        "alloc_confs": [_variant(one) for one in made.alloc_confs],
        "serving": None if made.serving is None else encode(made.serving),
        "assumptions": list(made.assumptions),
        "told": list(made.told),
    }


def plan_dict(plan: FitPlan) -> dict[str, object]:
    """Return a plan as plain values."""
    return {
        **_head(),
        "card": plan.card,
        "capacity_bytes": plan.capacity_bytes,
        "tried": plan.tried,
        "least_bytes": plan.least_bytes,
        "fallback": plan.fallback,
        "assumptions": list(plan.assumptions),
        "steps": [
            {
                "settings": dict(one.settings),
                "peak_allocated_bytes": one.peak_allocated_bytes,
                "peak_reserved_bytes": one.peak_reserved_bytes,
                "verdict": encode(one.verdict),
                "quality": round(one.quality, DIGITS),
                "time_factor": round(one.time_factor, DIGITS),
                "engine": one.engine,
                "notes": list(one.notes),
            }
            for one in plan.steps
        ],
    }


def _head() -> dict[str, object]:
    return {"schema_version": 1, "oomdoctor": __version__}


def _rows(records: Iterable[object]) -> list[dict[str, object]]:
    return [encode(one) for one in records]


def _variant(one: Variant) -> dict[str, object]:
    return {
        "name": one.name,
        "engine": one.engine,
        "peak_allocated_bytes": one.peak_allocated_bytes,
        "peak_reserved_bytes": one.peak_reserved_bytes,
        "verdicts": _rows(one.verdicts),
        "note": one.note,
    }


def _table(table: Table, made: Estimate) -> dict[str, object]:
    cards = [one.card for one in made.verdicts]
    return {
        "batches": list(table.batches),
        "lengths": list(table.lengths),
        "how": table.how,
        "error": None if table.error is None else round(table.error, DIGITS),
        "cells": [
            {
                "batch": one.batch,
                "seq_len": one.seq_len,
                "allocated_bytes": one.allocated_bytes,
                "reserved_bytes": one.reserved_bytes,
                "traced": one.traced,
                "verdicts": dict(zip(cards, one.verdicts, strict=False)),
            }
            for row in table.rows
            for one in row
        ],
    }
