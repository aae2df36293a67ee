"""Quotes of a bundle's files: the piece of a line that states a figure, and where it stands.

.oomdoctor/runs/20260114-093012-train/processes/4711-1378510/events.jsonl:42  "number":41
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.model.core import Artifact, Fact, Quote
from oomdoctor.model.enums import Origin
from oomdoctor.recorder.places import EVENTS_FILE, PROCESSES, RUN_FILE, SAMPLES_FILE, content_of

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.core import Value

KIND = "recording"
_LONGEST = 300


class Quoting:
    """Makes facts of one bundle; `artifacts` are the files that were quoted."""

    def __init__(self, folder: Path) -> None:
        """Quote nothing yet."""
        self._folder = folder
        self._texts: dict[Path, list[str]] = {}

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Return the files that were quoted."""
        return tuple(
            Artifact(id=str(path), kind=KIND, path=str(path), size_bytes=path.stat().st_size)
            for path in self._texts
            if path.exists()
        )

    def event(self, key: str, line: int, name: str) -> Quote:
        """Quote a figure of a process's message."""
        return self._piece(self._folder / PROCESSES / key / EVENTS_FILE, line, name)

    def sample(self, line: int, name: str) -> Quote:
        """Quote a figure of a sample."""
        return self._piece(self._folder / SAMPLES_FILE, line, name)

    def run(self, name: str) -> Quote:
        """Quote what run.json says under a name."""
        path = self._folder / RUN_FILE
        wanted = f"{json.dumps(name)}:"
        for number, line in enumerate(self._lines(path), start=1):
            if line.strip().startswith(wanted):
                text = line.strip().rstrip(",")[:_LONGEST]
                return Quote(artifact=str(path), line=number, text=text, column=2)
        return Quote(artifact=str(path), line=1, text=name)

    def _piece(self, path: Path, line: int, name: str) -> Quote:
        """Quote `"name":value`, or the beginning of the line where it has no such name."""
        lines = self._lines(path)
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        at = text.find(f"{json.dumps(name)}:")
        if at < 0:
            return Quote(artifact=str(path), line=line, text=text[:_LONGEST])
        piece = _value_from(text, at)[:_LONGEST]
        return Quote(
            artifact=str(path),
            line=line,
            text=piece,
            column=at + 1,
            end_column=at + 1 + len(piece),
        )

    def _lines(self, path: Path) -> list[str]:
        if path not in self._texts:
            self._texts[path] = content_of(path).decode(errors="replace").split("\n")
        return self._texts[path]


def seen(key: str, value: Value, *quotes: Quote, source: str | None = None) -> Fact:
    """Return a fact that the recorder has seen; what a log states outranks it."""
    return Fact(key=key, value=value, origin=Origin.PROBED, quotes=quotes, source=source)


def holds(key: str, *quotes: Quote, source: str | None = None, value: bool = True) -> Fact:
    """Return the fact that something is so, or is not."""
    return Fact(key=key, value=value, origin=Origin.PROBED, quotes=quotes, source=source)


def _value_from(text: str, at: int) -> str:
    """Return the piece of JSON from a name to the end of its value."""
    start = text.index(":", at) + 1
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return text[at:]
    return text[at:end]
