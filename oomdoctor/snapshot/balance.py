"""What held the memory at one moment: by category, by the line that asked, and by stack."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.snapshot.categories import category_of
from oomdoctor.snapshot.events import NO_POOL
from oomdoctor.snapshot.leaks import site_of
from oomdoctor.snapshot.lives import held_at, waiting_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.snapshot.events import PoolId
    from oomdoctor.snapshot.leaks import Site
    from oomdoctor.snapshot.lives import Life, Lives
    from oomdoctor.snapshot.stacks import Stack

Key = TypeVar("Key")


class Share(NamedTuple):
    """What one category, line or stack holds."""

    held_bytes: int
    blocks: int


class SiteShare(NamedTuple):
    """What one line holds, its category, and the stack that most of it has."""

    site: Site
    category: str
    held_bytes: int
    blocks: int
    stack: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The memory before the event `moment`; bytes are in steps of 512 as they are handed out.

    `waiting` are blocks that nobody has but that a stream still uses; they count in no other list.
    """

    moment: int
    held_bytes: int
    blocks: int
    categories: tuple[tuple[str, Share], ...]
    sites: tuple[SiteShare, ...]
    stacks: tuple[tuple[int, Share], ...]
    waiting: Share
    waiting_sites: tuple[SiteShare, ...]
    pools: tuple[tuple[PoolId, Share], ...]


def balance_at(lives: Lives, moment: int, stacks: Sequence[Stack]) -> Balance:
    """Add up what is held before an event; every list is ordered by bytes."""
    held, waiting = held_at(lives, moment), waiting_at(lives, moment)
    names = [category_of(one, stacks[one.stack]) for one in held]
    return Balance(
        moment=moment,
        held_bytes=sum(one.size for one in held),
        blocks=len(held),
        categories=_added(zip(names, held, strict=True)),
        sites=_sites(held, stacks),
        stacks=_added((one.stack, one) for one in held),
        waiting=Share(sum(one.size for one in waiting), len(waiting)),
        waiting_sites=_sites(waiting, stacks),
        pools=_added((one.pool, one) for one in held if one.pool != NO_POOL),
    )


def _added(pairs: Iterable[tuple[Key, Life]]) -> tuple[tuple[Key, Share], ...]:
    sizes: Counter[Key] = Counter()
    counts: Counter[Key] = Counter()
    for key, one in pairs:
        sizes[key] += one.size
        counts[key] += 1
    return tuple((key, Share(size, counts[key])) for key, size in sizes.most_common())


def _sites(held: Sequence[Life], stacks: Sequence[Stack]) -> tuple[SiteShare, ...]:
    """Add up by line and category; blocks without a stack are one line each category."""
    by_site: dict[tuple[Site, str], list[Life]] = {}
    for one in held:
        stack = stacks[one.stack]
        site = site_of(stack, one.size)._replace(size=None)
        by_site.setdefault((site, category_of(one, stack)), []).append(one)
    found = [
        SiteShare(site, category, sum(one.size for one in lives), len(lives), _main(lives))
        for (site, category), lives in by_site.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.held_bytes))


def _main(lives: Sequence[Life]) -> int:
    """Return the number of the stack that most bytes have."""
    sizes: Counter[int] = Counter()
    for one in lives:
        sizes[one.stack] += one.size
    return sizes.most_common(1)[0][0]
