"""The search that a run drives: on one axis or a frontier, for memory or for speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.cli.bisect_backend import VIRTUAL
from oomdoctor.cli.bisect_setup import SPEED
from oomdoctor.cli.bisect_start import Start
from oomdoctor.cli.steps import steps_for
from oomdoctor.estimating.choice import engines
from oomdoctor.memory.outside import CONTEXT
from oomdoctor.model.bisect import StartCurve
from oomdoctor.record import NamedTuple
from oomdoctor.search.edge import find_edge
from oomdoctor.search.fastest import find_fastest
from oomdoctor.search.frontier import find_frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.lab.guard import Allowed
    from oomdoctor.model.trial import Curve, Frontier, SearchAnswer
    from oomdoctor.search.rounds import Search

_WITHOUT = StartCurve(why_not="what the command trains is not known; a config beside it would tell")


class Begun(NamedTuple):
    """A search that can be driven, the estimate it begins with, and what decides."""

    search: Search[SearchAnswer | Frontier]
    start: StartCurve
    limit_bytes: int | None


def begun(setup: Setup, asked: Asked, allowed: Allowed, *, width: int) -> Begun:
    """Return the search of a run."""
    speed = asked["objective"] == SPEED
    limit = limit_of(setup, allowed)
    start, rows = _start(setup, asked, limit)
    cap = None if limit is None else float(limit)
    room = asked["headroom"]
    if setup.outer is not None:
        frontier = find_frontier(
            setup.outer,
            setup.inner,
            cap_bytes=cap,
            estimate=rows,
            error=start.error,
            headroom=room,
            width=width,
        )
        return Begun(frontier, start, limit)
    find = find_fastest if speed else find_edge
    if start.curve is None:
        return Begun(find(setup.inner, cap_bytes=cap, headroom=room, width=width), start, limit)
    edge = find(
        setup.inner,
        cap_bytes=cap,
        estimate=start.curve,
        error=start.error,
        headroom=room,
        width=width,
    )
    return Begun(edge, start, limit)


def limit_of(setup: Setup, allowed: Allowed) -> int | None:
    """Return the bytes that decide whether a trial fits, as far as they are known."""
    if setup.on_host:
        caps = [one for one in (setup.cap_bytes, allowed.host_cap_bytes) if one is not None]
        return min(caps, default=None)
    if allowed.cap_bytes is not None:
        return allowed.cap_bytes
    if setup.backend == "cpu":
        return allowed.host_cap_bytes
    if allowed.room_bytes is not None:
        return allowed.room_bytes
    if setup.card is None:
        return None
    return setup.card.total_bytes - _outside_bytes(setup)


def _outside_bytes(setup: Setup) -> int:
    """Return what of a card is not the allocator's to give."""
    if setup.backend != VIRTUAL:
        return CONTEXT[1]
    from oomdoctor.virtual.outside import CONTEXT_BYTES

    return CONTEXT_BYTES


def _start(
    setup: Setup, asked: Asked, limit: int | None
) -> tuple[StartCurve, Callable[[float], Curve | None] | None]:
    """Return the estimate along the axis, and what gives that of each row of a frontier."""
    job = setup.job
    if job is None:
        return _WITHOUT, None
    with (
        steps_for(quiet=asked["quiet"]) as say,
        engines(asked["engine"], say=say, python=asked["python"]) as chosen,
    ):
        start = Start(job, chosen, setup.card, setup.backend)
        if setup.outer is None:
            return start.on(setup.inner, limit), None
        # the worker goes when the search begins, so that every row is estimated now
        curve = start.by_row(setup.inner, setup.outer, limit)
        curves = {value: curve(value) for value in _values(setup)}
        middle = sorted(curves)[len(curves) // 2]
        first = start.on(setup.inner, limit, {setup.outer.name: _whole(middle)})
    return first, curves.get


def _values(setup: Setup) -> Iterator[float]:
    from oomdoctor.search.frontier import ladder

    if setup.outer is not None:
        yield from ladder(setup.outer)


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
