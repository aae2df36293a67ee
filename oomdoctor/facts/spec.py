"""Short constructors for registry rows, so that the tables read as data."""

from __future__ import annotations

from oomdoctor.model.core import FactSpec
from oomdoctor.model.enums import Kind


def _row(
    key: str,
    kind: Kind,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    return FactSpec(
        key=key,
        kind=kind,
        doc=doc,
        choices=choices,
        obtain=obtain,
        cost_s=cost_s,
        closed_by=closed_by,
    )


def size(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind bytes."""
    return _row(key, Kind.BYTES, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)


def count(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind count."""
    return _row(key, Kind.COUNT, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)


def ratio(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind ratio."""
    return _row(key, Kind.RATIO, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)


def boolean(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind bool."""
    return _row(key, Kind.BOOL, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)


def enum(
    key: str,
    doc: str,
    choices: tuple[str, ...],
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind enum with its choices."""
    return _row(
        key, Kind.ENUM, doc, choices=choices, obtain=obtain, cost_s=cost_s, closed_by=closed_by
    )


def text(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind text."""
    return _row(key, Kind.TEXT, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)


def version(
    key: str,
    doc: str,
    *,
    obtain: str | None = None,
    cost_s: float = 30.0,
    closed_by: tuple[str, ...] = (),
) -> FactSpec:
    """Return a row of kind version."""
    return _row(key, Kind.VERSION, doc, obtain=obtain, cost_s=cost_s, closed_by=closed_by)
