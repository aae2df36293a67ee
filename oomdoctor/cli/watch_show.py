"""How a watch is shown: a live screen on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from oomdoctor.cli.output import say, theme_for, write_result
from oomdoctor.growth.verdict import Kind, Level
from oomdoctor.render.watch_screen import screen
from oomdoctor.render.watch_words import duration, headline, sentences

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from rich.text import Text
    from typing_extensions import Self

    from oomdoctor.render.theme import Theme
    from oomdoctor.render.watch_screen import Shown

    class Shows(Protocol):
        """Shows one look after the other."""

        def show(self, shown: Shown) -> None:
            """Show a look."""


@contextmanager
def shows(*, as_json: bool, once: bool, quiet: bool, color: str) -> Iterator[Shows]:
    """Give what shows the looks."""
    stream = sys.stderr
    if as_json:
        yield _Json()
    elif once or quiet or stream is None:
        yield _Nothing()
    elif stream.isatty() and os.environ.get("TERM") != "dumb":
        with _Screen(theme_for(color=color, width=None, stream=stream)) as live:
            yield live
    else:
        yield _Lines()


class _Nothing:
    def show(self, shown: Shown) -> None:
        pass


class _Json:
    """Prints one line for each look."""

    def show(self, shown: Shown) -> None:
        from oomdoctor.render.watch_json import look_json

        write_result(look_json(shown) + "\n")


class _Lines:
    """Prints a line where a verdict is new, and where it has become none."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int | None, int | None], str] = {}

    def show(self, shown: Shown) -> None:
        now = duration(shown.book.seconds)
        for found in shown.findings:
            place = (found.memory, found.pid, found.card)
            told = self._told.get(place)
            loud = found.verdict.level > Level.QUIET
            if told == headline(found) or not (loud or told):
                continue
            if found.verdict.kind in (
                Kind.EARLY,
                Kind.UNSURE,
            ):  # a rise that is in doubt for a moment
                continue
            self._told[place] = headline(found)
            say(f"{now}: {' '.join([headline(found) + '.', *sentences(found)])}")


class _Screen:
    """Draws the screen in place of the one before; the last one goes when the watch ends."""

    def __init__(self, theme: Theme) -> None:
        from rich.console import Console
        from rich.live import Live

        self._theme = theme
        console = Console(stderr=True, no_color=not theme.colour, highlight=False)
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._live.stop()

    def show(self, shown: Shown) -> None:
        self._live.update(_text(shown, self._theme), refresh=True)


def _text(shown: Shown, theme: Theme) -> Text:
    """Return the screen as rich draws it."""
    from rich.text import Text

    from oomdoctor.render.theme import STYLES

    text = Text(no_wrap=True, overflow="ellipsis")
    for one in screen(shown, theme):
        for span in one:
            text.append(span.text, STYLES.get(span.style, "") if theme.colour else "")
        text.append("\n")
    text.append("Ctrl-C ends the watch, not what is watched", "dim" if theme.colour else "")
    return text
