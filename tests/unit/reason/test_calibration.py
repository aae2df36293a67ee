"""Probabilities as they are shown: sharpened, in the same order, and no ground to decide."""

from __future__ import annotations

import math

import pytest

from oomdoctor.reason.rank import SHARPNESS, calibrated, rank
from tests.unit.reason.builders import book, cause, line, rule, ruleset


def test_calibration_sharpens_odds_and_keeps_the_order() -> None:
    shares, other = calibrated((0.6, 0.3), 0.1)

    assert shares[0] / shares[1] == pytest.approx(2**SHARPNESS)
    assert other / shares[1] == pytest.approx(3**-SHARPNESS)
    assert math.fsum(shares) + other == pytest.approx(1)


def test_what_is_established_is_decided_before_calibration() -> None:
    """Shown as 71 % against 29 %, judged as 65 % against 35 %, which is not three to one."""
    rules = [
        rule("A", "a", evidence=[line("oom.hint_line", 0.9, 0.05)]),
        rule("B", "b", evidence=[line("oom.hint_line", 0.5, 0.05)]),
    ]
    ranking = rank(
        ruleset(rules, [cause("a"), cause("b")]), book(oom__seen=True, oom__hint_line=True)
    )

    assert ranking.probabilities[0] > ranking.masses[0]
    assert not ranking.conclusive
