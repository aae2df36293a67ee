"""What a long command tells on a terminal: nothing that acts on paper, or where nobody watches."""

from __future__ import annotations

import io
import sys

import pytest

from oomdoctor.cli.progress import bar_for
from oomdoctor.cli.steps import steps_for


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "shows"), [("xterm", True), ("dumb", False)])
def test_steps_and_bars_are_for_terminals_that_can_clear_a_line(
    monkeypatch: pytest.MonkeyPatch, term: str, *, shows: bool
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", term)

    with steps_for(quiet=False) as say, bar_for(quiet=False) as bar:
        say("working")

    assert (bool(screen.getvalue()), bar is not None) == (shows, shows)
