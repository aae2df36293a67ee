"""All derived facts in the order in which they feed each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts import (
    derive_balance,
    derive_engine_command,
    derive_full,
    derive_job,
    derive_lint_loop,
    derive_lint_training,
    derive_listed,
    derive_model,
    derive_pools,
    derive_run,
    derive_serve,
    derive_shares,
    derive_trained,
)
from oomdoctor.facts.derivation import apply

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

STEPS = (
    *derive_model.CARD_STEPS,
    *derive_balance.STEPS,
    *derive_listed.STEPS,
    *derive_shares.STEPS,
    *derive_full.PRINTED_STEPS,
    *derive_model.STEPS,
    *derive_serve.STEPS,
    *derive_engine_command.STEPS,
    *derive_run.STEPS,
    *derive_lint_training.FIRST_STEPS,
    *derive_job.STEPS,
    *derive_lint_loop.EVERYWHERE,
    *derive_trained.STEPS,
    *derive_full.STEPS,
    *derive_trained.STEPS,
    *derive_pools.STEPS,
)


def derive(book: FactBook) -> FactBook:
    """Return the book with everything that follows from it; what was stated stays as it is."""
    return apply(book, STEPS)
