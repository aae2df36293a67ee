"""The loop of a watch: look, judge, show, raise alerts, until there is no more to see."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.output import hand_over, say, theme_for
from oomdoctor.cli.watch_alerts import AlertPlaces
from oomdoctor.cli.watch_choice import source_for
from oomdoctor.cli.watch_show import shows
from oomdoctor.growth.book import Book
from oomdoctor.growth.findings import findings
from oomdoctor.render.text import paint
from oomdoctor.render.watch_screen import Shown, screen

if TYPE_CHECKING:
    from oomdoctor.cli.pages import Wanted
    from oomdoctor.cli.watch import Asked
    from oomdoctor.cli.watch_show import Shows
    from oomdoctor.cli.watch_sources import Source

_SHARES = 20
"""Looking and judging takes a twentieth of the time at most."""


class Watching:
    """One watch: its source, what is known, and what was shown last."""

    def __init__(self, source: Source, asked: Asked) -> None:
        """Know nothing yet."""
        self.last: Shown | None = None
        self.is_due = False
        self._source = source
        self._asked = asked
        self._book = Book()
        self._notes: tuple[str, ...] = ()
        self._alerts = AlertPlaces(
            asked["fail_on"], path=asked["alert_file"], command=asked["alert_command"]
        )

    def go_on(self, show: Shows) -> None:
        """Look until there is nothing more to look for."""
        asked = self._asked
        until = None if asked["most_seconds"] is None else _now() + asked["most_seconds"]
        while True:
            began = _now()
            self.look()
            if self.last is not None and (asked["as_json"] or not self._source.is_over):
                show.show(self.last)  # the last page tells of what is over
            over = asked["once"] or self._source.is_over or (self.is_due and asked["fail_on"])
            wait = max(asked["every"], _SHARES * (_now() - began))
            if until is not None:
                wait = min(wait, until - _now())
            if over or wait <= 0:
                return
            time.sleep(wait)

    def look(self) -> None:
        """Look once, and raise the alerts that are new."""
        state = self._source.look(self._book)
        found = findings(self._book)
        self.is_due = self._alerts.look(found) or self.is_due
        self._notes = (*self._source.notes, *self._alerts.problems)
        self.last = Shown(
            title=self._source.title,
            state=state,
            book=self._book,
            findings=found,
            notes=self._notes,
            is_over=self._source.is_over,
        )

    def finish(self) -> None:
        """Wait for the commands of alerts."""
        self._alerts.finish()


def watch(asked: Asked) -> int:
    """Watch what was asked for; return the exit code."""
    watching = Watching(source_for(asked["target"], asked["gpu"], asked["folder"]), asked)
    code = ExitCode.DONE
    try:
        with shows(
            as_json=asked["as_json"],
            once=asked["once"],
            quiet=asked["quiet"],
            color=asked["color"],
        ) as show:
            watching.go_on(show)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    watching.finish()
    if watching.last is not None and not asked["as_json"]:
        text = _written(watching.last, asked)
        hand_over(text, path=asked["output"], force=asked["force"], quiet=asked["quiet"])
    elif watching.last is not None:
        for note in watching.last.notes:
            say(note)
    return int(ExitCode.FINDINGS if watching.is_due and asked["fail_on"] else code)


def _written(shown: Shown, asked: Asked) -> str:
    """Return the last page: as text it is the screen."""
    if asked["format"] != "text":
        from oomdoctor.cli.pages import written
        from oomdoctor.render.watch_page import watch_page

        return written(watch_page(shown), cast("Wanted", asked))
    to_file = asked["output"] not in (None, "-")
    theme = theme_for(color=asked["color"], width=asked["width"], to_file=to_file)
    return paint(screen(shown, theme), theme)


def _now() -> float:
    return time.monotonic()
