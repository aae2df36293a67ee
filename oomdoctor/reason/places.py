"""Which rank and machine each log belongs to: by its tags, its name, its text, its card.

A tag that the launcher put before every line goes first, then a name that says rank, then what
the text says of its own process, then a number in which the files of a family differ, then the
card in its message, if all logs name different ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.reason.file_names import name_ranks
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.evidence.log_view import LogView


class Place(NamedTuple):
    """The rank and machine of one log, and how they were found."""

    rank: int | None = None
    node: str | None = None
    by: str = ""


def places_of(views: Sequence[LogView]) -> Mapping[str, Place]:
    """Return the place of each log by the name of its input."""
    names = name_ranks(view.artifact for view in views)
    cards = [view.card for view in views if view.card is not None]
    by_card = len(cards) > 1 and len(set(cards)) == len(cards)
    hosts = {view.host for view in views if view.host is not None}
    places: dict[str, Place] = {}
    for view in views:
        name = names[view.artifact]
        node = name.node or (view.host if len(hosts) > 1 else None)
        places[view.artifact] = _place(view, name.rank, node, sure=name.sure, by_card=by_card)
    return _without_needless_nodes(_without_shared_words(places, views))


def _place(
    view: LogView, named: int | None, node: str | None, *, sure: bool, by_card: bool
) -> Place:
    if len(view.ranks) > 1:
        return Place(None, node, "its lines name several ranks")
    told = None if view.blamed else view.told_rank
    single = view.ranks[0] if view.ranks else None
    ways = (
        (single, "its lines are tagged with it"),
        (named if sure else None, "its name says so"),
        (told, view.told_by),
        (named, "its name, beside its siblings'"),
        (view.card if by_card else None, f"its message names GPU {view.card}"),
    )
    rank, by = next((way for way in ways if way[0] is not None), (None, ""))
    return Place(rank, node, by)


def _without_shared_words(
    places: Mapping[str, Place], views: Sequence[LogView]
) -> dict[str, Place]:
    """Drop ranks that only the text gives where all logs say the same: a copied setting."""
    told = {view.artifact: view.told_by for view in views if view.told_by}
    by_text = [name for name, place in places.items() if place.by == told.get(name)]
    ranks = {(places[name].rank, places[name].node) for name in by_text}
    if len(by_text) < 2 or len(ranks) > 1:
        return dict(places)
    return {
        name: Place(None, place.node) if name in by_text else place
        for name, place in places.items()
    }


def _without_needless_nodes(places: Mapping[str, Place]) -> dict[str, Place]:
    """Drop the machine where all ranks are on one, or where it tells no two ranks apart."""
    by_rank: dict[int, set[str | None]] = {}
    for place in places.values():
        if place.rank is not None:
            by_rank.setdefault(place.rank, set()).add(place.node)
    needed = any(len(nodes) > 1 for nodes in by_rank.values())
    return {name: place if needed else place._replace(node=None) for name, place in places.items()}
