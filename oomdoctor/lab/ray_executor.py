"""Trials side by side on a Ray cluster: where they run, and that one lost is run again, is Ray's.

Each trial is a task with a card of its own (on the CPU back end: with a CPU). On the machine that
Ray chose, the same guard looks at the card before the trial, and the same back end runs it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import GuardError, UsageError
from oomdoctor.extras import need
from oomdoctor.lab.backends import BackendSpec, backend_of
from oomdoctor.lab.guard import ON_CARDS, Guard, Wish
from oomdoctor.lab.places import VISIBLE, Place
from oomdoctor.lab.protocol import decode, encode
from oomdoctor.model.trial import REFUSED, TrialResult, TrialSpec
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from typing_extensions import Self

    from oomdoctor.lab.executors import Hears

    Ray: TypeAlias = Any  # the library, which is not always there
    Plain: TypeAlias = dict[str, Any]

_POLL_SECONDS = 0.2
_RETRIES = 2  # of a task whose machine or process was lost; what a trial comes to is no failure


class RayExecutor:
    """Gives each trial to Ray; connects to the cluster of RAY_ADDRESS, else starts a local one."""

    def __init__(self, backend: BackendSpec, wish: Wish) -> None:
        """Connect to nothing yet."""
        if wish.shares and wish.cap_bytes is None:
            raise UsageError(
                "--executor ray with --share needs --cap: every machine would have a cap of its own"
            )
        self.width = 1
        self._backend = backend
        self._wish = wish
        self._ray: Ray = None
        self._task: Ray = None
        self._mine = False

    def __enter__(self) -> Self:
        """Connect, and see how many trials there is room for."""
        self._ray = ray = need("ray", purpose="--executor ray", extra="ray")
        self._mine = not ray.is_initialized()
        if self._mine:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        on_cards = self._backend.name in ON_CARDS
        found = ray.cluster_resources().get("GPU" if on_cards else "CPU", 0)
        if found < 1:
            self.__exit__()
            raise GuardError(
                "the Ray cluster has no card", hint="start its workers where cards are"
            )
        self.width = int(found)
        needs = {"num_gpus": 1, "num_cpus": 0} if on_cards else {"num_cpus": 1}
        self._task = ray.remote(max_retries=_RETRIES, **needs)(run_there)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._mine and self._ray is not None:
            self._ray.shutdown()

    def run(self, specs: Sequence[TrialSpec], hears: Hears) -> tuple[TrialResult, ...]:
        """Run trials, as many at a time as Ray has room for."""
        asked = {}
        for number, spec in enumerate(specs):
            hears.began(spec)
            hears.heard(spec, "given to Ray")
            task = self._task.remote(encode(self._backend), encode(self._wish), encode(spec))
            asked[task] = number
        results: dict[int, TrialResult] = {}
        waiting = list(asked)
        try:
            while waiting:
                done, waiting = self._ray.wait(waiting, timeout=_POLL_SECONDS)
                for task in done:
                    results[asked[task]] = self._result(task)
                    hears.ended(results[asked[task]])
        except BaseException:
            for task in waiting:
                self._ray.cancel(task, force=True)
            raise
        return tuple(results[number] for number in range(len(specs)))

    def _result(self, task: object) -> TrialResult:
        try:
            told = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            first = str(error).strip().partition("\n")[0]
            raise GuardError(f"Ray gave a trial up: {first}") from error
        if "refused" in told:
            raise GuardError(told["refused"], hint=told["hint"])
        return decode(TrialResult, told["result"])


def run_there(backend: Plain, wish: Plain, spec: Plain) -> Plain:
    """Run one trial on the machine where Ray has put it; all goes in and out as plain values."""
    trial = decode(TrialSpec, spec)
    visible = os.environ.get(VISIBLE)
    guard = Guard(replace(decode(Wish, wish), visible=visible, most=None))
    place = Place(guard, partial(backend_of, decode(BackendSpec, backend)))
    try:
        with place.opened():
            result = place.run(trial, lambda _: None)
    except GuardError as error:
        where = os.uname().nodename
        return {"refused": f"{where}: {error.message}", "hint": error.hint}
    if result.outcome == REFUSED:
        return {"refused": result.reason, "hint": None}
    return {"result": encode(result)}
