"""What verdicts do to the ranking of causes: experiments weigh more than anything that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import CONFIRMED, REFUTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.model.trial import Confirmation

WEIGHTS: Mapping[str, float] = {CONFIRMED: 20.0, REFUTED: 0.05}
"""By how much a verdict multiplies the odds of its cause. A treated run that fits while baseline
and control fail is seen in about one of twenty wrong causes (two causes that share a remedy), and a
right cause fails its experiment about as seldom: another reason hides behind the first."""


def reranked(
    probabilities: Mapping[str, float], confirmations: Sequence[Confirmation]
) -> dict[str, float]:
    """Return the probabilities of the causes after the verdicts, likeliest first.

    What is left for other causes keeps its weight; the sum with it stays one.
    """
    rest = max(0.0, 1.0 - sum(probabilities.values()))
    weighed = dict(probabilities)
    for one in confirmations:
        if one.cause in weighed:
            weighed[one.cause] *= WEIGHTS.get(one.verdict, 1.0)
    total = sum(weighed.values()) + rest
    if total <= 0:
        return dict(probabilities)
    shares = {cause: value / total for cause, value in weighed.items()}
    return dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])))
