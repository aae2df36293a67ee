"""Score matrices of attention, which the eager implementation writes out in full."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

HALF = 2


@derives("attention.scores", reads=("train.tokens", "train.seq_len", "model.heads"))
def scores(facts: Inputs) -> Outcome:
    """Rows x heads x tokens^2 x 2 bytes: one 16-bit matrix of one layer."""
    pairs = facts.whole("train.tokens") * facts.whole("train.seq_len")
    return Outcome(HALF * pairs * facts.whole("model.heads"), "rows x heads x tokens^2 x 2 bytes")


@derives("attention.scores_to_request", reads=("attention.scores", "oom.requested"))
def scores_to_request(facts: Inputs) -> Outcome:
    """Scores / request: 1 and 0.5 speak for a 16-bit and an fp32 score matrix."""
    asked = facts.number("oom.requested")
    value = facts.number("attention.scores") / asked
    return Outcome(value, "scores / requested", value * facts.slack("oom.requested") / asked)


STEPS = (scores, scores_to_request)
