"""An experiment: a change that takes one cause away and leaves everything else as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Safety
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.trial import Value

CONTROL = "nothing"
"""The injected change that changes nothing: a control has to fail as the baseline does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What the treated trial runs, for a job and for a command.

    `causes` are those that it speaks of; several experiments may speak of one, the first that can
    be done is taken. A job is changed by `job` (a name of JOB_CHANGES). A command gets the patch of
    a rule's fix of the name `fix` in copies of its configs, else `environment`, else the injected
    change `hook` with `arguments`. `lifts_cap` runs without the cap that a caller or another
    process put on the memory. `steps` are those that it takes until the cause shows.
    `safety` and `time_factor` order changes that would all do: quality first, then speed; one that
    only shows a cause, and that nobody would train with, is no remedy. A cause with `grows` keeps
    something from step to step (None: it may or may not); `phases` are those in which a cause can
    run out of memory at all, where it is not all of them. One `of_allocator` shows on a card alone.
    """

    name: str
    causes: tuple[str, ...]
    title: str
    safety: Safety = Safety.SAFE
    time_factor: float = 1.0
    job: str | None = None
    fix: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    hook: str | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)
    lifts_cap: bool = False
    is_remedy: bool = True
    grows: bool | None = False
    phases: tuple[str, ...] = ()
    of_allocator: bool = False
    steps: int = 2
    evaluates: bool = False
    saves: bool = False
