"""Trials as they run, on standard error: a table on a terminal, elsewhere a line for each."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from oomdoctor.lab.keys import key_of
from oomdoctor.render.bisect_words import figures_words, outcome_words, values_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.live import Live
    from rich.table import Table
    from typing_extensions import Self

    from oomdoctor.lab.drive import Tells
    from oomdoctor.model.trial import TrialResult, TrialSpec

_MOST_ROWS = 20


@contextmanager
def shown_trials(*, quiet: bool) -> Iterator[Tells]:
    """Give what shows trials; with `quiet` nothing is shown."""
    stream = sys.stderr
    if quiet or stream is None:
        yield _Silent()
    elif stream.isatty():
        with _LiveTable() as table:
            yield table
    else:
        yield _Lines()


class _Silent:
    def began(self, spec: TrialSpec) -> None:
        pass

    def heard(self, spec: TrialSpec, text: str) -> None:
        pass

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        pass


class _Lines(_Silent):
    """Prints a line when a trial has ended."""

    def __init__(self) -> None:
        self._count = 0

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        from oomdoctor.cli.output import say

        self._count += 1
        words = [values_words(result.values), outcome_words(result), *figures_words(result)]
        if replayed:
            words.append("from the journal")
        say(f"trial {self._count}: {', '.join(word for word in words if word)}")


class _Row:
    """A trial in the table, from its beginning to its end."""

    def __init__(self, values: str) -> None:
        self.values = values
        self.text = "starting"
        self.began = time.monotonic()
        self.result: TrialResult | None = None
        self.replayed = False


class _LiveTable:
    """Redraws a table of all trials a few times a second."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: dict[str, _Row] = {}
        console = Console(stderr=True)
        self._live: Live = Live(
            console=console,
            get_renderable=self._drawn,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the terminal may be gone, and the answer go to a file
            self._live.stop()

    def began(self, spec: TrialSpec) -> None:
        self._rows[key_of(spec)] = _Row(values_words(spec.values))

    def heard(self, spec: TrialSpec, text: str) -> None:
        row = self._rows.get(key_of(spec))
        if row is not None:
            row.text = text

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        row = self._rows.setdefault(result.key, _Row(values_words(result.values)))
        row.result, row.replayed = result, replayed

    def _drawn(self) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE, caption="Ctrl-C ends the search with the best so far")
        for name in ("trial", "values", "outcome", "peak", "time"):
            table.add_column(name, justify="right" if name in ("trial", "time") else "left")
        rows = list(enumerate(self._rows.values(), 1))
        for number, row in rows[-_MOST_ROWS:]:
            cells = (str(number), row.values, *_state(row))
            table.add_row(*(Text(_printable(cell)) for cell in cells))
        return table


def _state(row: _Row) -> tuple[str, str, str]:
    """Return outcome, peak and time of a row as they are now."""
    if row.result is None:
        return row.text, "", f"{time.monotonic() - row.began:.0f} s"
    seconds = "journal" if row.replayed else f"{row.result.seconds:.1f} s"
    return outcome_words(row.result), ", ".join(figures_words(row.result)), seconds


def _printable(text: str) -> str:
    """Return a text without what could act on a terminal: trials print what they like."""
    return "".join(char if char.isprintable() else "?" for char in text)[:80]
