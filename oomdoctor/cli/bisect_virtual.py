"""Trials on virtual cards, as `bisect` and `confirm` ask for them: cards and interpreter."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.bisect_backend import search_path
from oomdoctor.lab.backends import backend_of
from oomdoctor.record import replace
from oomdoctor.virtual.card import MOST_CARDS, card_like, without_times
from oomdoctor.virtual.python import python_of
from oomdoctor.virtual.session import played_for
from oomdoctor.virtual.trials import Machine, VirtualTrials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.lab.backend import Backend
    from oomdoctor.lab.backends import BackendSpec
    from oomdoctor.lab.places import MakeBackend, Stop


def counted(names: tuple[str, ...], *, has_command: bool) -> tuple[tuple[str, ...], int]:
    """Return the names of cards without how often they stand, and how often: `L4 x2`."""
    if len(names) != 1:
        return names, 1
    name, count = without_times(names[0].strip())
    if count > 1 and not has_command:
        raise click.UsageError(
            f"--gpu {names[0]!r}: a trial of a job runs on one card; only a command behind -- can"
            " start a rank on each of several"
        )
    if count > MOST_CARDS:
        raise click.UsageError(f"--gpu {names[0]!r}: a machine has 1 to {MOST_CARDS} virtual cards")
    return (name,), count


def machine_of(setup: Setup, asked: Asked) -> Machine:
    """Return the cards of every trial, for the torch of the job or of the command.

    InputError says what lacks for them. What is compiled is kept, so that this is slow but once.
    """
    if setup.card is None:
        raise click.UsageError("--backend virtual needs a card: --gpu NAME")
    if asked["executor"] == "ray":
        raise click.UsageError(
            "--backend virtual runs on this machine alone: --executor local runs trials side by"
            " side"
        )
    card_like(setup.card)  # refuses what cannot be played
    command = setup.command_at({})
    words = () if command is None else command.arguments
    python = asked["python"]
    if words:
        path = search_path(asked["backend"], asked["python"])
        python = python_of(words, os.environ if path is None else {**os.environ, "PATH": path})
    python = python or sys.executable
    return Machine(setup.card, setup.cards, python, played_for(python))


def virtual_maker(setup: Setup, asked: Asked, spec: BackendSpec) -> MakeBackend:
    """Return what makes the back end of each place."""
    path = search_path(asked["backend"], asked["python"])
    spec = replace(spec, environment={} if path is None else {"PATH": path})
    return partial(_trials, machine_of(setup, asked), spec)


def _trials(
    machine: Machine, spec: BackendSpec, stop: Stop, environment: Mapping[str, str]
) -> Backend:
    def make(cards: Mapping[str, str]) -> Backend:
        own = replace(spec, environment={**spec.environment, **cards})
        return backend_of(own, stop, environment)

    return VirtualTrials(machine, make)
