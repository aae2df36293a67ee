"""Facts out of the fingerprint: which kind of tensor the failed request was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.candidates import candidates, dimensions
from oomdoctor.memory.fingerprint import Detail, matches, request_intervals
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Quote

SURE = 0.3
CLEAR = 1.5
BEYOND = 1.05
FAMILIES = ("logits", "attention", "weight", "mlp", "hidden", "kv", "optimizer", "columns")
FULL_PRECISION = 4
# dimensions without which the largest tensor of a family stays unknown
NEEDS = {
    "logits": {"vocab"},
    "attention": {"heads"},
    "mlp": {"intermediate"},
    "hidden": {"hidden", "heads"},
    "columns": {"unfolded", "places"},
    "kv": {"layers", "kv_heads", "head_dim"},
    "weight": {"hidden", "intermediate", "vocab", "heads", "head_dim"},
}


def fingerprint_facts(book: FactBook) -> tuple[Fact, ...]:
    """Return the fingerprint.* facts: true for a match that chance and frame leave standing."""
    details, _, _ = matches(book)
    return (*_true(book, details), *_false(book, details))


def _true(book: FactBook, details: tuple[Detail, ...]) -> Iterator[Fact]:
    """Yield one fact per family whose best match weighs enough, and the best of all."""
    sure = [detail for detail in details if detail.match.weight >= SURE]
    if sure:
        yield _fact(book, "fingerprint.best", sure[0].match.expression, sure[0])
    for family in FAMILIES:
        best = next((detail for detail in sure if detail.family == family), None)
        if best is not None:
            yield _fact(book, f"fingerprint.{family}", value=True, detail=best)
    yield from _precision(book, [detail for detail in sure if detail.family == "logits"])


def _precision(book: FactBook, logits: list[Detail]) -> Iterator[Fact]:
    """Yield whether the logits are a 4-byte copy, where both readings do not weigh alike."""
    if not logits:
        return
    best = logits[0]
    other = next((d for d in logits if d.element != best.element), None)
    if other is None or best.match.weight > CLEAR * other.match.weight:
        full = best.element == FULL_PRECISION
        yield _fact(book, "fingerprint.logits_fp32", value=full, detail=best)


def _false(book: FactBook, details: tuple[Detail, ...]) -> Iterator[Fact]:
    """Yield false where no tensor of a family can be that large, or no weight has that size.

    Below its limit a tensor that grows with the batch may have any size: padded rows are shorter.
    """
    intervals = request_intervals(book)
    if not intervals:
        return
    low = min(interval.low for interval in intervals)
    matched = {detail.family for detail in details}
    known = dimensions(book)
    split = book.value("dist.shards_params") is True
    largest: dict[str, int] = {}
    for candidate in candidates(known):
        family = candidate.template.family
        largest[family] = max(largest.get(family, 0), candidate.bytes)
    for family, most in largest.items():
        needs = NEEDS.get(family)
        if family in matched or needs is None or not needs <= known.sizes.keys():
            continue
        if family == "weight" and split:
            continue
        if family == "weight" or low > BEYOND * most:
            yield Fact(
                key=f"fingerprint.{family}",
                value=False,
                origin=Origin.DERIVED,
                quotes=_quotes(book, ("oom.requested",)),
                source="no product of the stated dimensions equals the request",
            )


def _fact(book: FactBook, key: str, value: bool | str, detail: Detail) -> Fact:
    """Make the fact of a match, with the places that state request and dimensions."""
    keys = dimensions(book).keys
    read = [keys[name] for name in detail.match.values if name in keys]
    return Fact(
        key=key,
        value=value,
        origin=Origin.ASSUMED if detail.match.assumed else Origin.DERIVED,
        quotes=_quotes(book, ("oom.requested", *read)),
        source=f"requested = {detail.match.expression}: {detail.match.meaning}",
    )


def _quotes(book: FactBook, keys: tuple[str, ...]) -> tuple[Quote, ...]:
    """Return the quotes of the given facts, each place once."""
    facts = (book.get(key) for key in keys)
    return tuple(dict.fromkeys(q for fact in facts if fact is not None for q in fact.quotes))
