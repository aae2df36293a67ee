"""Ranks of one job that fail on one device number, and processes that were started together.

    [rank7]: torch.OutOfMemoryError: ... GPU 0 has a total capacity ...
    [rank2]: torch.OutOfMemoryError: ... GPU 0 has ... Process 451 has 1.16 GiB memory in use.
        Process 453 has 1.28 GiB memory in use. Process 454 has 1.14 GiB memory in use. ...

Where each rank sees a card of its own only, all of them rightly say GPU 0: the number alone proves
nothing. Process numbers in a row on the failing card show who shares it.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.squeeze import Run
    from oomdoctor.evidence.torch_oom_text import Clause
    from oomdoctor.model.core import Fact, Quote

_FEWEST_SIBLINGS = 3
_GAP = 4
"""A launcher starts its ranks one after the other; few other processes come between."""

_QUOTED = 20
_PID_CHARS = 20


def crowded_ranks(events: Sequence[Event]) -> Iterator[Fact]:
    """Yield how many ranks failed, how many of them on the number that most name, and who else.

    What one rank's message lists of that card holds for the messages that were cut before it.
    """
    ranks: dict[int, Quote] = {}
    places: dict[object, dict[int, Quote]] = {}
    siblings: dict[object, Fact] = {}
    for event in events:
        failure = event.failure
        if failure.rank is None:
            continue
        ranks.setdefault(failure.rank, failure.line_quote)
        told = {one.key: one for one in failure.facts}
        if "oom.gpu_index" in told:
            place = told["oom.gpu_index"].value
            places.setdefault(place, {}).setdefault(failure.rank, failure.line_quote)
            if "oom.listed_siblings" in told:
                siblings.setdefault(place, told["oom.listed_siblings"])
    if ranks:
        yield fact("oom.failed_ranks", len(ranks), list(ranks.values())[:_QUOTED])
    if places:
        crowded = max(places, key=lambda place: len(places[place]))
        most = list(places[crowded].values())
        yield fact("oom.crowded_ranks", len(most), most[:_QUOTED])
        if crowded in siblings:
            yield siblings[crowded]


def listed_siblings(run: Run, found: Sequence[Clause]) -> Iterator[Fact]:
    """Yield how many listed processes have numbers in a row, where three or more have."""
    listed: list[tuple[int, Clause]] = []
    for one in found:
        near = run.text[max(0, one.start - _PID_CHARS) : one.start]
        named = _pid().search(near) if one.name == "process" else None
        if named is not None:
            listed.append((int(named[1]), one))
    listed.sort()
    groups: list[list[tuple[int, Clause]]] = [listed[:1]]
    for before, after in pairwise(listed):
        if after[0] - before[0] > _GAP:
            groups.append([])
        groups[-1].append(after)
    most = max(groups, key=len)
    if len(most) >= _FEWEST_SIBLINGS:
        quotes = [quote for _, one in most for quote in run.quotes(one.start, one.end)]
        yield fact("oom.listed_siblings", len(most), quotes[:_QUOTED])


@cache
def _pid() -> re.Pattern[str]:
    return re.compile(r"Process(\d{1,9})has$")
