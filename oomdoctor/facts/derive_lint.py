"""Derived facts that lint alone asks for, so that an answer to a log does not wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts import (
    derive_impossible,
    derive_lint_adapters,
    derive_lint_checks,
    derive_lint_loop,
    derive_lint_loss,
    derive_lint_memory,
    derive_lint_precision,
    derive_lint_setup,
    derive_lint_training,
)
from oomdoctor.facts.derivation import apply

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

STEPS = (
    *derive_impossible.STEPS,
    *derive_lint_training.STEPS,
    *derive_lint_memory.STEPS,
    *derive_lint_loss.STEPS,
    *derive_lint_adapters.STEPS,
    *derive_lint_loop.STEPS,
    *derive_lint_precision.STEPS,
    *derive_lint_setup.STEPS,
    *derive_lint_checks.STEPS,
)


def derive(book: FactBook) -> FactBook:
    """Return the book with what follows for lint; twice, since the groups feed each other."""
    return apply(apply(book, STEPS), STEPS)
