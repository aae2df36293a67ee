"""The list of recorded runs as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.recorder.outcome import DEVICE_OOM, HOST_OOM, KERNEL_KILL, RUNNING, SUCCEEDED, WORDS
from oomdoctor.render.page import Page, Section, Table
from oomdoctor.render.watch_words import duration
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.recorder.listing import Listed

_MOST = 100
_LONGEST_COMMAND = 24
_LONGEST_CAUSE = 24
_BRIEF = {
    KERNEL_KILL: "kernel kill",
    DEVICE_OOM: "out of device mem.",
    HOST_OOM: "out of host mem.",
}
_HEADERS = ("run", "command", "came of it", "took", "peak", "first cause")


def list_page(found: Sequence[Listed], runs: Path) -> Page:
    """Return the runs, the newest first, with what they take on the disk."""
    if not found:
        return Page(
            title="No run is recorded",
            lead=(f"None is in {runs}. `oomdoctor run -- COMMAND` records one.",),
        )
    size = format_size(sum(one.size_bytes for one in found))
    shown = found[:_MOST]
    count = "1 run" if len(found) == 1 else f"{len(found)} runs"
    rest = (f"The {_MOST} newest are shown.",) if len(found) > _MOST else ()
    table = Table(
        caption="The newest first",
        headers=_HEADERS,
        rows=tuple(_row(one) for one in shown),
        numeric=frozenset({3, 4}),
        whole=frozenset({0}),
        marked=frozenset(
            number for number, one in enumerate(shown) if one.outcome not in (SUCCEEDED, RUNNING)
        ),
    )
    return Page(
        title=f"{count}, {size} on the disk",
        lead=("`oomdoctor show RUN` opens one; --keep N and --delete make room.",),
        sections=(Section(title="Runs", sentences=rest, table=table),),
        notes=(f"in {runs}",),
    )


def _row(one: Listed) -> tuple[str, ...]:
    return (
        one.id,
        _cut(" ".join(_short(word) for word in one.command), _LONGEST_COMMAND),
        _BRIEF.get(one.outcome, WORDS.get(one.outcome, one.outcome)),
        "-" if one.seconds is None else duration(one.seconds),
        "-" if one.peak_bytes is None else format_size(one.peak_bytes),
        _cut(one.cause or "-", _LONGEST_CAUSE),
    )


def _short(word: str) -> str:
    """Return a path without its folders: what a person knows it by."""
    return Path(word).name if word.startswith("/") and word != "/" else word


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
