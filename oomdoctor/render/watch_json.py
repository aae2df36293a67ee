"""A look of `oomdoctor watch` as one line of JSON; the schema is docs/watch.schema.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__

if TYPE_CHECKING:
    from oomdoctor.growth.book import Book
    from oomdoctor.growth.findings import Finding
    from oomdoctor.growth.forecast import Forecast
    from oomdoctor.growth.process import ProcessBook
    from oomdoctor.render.watch_screen import Shown

SCHEMA_VERSION = 1


def look_json(shown: Shown) -> str:
    """Return the whole look; what is not known is left out."""
    book = shown.book
    return json.dumps(
        _known(
            schema_version=SCHEMA_VERSION,
            oomdoctor=__version__,
            watched=shown.title,
            state=shown.state,
            seconds=round(book.seconds, 3),
            host=_host(book),
            devices=[
                _known(
                    index=one.index,
                    total_bytes=one.total_bytes,
                    used_bytes=one.used_bytes,
                    ours_bytes=one.ours_bytes,
                    others_bytes=one.others_bytes,
                )
                for _, one in sorted(book.cards.items())
            ],
            processes=[_process(one) for one in book.processes.values()],
            verdicts=[verdict_dict(one) for one in shown.findings],
        )
    )


def _host(book: Book) -> dict[str, object]:
    return _known(
        held_bytes=book.job_bytes,
        available_bytes=book.available_bytes,
        total_bytes=book.total_bytes,
    )


def _process(process: ProcessBook) -> dict[str, object]:
    kept = process.allocated.last
    return _known(
        pid=process.pid,
        rank=process.rank,
        name=process.name or None,
        step=process.step,
        phase=process.phase,
        allocated_bytes=None if kept is None else kept.low,
        device_bytes=process.device_bytes,
        host_bytes=process.host_bytes,
        out_of_memory=process.is_out or None,
    )


def verdict_dict(found: Finding) -> dict[str, object]:
    """Return a verdict with all its figures."""
    growth = found.verdict.growth
    told: dict[str, object] = {
        "memory": found.memory,
        "kind": found.verdict.kind.value,
        "level": found.verdict.level.name.lower(),
        "pid": found.pid,
        "rank": found.rank,
        "card": found.card,
        "others": found.others or None,
        "taken_share": _rounded(found.verdict.taken, 4),
        "forecast": _forecast(found.verdict.forecast, by_step=found.by_step),
    }
    if growth is not None:
        told |= {
            "course": growth.course.value,
            "unit": "step" if found.by_step else "second",
            "since": growth.since,
            "slope_bytes": _rounded(growth.slope, 1),
            "slope_low_bytes": _rounded(growth.low, 1),
            "slope_high_bytes": _rounded(growth.high, 1),
            "risen_bytes": growth.rise,
            "floor_bytes": growth.last,
        }
    return _known(**told)


def _forecast(told: Forecast | None, *, by_step: bool) -> dict[str, object] | None:
    if told is None:
        return None
    each = told.seconds_each
    last = told.last
    return _known(
        room_bytes=told.room_bytes,
        step=round(told.step) if by_step else None,
        step_first=round(told.now + told.first) if by_step else None,
        step_last=round(told.now + last) if by_step and last is not None else None,
        seconds=_rounded(told.seconds, 1),
        seconds_first=_rounded(None if each is None else told.first * each, 1),
        seconds_last=_rounded(None if each is None or last is None else last * each, 1),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _known(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
