"""What a verdict on growth says in words: who, what grows, since when, until when."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

from oomdoctor.growth.findings import DEVICE
from oomdoctor.growth.verdict import Kind, Level
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.growth.course import Growth
    from oomdoctor.growth.findings import Finding
    from oomdoctor.growth.forecast import Forecast

KINDS = {
    Kind.DEVICE_LEAK: "device leak",
    Kind.HOST_LEAK: "host leak",
    Kind.CACHE_GROWTH: "cache growth",
    Kind.FRAGMENTATION: "fragmentation",
    Kind.CARD_GROWTH: "the card fills",
    Kind.LONGEST_BATCH: "longer batches",
    Kind.PLATEAU: "levelled off",
    Kind.STEADY: "steady",
    Kind.EARLY: "too early to tell",
    Kind.UNSURE: "not sure yet",
}
_GROWS = {Kind.DEVICE_LEAK: "device memory grows", Kind.HOST_LEAK: "host memory grows"}
_LONGEST = (
    "The peak rises with the longest batch so far; what is kept after a step does not."
    " This is no leak."
)
_FOREVER_S = 10 * 365 * 86400
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def subject(found: Finding) -> str:
    """Return whom a finding is about: `rank 0 (python, 4711)`, `card 0`, `all processes`."""
    if found.card is not None:
        return f"card {found.card}" + (" by others" if found.others else "")
    if found.pid is None:
        return "all processes"
    inside = ", ".join(part for part in (found.name, str(found.pid)) if part)
    return f"process {inside}" if found.rank is None else f"rank {found.rank} ({inside})"


def headline(found: Finding) -> str:
    """Return the kind with its subject."""
    return f"{kind_words(found)}: {subject(found)}"


def kind_words(found: Finding) -> str:
    """Return the kind; a rise that may still end is not called a leak."""
    kind = found.verdict.kind
    if kind in _GROWS and found.verdict.level < Level.ALARM:
        return _GROWS[kind]
    if kind is Kind.CARD_GROWTH and found.others:
        return "others fill the card"
    return KINDS[kind]


def sentences(found: Finding, *, is_over: bool = False) -> list[str]:
    """Return what is known of the growth, and when memory will be full, or would have been."""
    growth, kind = found.verdict.growth, found.verdict.kind
    if growth is None or kind is Kind.EARLY:
        return []
    if kind is Kind.LONGEST_BATCH:
        return [_LONGEST]
    if kind is Kind.UNSURE:
        return [f"It may rise: {format_size(growth.rise)} since {_moment(growth.since, found)}."]
    if kind in (Kind.STEADY, Kind.PLATEAU):
        return [_calm(found, growth)]
    told = [_rise(found, growth)]
    if found.verdict.level is Level.QUIET:
        return [*told, "It has taken less than 1 % of the room there was."]
    if found.verdict.level is Level.NOTICE and kind in (Kind.DEVICE_LEAK, Kind.HOST_LEAK):
        told.append(_doubt(found))
    if found.verdict.forecast is not None:
        told.append(_full(found, found.verdict.forecast, is_over=is_over))
    return told


def _calm(found: Finding, growth: Growth) -> str:
    level = format_size(growth.last)
    if found.verdict.kind is Kind.PLATEAU:
        return f"It rose, and stays near {level} since {_moment(growth.since, found)}."
    return f"It stays near {level}."


def _rise(found: Finding, growth: Growth) -> str:
    per = "step" if found.by_step else "minute"
    times = 1.0 if found.by_step else 60.0
    slope, low, high = (
        format_size(round(one * times)) for one in (growth.slope, growth.low, growth.high)
    )
    between = "" if low == high else f" ({low} to {high})"
    what = {
        Kind.DEVICE_LEAK: "What is kept on the card",
        Kind.CACHE_GROWTH: "What is reserved rises though what is kept does not; it",
        Kind.FRAGMENTATION: "Pieces that cannot be given back add up; what is reserved",
        Kind.CARD_GROWTH: "What is used of the card",
    }.get(found.verdict.kind, "The floor of host memory")
    since = f"since {_moment(growth.since, found)}"
    return f"{what} rises by {slope} per {per}{between} {since}: {format_size(growth.rise)} so far."


def _doubt(found: Finding) -> str:
    taken = found.verdict.taken
    share = "" if taken is None else f" It has taken {100 * taken:.0f} % of the room there was."
    return f"A cache that fills looks the same until it is full.{share}"


def _full(found: Finding, told: Forecast, *, is_over: bool) -> str:
    what = "The card" if found.memory == DEVICE else "Memory"
    words = []
    if found.by_step:
        words.append(f"at step {steps_words(told)}")
    if told.seconds is not None and not (is_over and found.by_step):
        words.append(f"in {time_words(told)}")
    when = "would have been full" if is_over else "is full"
    return f"{what} {when} {', '.join(words)}." if words else ""


def steps_words(told: Forecast) -> str:
    """Return `about 4,310 (3,900 to 4,800)`, in as many digits as the interval allows."""
    first, last = told.now + told.first, None if told.last is None else told.now + told.last
    wide = (last - first) if last is not None else told.left
    unit = 10 ** max(0, floor(log10(wide / 10))) if wide > 10 else 1
    middle = _rounded(told.step, unit)
    if last is None:
        return f"about {middle} ({_rounded(first, unit)} or later)"
    ends = (_rounded(first, unit), _rounded(last, unit))
    return f"about {middle}" + ("" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})")


def _rounded(value: float, unit: int) -> str:
    return format_count(round(value / unit) * unit)


def time_words(told: Forecast) -> str:
    """Return `38 min (34 min to 43 min)`."""
    each = told.seconds_each or 0.0
    middle = duration(told.left * each)
    first = duration(told.first * each)
    last = "later" if told.last is None else duration(told.last * each)
    if first == middle == last:
        return middle
    return f"{middle} ({first} {'or' if told.last is None else 'to'} {last})"


def duration(seconds: float) -> str:
    """Return a time in its two largest units, the smaller one as far as it matters."""
    if seconds >= _FOREVER_S:
        return "more than 10 years"
    for at, (size, name) in enumerate(_UNITS):
        if seconds >= size or size == 1:
            whole = int(seconds // size)
            if whole >= 10 or size == 1:  # the next unit does not matter beside ten of this one
                return f"{round(seconds / size)} {name}"
            smaller, small = _UNITS[at + 1]
            rest = int((seconds - whole * size) // smaller)
            return f"{whole} {name} {rest} {small}" if rest else f"{whole} {name}"
    return "0 s"


def _moment(at: float, found: Finding) -> str:
    return f"step {format_count(int(at))}" if found.by_step else f"{duration(at)} after the start"
