"""A counted data set as JSON: sorted keys, bytes as int, schema version 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__

if TYPE_CHECKING:
    from oomdoctor.data.job import Setting
    from oomdoctor.data.peak import Batch
    from oomdoctor.data.report import DataReport

DIGITS = 6
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


def to_json(report: DataReport) -> str:
    """Return the report as a JSON document."""
    return json.dumps(as_dict(report), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def as_dict(report: DataReport) -> dict[str, object]:
    """Return the report as plain values."""
    return {
        "schema_version": 1,
        "oomdoctor": __version__,
        "files": [{"path": one.path, "kind": one.kind, "bytes": one.size} for one in report.files],
        "tokenizer": report.tokenizer,
        "chat_template": report.template,
        "rows": report.rows,
        "bad_rows": {"count": report.bad_rows, "reasons": dict(report.faults)},
        "first_bad_rows": [one._asdict() for one in report.first_faults],
        "layouts": dict(report.layouts),
        "sequences": report.lengths.count,
        "tokens": report.lengths.tokens,
        "characters": report.characters,
        "chars_per_token": round(report.chars_per_token, DIGITS),
        "lengths": _lengths(report),
        "longest": [one._asdict() for one in report.longest],
        "limit": _setting(report.limit),
        "truncation": _truncation(report),
        "batch": _setting(report.batch),
        "padding": [
            {
                "strategy": one.key,
                "computed_tokens": one.computed,
                "tokens": one.tokens,
                "waste": round(one.waste, DIGITS),
                "in_force": one.in_force,
            }
            for one in report.strategies
        ],
        "packing": [
            {
                "way": one.name,
                "capacity": one.capacity,
                "rows": one.rows,
                "tokens": one.tokens,
                "efficiency": round(one.efficiency, DIGITS),
                "cut_sequences_at_most": one.cut_rows,
            }
            for one in report.packings
        ],
        "peak": _peak(report),
        "notes": list(report.notes),
    }


def _lengths(report: DataReport) -> dict[str, object]:
    lengths = report.lengths
    return {
        "shortest": lengths.shortest,
        "longest": lengths.longest,
        "mean": round(lengths.tokens / lengths.count, DIGITS),
        "quantiles": {f"p{100 * share:g}": lengths.quantile(share) for share in QUANTILES},
        "histogram": [one._asdict() for one in lengths.bars()],
    }


def _setting(one: Setting | None) -> dict[str, object] | None:
    return None if one is None else {"value": one.value, "source": one.source}


def _truncation(report: DataReport) -> dict[str, object] | None:
    if report.limit is None:
        return None
    rows, cut = report.over_limit
    return {
        "sequences": rows,
        "sequences_share": round(rows / report.lengths.count, DIGITS),
        "tokens": cut,
        "tokens_share": round(cut / report.lengths.tokens, DIGITS),
    }


def _peak(report: DataReport) -> dict[str, object]:
    peak = report.peak
    return {
        "largest": _batch(peak.largest),
        "median": _batch(peak.median),
        "factor": round(peak.factor, DIGITS),
        "constant": peak.constant,
        "missing": list(peak.missing),
    }


def _batch(batch: Batch) -> dict[str, object]:
    return {
        "rows": batch.rows,
        "padded_to": batch.length,
        "tokens": batch.tokens,
        "bytes": batch.bytes if batch.parts else None,
        "parts": [
            {"part": one.key, "bytes": one.bytes, "formula": one.source} for one in batch.parts
        ],
    }
