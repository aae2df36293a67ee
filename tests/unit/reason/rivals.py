"""Two causes that rival each other, and how much of the mass one of them gets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.reason.rank import SHARPNESS
from tests.unit.reason.builders import cause, line, rule, ruleset

if TYPE_CHECKING:
    from oomdoctor.reason.rank import Ranking

FOREIGN = rule(
    "EXT5001",
    "other-process",
    evidence=[line("balance.foreign_low_share > 0.2", 0.95, 0.05, label="others hold a fifth")],
)
LARGE = rule(
    "ACT2001",
    "large-batch",
    evidence=[line("balance.allocated_share > 0.8", 0.85, 0.3, label="tensors fill the card")],
)
CAUSES = (cause("other-process", prior=0.06), cause("large-batch", prior=0.3))
RULES = ruleset([FOREIGN, LARGE], CAUSES)
CAUSES_AB = (cause("a", prior=0.2), cause("b", prior=0.2))


def probability(ranking: Ranking, name: str) -> float:
    return next((one.probability for one in ranking.findings if one.cause == name), 0.0)


def shown(first: float, *others: float) -> float:
    """Return the share of the first mass as it is shown, with sharpened odds."""
    return first**SHARPNESS / math.fsum(mass**SHARPNESS for mass in (first, *others))
