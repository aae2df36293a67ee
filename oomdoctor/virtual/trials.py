"""Trials on virtual cards: each has cards, a log and a folder for checkpoints of its own.

What a trial runs is another back end's, which gets the environment that puts its processes on
the cards. At the end its result says what was taken for granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, replace
from oomdoctor.virtual.card import card_like
from oomdoctor.virtual.session import Session, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.lab.backend import Backend
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.trial import TrialResult, TrialSpec
    from oomdoctor.virtual.session import Played

NAME = "virtual"


class Machine(NamedTuple):
    """A card so many times, for the interpreter whose torch runs on them."""

    card: CardSpec
    times: int
    python: str
    played: Played


class VirtualTrials:
    """Runs each trial on a machine of its own; `make` gives what runs it in an environment."""

    name = NAME

    def __init__(self, machine: Machine, make: Callable[[Mapping[str, str]], Backend]) -> None:
        """Start nothing yet."""
        self._machine = machine
        self._make = make

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Run one trial to its end, on the card that it names or else on the machine's."""
        machine = self._machine
        cards = (card_like(spec.card or machine.card),) * machine.times
        with Session(Wanted(cards=cards), (machine.python,), played=machine.played) as session:
            result = self._make(session.environment).run(spec, hear)
            assumed = session.report().assumptions()
            return replace(result, assumptions=(*result.assumptions, *assumed))
