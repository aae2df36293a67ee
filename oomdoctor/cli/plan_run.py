"""One run of `plan`: what is settled, the card, and the settings that fit on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from oomdoctor.cli.estimate_run import described_by
from oomdoctor.cli.steps import steps_for
from oomdoctor.errors import UsageError
from oomdoctor.estimating.choice import engines
from oomdoctor.estimating.describe import cards_asked
from oomdoctor.estimating.flags import FLAGS, METHOD
from oomdoctor.estimating.plan import plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from oomdoctor.cli.plan import Asked
    from oomdoctor.model.estimate import FitPlan


def planned(values: Mapping[str, object], *, stdin: BinaryIO | None) -> FitPlan:
    """Return the plan that a command line asks for."""
    asked = cast("Asked", values)
    with (
        steps_for(quiet=asked["quiet"]) as say,
        engines(asked["engine"], say=say, python=asked["python"]) as chosen,
    ):
        source = described_by(values, stdin=stdin)
        cards = cards_asked(asked["gpu"], source.book())
        if not cards:
            raise click.UsageError("plan needs a card: --gpu NAME or SIZE")
        if len(cards) > 1:
            names = ", ".join(repr(card.name) for card in cards)
            raise UsageError("plan is for one card", hint=f"give one of {names}")
        if source.described().serving is not None:
            raise UsageError("plan is for training", hint="`estimate` says what fits for a server")
        return plan(source, cards[0], chosen, fixed=_fixed(values), say=say)


def _fixed(values: Mapping[str, object]) -> dict[str, str]:
    """Return the flags that were given, as texts."""
    given = {name: values.get(name.replace("-", "_")) for name in (METHOD, *FLAGS)}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
