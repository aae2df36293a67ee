"""`estimate --entry`: the user's own function is the job; no other code of a user ever runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from oomdoctor.cli.steps import steps_for
from oomdoctor.estimating.cards import PLAIN, cards_of
from oomdoctor.estimating.choice import engines
from oomdoctor.estimating.estimate import Wanted, estimate
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.lab.session import WorkerSession
from oomdoctor.model.estimate import FORMULA, VIRTUAL
from oomdoctor.model.job import EntrySpec, Job, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.cli.estimate import Asked
    from oomdoctor.model.estimate import Estimate

_WITHOUT = ("configs", "model", "what_if", "table", "batches", "lengths", "fact")


def estimated_entry(values: Mapping[str, object]) -> Estimate:
    """Return the estimate of the function that --entry names."""
    asked = cast("Asked", values)
    _check(asked, values)
    cards = cards_of(asked["gpu"]) if asked["gpu"] else ()
    wanted = Wanted(cards=cards, alloc_confs=asked["alloc_conf"], with_limits=False)
    card = cards[0] if cards else None
    settings = wanted.alloc_confs[0] if wanted.alloc_confs else ""
    job = _job(asked)
    with steps_for(quiet=asked["quiet"]) as say:
        if asked["engine"] == VIRTUAL:
            with engines(VIRTUAL, settings=settings, say=say, python=asked["python"]) as chosen:
                return chosen.speak(card, lambda engine: estimate(job, engine, wanted, say=say))
        with WorkerSession(python=asked["python"], progress=say) as session:
            engine = Simulation(session, card or PLAIN, settings=settings, say=say)
            return estimate(job, engine, wanted, say=say)


def _check(asked: Asked, values: Mapping[str, object]) -> None:
    if asked["entry"] is None:
        raise click.UsageError("--entry-args without --entry")
    if asked["engine"] == FORMULA:
        raise click.UsageError("--entry is traced; the formula knows nothing of your code")
    beside = [name for name in _WITHOUT if values.get(name)]
    if beside:
        named = ", ".join("CONFIG" if one == "configs" else _flag(one) for one in beside)
        raise click.UsageError(f"--entry is the whole job: {named} cannot stand beside it")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _job(asked: Asked) -> Job:
    place = str(asked["entry"])
    if not all(place.rpartition(":")[::2]):
        raise click.UsageError(f"--entry {place!r}: expected MODULE:FUNCTION or FILE.py:FUNCTION")
    arguments = dict(_pair(text) for text in asked["entry_args"])
    entry = EntrySpec(place=place, folder=str(Path.cwd()), arguments=arguments)
    model = ModelSpec(name=place, config={}, source="the user's own code")
    return Job(model=model, framework="torch", entry=entry)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise click.UsageError(f"--entry-args {text!r}: expected NAME=VALUE")
    return name.strip(), value
