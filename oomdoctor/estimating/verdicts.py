"""Whether a peak fits on a card: fits, tight or oom, with the margins.

What is outside the allocator is a band, and so is what an engine may err by. A job *fits* where all
that it would reserve finds room with the widest of both: that is what was compared with measured
runs. It is *oom* where a request fails with the narrowest of both, although the allocator gave its
cache back, or with 8 % more room than there is. It is *tight* between them. On a small card the
band outside the allocator is the larger part of what is tight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.bands import WIDEST
from oomdoctor.memory.stream_balance import own_path
from oomdoctor.model.estimate import FITS, OOM, TIGHT, CardVerdict
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.estimating.peak import Peak
    from oomdoctor.memory.outside import Outside
    from oomdoctor.memory.stream_replay import Failed
    from oomdoctor.model.job import CardSpec

LEAST_STEP = 16 << 20


def verdicts(
    peak: Peak, cards: Sequence[CardSpec], beside: Outside, *, named: bool = True
) -> tuple[CardVerdict, ...]:
    """Judge every card; `named` says that a request which fails is looked for and named."""
    words = [word_for(peak, card.total_bytes, beside) for card in cards]
    least = peak.needed if set(words) <= {FITS} else least_room(peak)
    found = []
    for card, word in zip(cards, words, strict=True):
        own = beside.on(card.total_bytes)
        room = card.total_bytes - (own.low + own.high) // 2
        failed = peak.failure(room) if named and word != FITS else None
        found.append(_verdict(peak, card, beside, word=word, least=least, failed=failed))
    return tuple(found)


def word_for(peak: Peak, total_bytes: int, beside: Outside) -> str:
    """Return fits, tight or oom for a card of that size."""
    beside = beside.on(total_bytes)
    surely = int((total_bytes - beside.high) / (1 + peak.up))
    if peak.needed <= surely and not peak.fails(surely):
        return FITS
    middle = total_bytes - (beside.low + beside.high) // 2
    hardly = min((total_bytes - beside.low) / (1 - peak.down), middle / (1 - WIDEST))
    return OOM if peak.fails(int(hardly)) else TIGHT


def _verdict(
    peak: Peak,
    card: CardSpec,
    beside: Outside,
    *,
    word: str,
    least: int,
    failed: Failed | None,
) -> CardVerdict:
    beside = beside.on(card.total_bytes)
    most = peak.needed if word == FITS else least
    return CardVerdict(
        card=card.name,
        capacity_bytes=card.total_bytes,
        verdict=word,
        needed_low_bytes=least + beside.low,
        needed_high_bytes=most + beside.high,
        margin_low_bytes=card.total_bytes - most - beside.high,
        margin_high_bytes=card.total_bytes - least - beside.low,
        failed=None if failed is None else failed_words(failed),
    )


def least_room(peak: Peak) -> int:
    """Return the least room that the allocator gets by with, to a step of a few MiB."""
    if peak.stream is None:
        return peak.needed
    low, high = peak.allocated, peak.needed
    if not peak.fails(low):
        return low
    while high - low > max(LEAST_STEP, high // 256):
        middle = (low + high) // 2
        if peak.fails(middle):
            low = middle
        else:
            high = middle
    return high


def failed_words(failed: Failed) -> str:
    """Name a request that fails: what asked for how much, where, and what there was."""
    wanted, card = failed.allocation, failed.shortage
    when = " of ".join(word for word in (wanted.part, wanted.phase) if word)
    module = f" in {own_path(wanted.module)}" if wanted.module else ""
    what = wanted.operator or "an allocation"
    return (
        f"{when or 'the run'}: {what}{module} asks for {format_size(card.segment)}"
        f" where {format_size(card.free)} is free"
    )
