"""Which engine speaks: the simulation wherever torch is there, else the formula, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oomdoctor.errors import OomdoctorError
from oomdoctor.model.estimate import FORMULA, SIMULATE, VIRTUAL

if TYPE_CHECKING:
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.estimating.shapes import Shape
    from oomdoctor.model.job import CardSpec, Job

NO_TORCH = "torch is not installed beside oomdoctor; `pip install 'oomdoctor[lab]'` brings it"

_INSTEAD = {
    SIMULATE: "`--engine formula` computes the answer; without --engine the formula speaks"
    " where a job cannot be simulated, and the answer says why",
    VIRTUAL: "without --engine the job is simulated with any build of torch, or computed where it"
    " cannot be, and the answer says why",
}


class NotSimulatedError(OomdoctorError):
    """A simulation, or a run on a virtual card, was asked for by name, and there is none."""

    def __init__(self, why: str, *, engine: str = SIMULATE, hint: str | None = None) -> None:
        """Say why, and what answers instead."""
        super().__init__(f"--engine {engine}: {why}", hint=hint or _INSTEAD[engine])


class Engine(Protocol):
    """Says the peak of a job and of other batches of it."""

    name: str
    settings: str

    def peak(self, job: Job) -> Peak:
        """Return the peak with all that is known of it."""
        ...

    def at(self, job: Job, shape: Shape) -> Peak:
        """Return the peak of another batch of the job."""
        ...

    def under(self, settings: str) -> Engine:
        """Return the engine under other settings of the allocator."""
        ...

    def on(self, card: CardSpec) -> Engine:
        """Return the engine for a card, which may be of another generation."""
        ...

    def end_on(self, job: Job, card: CardSpec) -> str | None:
        """Say how a run on a card of its own size ends; None where nothing is run."""
        ...


def engine_wanted(asked: str | None) -> tuple[str, str | None]:
    """Return the engine to begin with, and why it is not the simulation where nobody chose."""
    if asked is not None:
        return asked, None
    return (SIMULATE, None) if torch_is_there() else (FORMULA, NO_TORCH)


def torch_is_there() -> bool:
    """Say whether this interpreter could import torch; it is looked for, not imported."""
    from importlib.machinery import PathFinder

    try:
        return PathFinder.find_spec("torch") is not None
    except (ImportError, ValueError):
        return False
