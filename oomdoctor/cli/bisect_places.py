"""The places where trials run: this process' cards, one by one or all at once, or a Ray cluster."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.bisect_backend import VIRTUAL
from oomdoctor.lab.backends import COMMAND, JOB, BackendSpec, backend_of
from oomdoctor.lab.devices import MachineLooks, chosen
from oomdoctor.lab.executors import OneByOne, SideBySide
from oomdoctor.lab.guard import ON_CARDS, Guard, Wish
from oomdoctor.lab.places import VISIBLE, Place
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.memory.outside import CONTEXT
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.lab.backend import Backend
    from oomdoctor.lab.executors import Executor
    from oomdoctor.lab.guard import Allowed
    from oomdoctor.lab.places import MakeBackend, Stop
    from oomdoctor.model.trial import Value

MOST_ON_HOST = 4
"""Trials of the CPU that run side by side; each takes threads and memory of its own."""


class Opened(NamedTuple):
    """Places that are guarded and locked, and what is allowed in all of them."""

    places: tuple[Place, ...]
    allowed: Allowed


@contextmanager
def opened(setup: Setup, asked: Asked, earlier: Allowed | None = None) -> Iterator[Opened]:
    """Look at the places of a run, lock them, and give them."""
    if setup.backend == VIRTUAL:
        from oomdoctor.cli.bisect_virtual import machine_of

        machine_of(setup, asked)  # what lacks is said before anything is kept of the run
    places = tuple(Place(Guard(wish)) for wish in wishes(setup, asked))
    with ExitStack() as stack:
        allowed = [stack.enter_context(place.opened(earlier)) for place in places]
        yield Opened(places, tightest(allowed))


@contextmanager
def executor_of(
    setup: Setup, asked: Asked, places: tuple[Place, ...], folder: Path
) -> Iterator[Executor]:
    """Give what runs the trials of a run whose files are in `folder`."""
    if asked["executor"] == "ray":
        from oomdoctor.lab.ray_executor import RayExecutor

        wish = Wish(
            backend=setup.backend,
            cap_bytes=None if setup.on_host else setup.cap_bytes,
            shares=asked["share"],
        )
        with RayExecutor(backend_spec(setup, asked, folder), wish) as executor:
            yield executor
        return
    make = _maker(setup, asked, folder)
    for place in places:
        place.use(make)
    yield SideBySide(places) if len(places) > 1 else OneByOne(places[0])


def tightest(allowed: list[Allowed]) -> Allowed:
    """Return what holds in all places: a trial is the same wherever it runs."""
    return replace(
        allowed[0],
        devices=tuple(uuid for one in allowed for uuid in one.devices),
        cap_bytes=min((one.cap_bytes for one in allowed if one.cap_bytes), default=None),
        room_bytes=min((one.room_bytes for one in allowed if one.room_bytes), default=None),
        host_cap_bytes=min(
            (one.host_cap_bytes for one in allowed if one.host_cap_bytes), default=None
        ),
        names=tuple(dict.fromkeys(name for one in allowed for name in one.names)),
        notes=tuple(note for one in allowed for note in one.notes),
    )


def wishes(setup: Setup, asked: Asked) -> list[Wish]:
    """Return what to ask of the guard of each place of this machine."""
    visible = os.environ.get(VISIBLE)
    cap = None if setup.on_host else setup.cap_bytes
    ray = asked["executor"] == "ray"
    if ray and setup.backend in ON_CARDS:
        # the cards are those of the cluster's machines, where each trial has its own guard
        return [Wish(backend="remote", cap_bytes=cap)]
    side_by_side = asked["executor"] == "local"
    if setup.backend not in ON_CARDS:
        count = min(os.cpu_count() or 1, MOST_ON_HOST) if side_by_side else 1
        return [Wish(backend=setup.backend, cap_bytes=cap)] * count
    if side_by_side:
        cards = chosen(MachineLooks(), visible)
        return [
            Wish(
                backend=setup.backend,
                visible=card.uuid,
                most=1,
                cap_bytes=cap,
                shares=asked["share"],
            )
            for card in cards
        ]
    # a command may start a rank on every card that it sees, a job runs on one
    most = 1 if setup.template is None else None
    return [
        Wish(
            backend=setup.backend,
            visible=visible,
            most=most,
            cap_bytes=cap,
            shares=asked["share"],
        )
    ]


def backend_spec(setup: Setup, asked: Asked, folder: Path) -> BackendSpec:
    """Return the back end of a run as plain values."""
    simulated = setup.backend == "simulate"
    whole_card = simulated and setup.cap_bytes is None
    return BackendSpec(
        name=setup.backend,
        runs=JOB if setup.template is None else COMMAND,
        folder=str(folder.absolute()),
        python=asked["python"],
        card=setup.card if simulated else None,
        outside_bytes=CONTEXT[1] if whole_card else 0,
    )


def _maker(setup: Setup, asked: Asked, folder: Path) -> MakeBackend:
    if setup.backend == "formula":
        return partial(_by_formula, setup)
    if setup.backend == VIRTUAL:
        from oomdoctor.cli.bisect_virtual import virtual_maker

        return virtual_maker(setup, asked, backend_spec(setup, asked, folder))
    return partial(backend_of, backend_spec(setup, asked, folder))


def _by_formula(setup: Setup, stop: Stop, environment: Mapping[str, str]) -> Backend:
    """Return trials that are computed: of the job's peak by formula, against card or cap."""
    del stop, environment
    from oomdoctor.cli.bisect_start import peak_at
    from oomdoctor.estimating.formula import Formula

    job, card = setup.job, setup.card
    if job is None or card is None:
        raise click.UsageError("--backend formula computes a job's peak; it needs a job and a card")
    engine = Formula()

    def peak(values: Mapping[str, Value]) -> float:
        return peak_at(engine, job, values).needed

    cap = setup.cap_bytes if setup.cap_bytes is not None else card.total_bytes - CONTEXT[1]
    return FormulaBackend(peak, cap_bytes=cap)
