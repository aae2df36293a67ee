"""The engine for a job: the simulation with its worker, or the formula where it cannot speak.

A run on a virtual card is for who asks for it by name; nothing stands in for it.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from oomdoctor.estimating.cards import PLAIN
from oomdoctor.estimating.engine import NotSimulatedError, engine_wanted
from oomdoctor.estimating.formula import Formula
from oomdoctor.model.estimate import FORMULA, SIMULATE, VIRTUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.simulation import Tracer
    from oomdoctor.estimating.virtual_sessions import VirtualSessions
    from oomdoctor.lab.session import WorkerError, WorkerSession
    from oomdoctor.model.job import CardSpec


T = TypeVar("T")
HOPELESS = ("no-torch", "shim-failed")
"""Kinds of failure after which no other job can be simulated either."""


class Engines:
    """Gives the engine that is wanted, and the formula where nobody chose and none is traced."""

    def __init__(
        self,
        asked: str | None,
        *,
        settings: str = "",
        say: Callable[[str], None] = lambda _: None,
        tracer: Tracer | None = None,
        python: str | None = None,
    ) -> None:
        """Choose; `tracer` stands for the worker, `python` is the interpreter with torch."""
        self.asked = asked
        self.settings = settings
        self._python = python
        self.say = say
        self._tracer = tracer
        self._own: WorkerSession | None = None
        self._sessions: VirtualSessions | None = None
        if tracer is None and python is None:
            self.name, self.fallback = engine_wanted(asked)
        else:
            self.name, self.fallback = asked or SIMULATE, None

    def speak(self, card: CardSpec | None, action: Callable[[Engine], T]) -> T:
        """Let the wanted engine speak; where a job cannot be traced, the formula does.

        NotSimulatedError where the simulation, or a virtual card, was asked for by name.
        """
        if self.name == VIRTUAL:
            return self._virtually(card, action)
        if self.name == SIMULATE:
            from oomdoctor.estimating.simulation import Simulation
            from oomdoctor.lab.session import WorkerError

            try:
                session = self._session()
                made = Simulation(session, card or PLAIN, settings=self.settings, say=self.say)
                return action(made)
            except WorkerError as error:
                if self.asked == SIMULATE:
                    raise NotSimulatedError(_why(error)) from error
                self.fallback = _why(error)
                self.say(f"not simulated: {self.fallback}")
                if error.kind in HOPELESS:
                    self.name = FORMULA
        return action(Formula(settings=self.settings))

    def _virtually(self, card: CardSpec | None, action: Callable[[Engine], T]) -> T:
        from oomdoctor.estimating.virtual import Virtual
        from oomdoctor.estimating.virtual_sessions import VirtualSessions
        from oomdoctor.lab.session import WorkerError

        if self._sessions is None:
            self._sessions = VirtualSessions(self._python or sys.executable, self.say)
        try:
            return action(Virtual(self._sessions, card, settings=self.settings, say=self.say))
        except WorkerError as error:
            raise NotSimulatedError(_why(error), engine=VIRTUAL, hint=error.hint) from error

    def start(self) -> None:
        """Let the worker import its libraries while the caller reads configs."""
        if self.name == SIMULATE and self._tracer is None:
            from oomdoctor.lab.session import WorkerError, WorkerSession

            self._own = WorkerSession(python=self._python, progress=self.say)
            with suppress(WorkerError):  # told when it is asked
                self._own.start()

    def _session(self) -> Tracer:
        if self._tracer is not None:
            return self._tracer
        if self._own is None:
            self.start()
        if self._own is None:
            raise ValueError("no worker is wanted")
        return self._own

    def close(self) -> None:
        """Let the worker go."""
        if self._own is not None:
            self._own.close()
            self._own = None
        if self._sessions is not None:
            self._sessions.close()
            self._sessions = None


@contextmanager
def engines(
    asked: str | None,
    *,
    settings: str = "",
    say: Callable[[str], None] = lambda _: None,
    tracer: Tracer | None = None,
    python: str | None = None,
) -> Iterator[Engines]:
    """Give engines, and let their worker go at the end."""
    made = Engines(asked, settings=settings, say=say, tracer=tracer, python=python)
    made.start()
    try:
        yield made
    finally:
        made.close()


def _why(error: WorkerError) -> str:
    """Say in a line why there is no trace; the rest of a crash is in the worker's own words."""
    first, _, rest = error.message.partition("\n")
    if first.rstrip(" .").endswith(":"):  # what was raised begins on the next line
        first = f"{first.rstrip(' .')} {rest.strip().partition(chr(10))[0]}"
    return f"{error.kind}: {first}"
