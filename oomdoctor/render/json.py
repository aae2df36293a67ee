"""A diagnosis as JSON: the contract for scripts (sorted keys, bytes as int, schema version 1).

Every key below is always there; null or an empty list says that nothing is known.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from oomdoctor import __version__
from oomdoctor.experiments.proofs import proofs_of
from oomdoctor.reason.narrate import against
from oomdoctor.render.json_advice import measurement, prescription, proof
from oomdoctor.render.words import reasons, says, shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from oomdoctor.model.core import Conflict, Fact, Failure, Finding, Quote
    from oomdoctor.model.estimate import Owner
    from oomdoctor.model.lint import UnderstoodRow
    from oomdoctor.model.plan import (
        Diagnosis,
        Fingerprint,
        Ledger,
        RankSummary,
    )

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

SCHEMA_VERSION = 1
MOST_CAUSES = 8


def to_json(diagnosis: Diagnosis) -> str:
    """Return the whole diagnosis as indented JSON that any stream can carry (ASCII only)."""
    return json.dumps(as_dict(diagnosis), indent=2, sort_keys=True, allow_nan=False) + "\n"


def as_dict(diagnosis: Diagnosis) -> dict[str, Json]:
    """Return the whole diagnosis as plain dictionaries and lists."""
    causes = diagnosis.causes[:MOST_CAUSES]
    probabilities, other = shares(causes)
    return {
        "schema_version": SCHEMA_VERSION,
        "oomdoctor_version": __version__,
        "answer": diagnosis.answer,
        "resource": diagnosis.resource,
        "conclusive": diagnosis.conclusive,
        "headline": diagnosis.headline,
        "event": _event(diagnosis.event, diagnosis.facts),
        **_ledger(diagnosis.ledger),
        **_fingerprint(diagnosis.fingerprint),
        "causes": [
            _cause(finding, probability)
            for finding, probability in zip(causes, probabilities, strict=True)
        ],
        "other_probability": other,
        "side_findings": [_side(finding) for finding in diagnosis.side_findings],
        "prescriptions": [prescription(one) for one in diagnosis.prescriptions],
        "suppressed": list(diagnosis.suppressed),
        "next_measurements": [measurement(one) for one in diagnosis.next_measurements],
        "experiments": [proof(one) for one in proofs_of(diagnosis)],
        "not_evaluated": [
            {"code": one.code, "needs": list(one.needs)} for one in diagnosis.not_evaluated
        ],
        "understood": [understood_row(one) for one in diagnosis.understood],
        **(
            {"traced_requests": [_traced(one) for one in diagnosis.traced]}
            if diagnosis.traced
            else {}
        ),
        **_remarks(diagnosis),
    }


def _traced(one: Owner) -> Json:
    names = ("module", "operator", "category", "phase", "part", "bytes", "allocations")
    return {name: getattr(one, name) for name in names}


def understood_row(row: UnderstoodRow) -> Json:
    """Return a row of the job as understood as plain values."""
    return {
        "group": row.group,
        "name": row.name,
        "text": row.text,
        "origin": row.origin.value,
        "source": row.source,
        "bytes": row.bytes,
        "of_bytes": row.of_bytes,
    }


def _remarks(diagnosis: Diagnosis) -> dict[str, Json]:
    return {
        "conflicts": [conflict(one) for one in diagnosis.conflicts],
        "faults": [{"code": one.code, "message": one.message} for one in diagnosis.faults],
        "ranks": [_ranks(one) for one in diagnosis.ranks],
        "artifacts": [
            {"id": one.id, "kind": one.kind, "path": one.path, "size_bytes": one.size_bytes}
            for one in diagnosis.artifacts
        ],
        "notes": list(diagnosis.notes),
        "signs": quotes(diagnosis.signs),
        "facts": {
            key: _fact(fact)
            for key, fact in diagnosis.facts.items()
            if not (isinstance(fact.value, str) and "\n" in fact.value)
        },
    }


def conflict(one: Conflict) -> Json:
    """Return two sources that disagree as plain values."""
    return {"fact": one.key, "kept": _fact(one.kept), "dropped": _fact(one.dropped)}


def _ranks(row: RankSummary) -> Json:
    return {
        "ranks": list(row.ranks),
        "node": row.node,
        "failed": row.failed,
        "first": row.first,
        "consequence": row.consequence,
        "headline": row.headline,
        "time": row.time,
        "artifact": row.artifacts[0] if row.artifacts else None,
        "artifacts": list(row.artifacts),
    }


def _event(event: Failure | None, facts: Mapping[str, Fact]) -> Json:
    if event is None:
        return None
    own = {fact.key: fact for fact in event.facts}
    requested = own.get("oom.requested", facts.get("oom.requested"))
    return {
        "kind": event.kind,
        "backend": _value(own.get("oom.backend", facts.get("oom.backend"))),
        "phase": _value(own.get("run.phase", facts.get("run.phase"))),
        "requested_bytes": _value(requested),
        "requested_slack_bytes": None if requested is None else int(requested.slack),
        "rank": event.rank,
        "consequence": event.consequence,
        "quote": _quote(event.line_quote),
    }


def _ledger(ledger: Ledger | None) -> dict[str, Json]:
    return {
        "ledger": [
            {
                "owner": entry.owner,
                "bytes": entry.bytes,
                "slack_bytes": entry.slack_bytes,
                "origin": entry.origin.value,
                "source": entry.source,
            }
            for entry in (ledger.entries if ledger else ())
        ],
        "capacity_bytes": ledger.capacity_bytes if ledger else None,
        "overshoot_bytes": ledger.overshoot_bytes if ledger else None,
        "unexplained_bytes": ledger.unexplained_bytes if ledger else None,
        "contradiction_bytes": ledger.contradiction_bytes if ledger else 0,
        "ledger_notes": list(ledger.notes) if ledger else [],
    }


def _fingerprint(fingerprint: Fingerprint | None) -> dict[str, Json]:
    return {
        "fingerprint": [
            {
                "bytes": match.bytes,
                "expression": match.expression,
                "meaning": match.meaning,
                "values": dict(match.values),
                "weight": round(match.weight, 4),
                "assumed": list(match.assumed),
            }
            for match in (fingerprint.matches if fingerprint else ())
        ],
        "fingerprint_tried": fingerprint.tried if fingerprint else 0,
        "fingerprint_expected_by_chance": (
            round(fingerprint.expected_by_chance, 4) if fingerprint else 0.0
        ),
    }


def _cause(finding: Finding, probability: float) -> Json:
    return {
        **_side(finding),
        "cause": finding.cause,
        "probability": probability,
        "explains_bytes": finding.explains_bytes,
        "other_codes": list(finding.other_codes),
    }


def _side(finding: Finding) -> dict[str, Json]:
    return {
        "code": finding.code,
        "title": finding.title,
        "says": says(finding),
        "severity": finding.severity.value,
        "maturity": finding.maturity.value,
        "evidence": quotes(finding.quotes),
        "against": quotes(finding.against),
        "reasons": list(reasons(finding)),
        "reasons_against": list(against(finding)),
        "missing": list(finding.missing),
        "assumed": list(finding.assumed),
    }


def _fact(fact: Fact) -> Json:
    return {
        "value": fact.value,
        "origin": fact.origin.value,
        "slack": fact.slack,
        "source": fact.source,
        "quotes": quotes(fact.quotes),
    }


def quotes(found: Iterable[Quote]) -> list[Json]:
    """Return places of inputs as plain values."""
    return [_quote(quote) for quote in found]


def _quote(quote: Quote) -> Json:
    return {"artifact": quote.artifact, "line": quote.line, "text": quote.text}


def _value(fact: Fact | None) -> Json:
    return None if fact is None else fact.value
