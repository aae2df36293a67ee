"""Settings that no job can have: where some were read and none is such, that is said for lint."""

from __future__ import annotations

from oomdoctor.facts.bounds import KINDS
from oomdoctor.facts.derivation import Derivation, Inputs, Outcome, derives
from oomdoctor.facts.derive_lint_precision import SETTINGS

NONE = "none"


def _none(kind: str) -> Derivation:
    """Return what says that no setting of a kind is impossible; one that is was read before."""

    @derives(f"impossible.{kind}", reads=(SETTINGS,))
    def none(facts: Inputs) -> Outcome | None:
        return Outcome(NONE, "no such setting") if facts.glance(SETTINGS) else None

    return none


STEPS = tuple(_none(kind) for kind in KINDS)
