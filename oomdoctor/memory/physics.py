"""Everything that formulas say about the job: states, activations, logits, caches, fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.derivation import apply
from oomdoctor.memory import (
    activations,
    attention,
    bounds,
    flat,
    kv_cache,
    logits,
    overheads,
    states,
)
from oomdoctor.memory.signs import fingerprint_facts

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

STEPS = (
    *states.STEPS,
    *bounds.STEPS,
    *activations.STEPS,
    *logits.STEPS,
    *attention.STEPS,
    *kv_cache.STEPS,
    *overheads.STEPS,
    *flat.STEPS,
)


def derive(book: FactBook) -> FactBook:
    """Return the book with the formulas' facts; what was stated or measured stays as it is."""
    calculated = apply(book, STEPS)
    return calculated.add(fingerprint_facts(calculated))
