"""Which engine speaks: the simulation wherever torch is there, else the formula, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oomdoctor.model.estimate import FORMULA, SIMULATE

if TYPE_CHECKING:
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.estimating.shapes import Shape
    from oomdoctor.model.job import CardSpec, Job

NO_TORCH = "torch is not installed beside oomdoctor; `pip install 'oomdoctor[lab]'` brings it"


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
