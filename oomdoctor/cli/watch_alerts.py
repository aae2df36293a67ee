"""What an alert is, and where it goes: the exit code, a file, a command."""

from __future__ import annotations

import json
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.cli.run_options import seconds_of
from oomdoctor.errors import InputError, Location
from oomdoctor.growth.verdict import Kind, Level
from oomdoctor.record import NamedTuple
from oomdoctor.render.watch_json import verdict_dict
from oomdoctor.render.watch_words import headline, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.growth.findings import Finding

LEAK = "leak"
GROWTH = "growth"
SOON = "oom-in"
_GROWING = frozenset(
    (
        *(Kind.DEVICE_LEAK, Kind.HOST_LEAK, Kind.CACHE_GROWTH, Kind.FRAGMENTATION),
        Kind.CARD_GROWTH,
    )
)


class Condition(NamedTuple):
    """When to raise an alert: at a leak, at any growth, or when memory is full within a time."""

    kind: str
    within_s: float | None = None

    def holds(self, found: Finding) -> bool:
        """Say whether a finding is one to raise an alert for."""
        verdict = found.verdict
        if self.kind == LEAK:
            return verdict.level is Level.ALARM
        if self.kind == GROWTH:
            return verdict.level > Level.QUIET and verdict.kind in _GROWING
        told = verdict.forecast
        seconds = None if told is None else told.seconds
        return seconds is not None and self.within_s is not None and seconds <= self.within_s


def condition(text: str) -> Condition | None:
    """Return the condition that a text stands for, such as `oom-in=30m`; None if it is none."""
    if text in (LEAK, GROWTH):
        return Condition(text)
    name, _, rest = text.partition("=")
    return Condition(SOON, seconds_of(rest)) if name == SOON else None


class AlertPlaces:
    """Raises each alert once: a line in a file, a call of a command."""

    def __init__(
        self, conditions: Sequence[Condition], *, path: str | None, command: str | None
    ) -> None:
        """Read the command as a shell would, which never sees it."""
        from oomdoctor.lab.alert import Alerts

        self.problems: list[str] = []
        self._conditions = conditions or (Condition(LEAK),)
        self._path = path
        self._command = shlex.split(command) if command else []
        self._calls = Alerts()
        self._raised: set[tuple[str, str, int | None, int | None]] = set()

    def look(self, findings: Sequence[Finding]) -> bool:
        """Raise what is new; return whether anything is to be raised at all."""
        due = [one for one in findings if any(each.holds(one) for each in self._conditions)]
        for one in due:
            if one.key not in self._raised:
                self._raised.add(one.key)
                self._raise(one)
        return bool(due)

    def finish(self) -> None:
        """Wait for the commands that were called."""
        self._calls.finish()

    def _raise(self, found: Finding) -> None:
        text = json.dumps(
            {
                "at": datetime.now(tz=timezone.utc).isoformat(timespec="seconds"),
                "alert": headline(found),
                "text": " ".join(sentences(found)),
                **verdict_dict(found),
            }
        )
        if self._path is not None:
            _append(self._path, text)
        if self._command:
            kind = found.verdict.kind.value
            problem = self._calls.call(self._command, kind=kind, text=text)
            if problem is not None:
                self.problems.append(f"the alert command {self._command[0]!r} failed: {problem}")


def _append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise InputError(
            f"the alert cannot be written: {error.strerror}", location=Location(path=path)
        ) from error
