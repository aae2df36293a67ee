"""What can be watched, and one such: the bundle of a run, while it is written or afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from oomdoctor.errors import InputError
from oomdoctor.growth.findings import findings
from oomdoctor.growth.verdict import Level
from oomdoctor.recorder.bundle import is_alive, moment_of, read_told, started_of
from oomdoctor.recorder.places import EVENTS_FILE, PROCESSES, SAMPLES_FILE
from oomdoctor.recorder.shapes import MESSAGE, SAMPLE, message_of
from oomdoctor.render.watch_words import duration, headline
from oomdoctor.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from oomdoctor.growth.book import Book
    from oomdoctor.growth.findings import Finding
    from oomdoctor.recorder.shapes import Shape

News: TypeAlias = "tuple[str | None, dict[str, Any]]"
RUNNING = "running"
GONE = "ended"
_VERDICTS = 400  # of processes; each takes some milliseconds
_FEWEST_PARTS, _MOST_PARTS = 10, 50
_MOST_READ = 64 << 20
"""Of a file at each look: a live screen has to go on."""


class Source(Protocol):
    """Something that is looked at again and again."""

    title: str
    is_over: bool
    notes: tuple[str, ...]

    def look(self, book: Book) -> str:
        """Put what is new into the book; return how it stands in a word or two."""


class BundleSource:
    """The bundle of a run, as far as it is written; one that is over is read to its end."""

    def __init__(self, folder: Path) -> None:
        """Read nothing yet."""
        self.title = f"run {folder.name}"
        self.is_over = False
        self.notes: tuple[str, ...] = ()
        self._told: tuple[str, ...] = ()
        self.folder = folder
        self._tails: dict[Path, Tail] = {}

    def look(self, book: Book) -> str:
        """Read what was added since the last look, in the order of time."""
        run = self.run()
        book.started = book.started or started_of(run)
        over = not is_alive(run)
        news = sorted(self.news(), key=lambda one: moment_of(one[0], one[1], book.started))
        if over and not book.seconds:
            self._told = replayed(news, book)
        else:
            book.put(news)
        out = [one for one in book.processes.values() if one.is_out]
        why = f"memory ran out: `oomdoctor show {self.folder.name}` says why when the run is over."
        self.notes = (*self._told, *((why,) if out else ()))
        self.is_over = over and not any(tail.has_more for tail in self._tails.values())
        if not over:
            return RUNNING
        return str(run.get("outcome") or GONE)

    def run(self) -> dict[str, Any]:
        """Return run.json; empty where it cannot be read."""
        try:
            return read_told(self.folder)
        except InputError:
            return {}

    def news(self) -> Iterator[News]:
        """Yield the lines that were added: of a process with its key, of samples without one."""
        for message in self._tail(self.folder / SAMPLES_FILE, SAMPLE).lines():
            yield None, message
        for path in sorted((self.folder / PROCESSES).glob(f"*/{EVENTS_FILE}")):
            for message in self._tail(path, MESSAGE).lines():
                message.setdefault("pid", _pid_of(path.parent.name))
                yield path.parent.name, message

    def _tail(self, path: Path, shape: Shape) -> Tail:
        return self._tails.setdefault(path, Tail(path, shape))


def replayed(news: Sequence[News], book: Book) -> tuple[str, ...]:
    """Read a run that is over in parts, and note when an alarm of each kind could be raised."""
    raised: dict[tuple[str, str], tuple[Finding, float]] = {}
    processes = len({key for key, _ in news})
    parts = min(_MOST_PARTS, max(_FEWEST_PARTS, _VERDICTS // max(processes, 1)))
    for part in range(parts):
        book.put(news[len(news) * part // parts : len(news) * (part + 1) // parts])
        for found in findings(book):
            if found.verdict.level is Level.ALARM:
                raised.setdefault(found.key[:2], (found, book.seconds))
    return tuple(_told(found, seconds, book) for found, seconds in raised.values())


def _told(found: Finding, seconds: float, book: Book) -> str:
    """Say at which step of how many an alarm could be raised, or after which time."""
    growth = found.verdict.growth
    steps = max(
        (one.step or 0 for one in book.processes.values() if one.pid == found.pid), default=0
    )
    if found.by_step and growth is not None and steps:
        moment = f"at step {format_count(int(growth.until))} of {format_count(steps)}"
    else:
        moment = f"{duration(seconds)} after the start, of {duration(book.seconds)}"
    return f"{headline(found)}: this could be told {moment}."


class Tail:
    """A file of JSON lines that grows; a line that is not whole yet waits for the next look."""

    def __init__(self, path: Path, shape: Shape) -> None:
        """Begin at its start; what has a value that its shape does not allow is left out."""
        self.has_more = False
        self._path = path
        self._shape = shape
        self._at = 0

    def lines(self) -> list[dict[str, Any]]:
        """Return the objects that were added; lines that hold none are left out."""
        try:
            if not self._path.is_file():  # a pipe would be waited for
                return []
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read(_MOST_READ)
        except OSError:
            return []
        self.has_more = len(data) == _MOST_READ
        whole = data.rfind(b"\n") + 1
        self._at += whole
        found = (message_of(line, self._shape) for line in data[:whole].splitlines())
        return [one for one in found if one is not None]


def _pid_of(name: str) -> int | None:
    head = name.partition("-")[0]
    return int(head) if head.isdecimal() else None
