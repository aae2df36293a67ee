"""What other processes hold at least, from the figures of one message."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.units import format_size

CONTEXT_USUAL_HIGH = 1.5 * (1 << 30)
CAPACITY_ALLOWANCE = 0.04
BUDGET_ALLOWANCE = 0.2
_APU_SIZES = (66 << 30, 180 << 30)
"""No card of AMD's own memory has such a size, but for its chips that share the main memory."""


def shares_main_memory(facts: Inputs) -> bool:
    """Say whether the device is a part of a chip that uses the machine's main memory."""
    if _shared_chip().search(facts.maybe_text("gpu.name") or "") is not None:
        return True
    capacity = facts.maybe_int("oom.capacity")
    between = capacity is not None and _APU_SIZES[0] <= capacity <= _APU_SIZES[1]
    return between and facts.maybe_text("oom.backend") == "hip"


@cache
def _shared_chip() -> re.Pattern[str]:
    return re.compile(
        r"jetson|\borin\b|\bthor\b|\bGB10\b|dgx spark|MI300A|strix|80[56]0S|gfx115|780M|890M",
        re.IGNORECASE,
    )


_READS = (
    "balance.outside",
    "oom.capacity",
    "oom.free",
    "oom.this_process",
    "oom.listed_processes",
    "oom.listed_processes_bytes",
    "oom.largest_process",
    "gpu.foreign",
)


@derives("balance.foreign_low", reads=_READS)
def foreign_low(facts: Inputs) -> Outcome | None:
    """What the message names beside this process, or outside - the most that a context takes.

    It is never above the known share. Only Windows lets a card be free to the last byte: it grants
    a process a budget, and keeps the rest for the desktop.
    """
    if facts.maybe_int("balance.outside") is None:
        return _listed_beside_one(facts)
    allowance, words = _allowance(facts)
    low = max(0, facts.whole("balance.outside") - allowance)
    known = facts.maybe_int("gpu.foreign")
    low = low if known is None else min(low, known)
    named = _named(facts)
    if named > low:
        words = "the processes that the message names"
        return Outcome(named, words, facts.slack("oom.listed_processes_bytes"))
    return Outcome(low, words, facts.slack("balance.outside"))


@derives("balance.foreign_made", reads=(*_READS, "balance.foreign_low"))
def foreign_made(facts: Inputs) -> Outcome | None:
    """Say in figures what the lower bound is made of."""
    low = facts.whole("balance.foreign_low")
    outside = facts.maybe_int("balance.outside")
    if not low:
        return None
    if outside is None or _named(facts) == low:
        return Outcome("named in the message", "the processes that the message names")
    known = facts.maybe_int("gpu.foreign")
    less = f"{format_size(outside)} outside this pool less {format_size(outside - low)}"
    made = f"{less} that a context can take"
    if known is not None:
        more = f"about {format_size(known)} " if known > low else ""
        made = f"{more}by the difference of its figures"
    return Outcome(made, "its parts")


def _allowance(facts: Inputs) -> tuple[int, str]:
    """Return what of the bytes outside the pool may be this process's own, and how it is made."""
    capacity = facts.whole("oom.capacity")
    allowance = int(max(CONTEXT_USUAL_HIGH, CAPACITY_ALLOWANCE * capacity))
    words = "outside - max(1.5 GiB, 4 % of the capacity)"
    if facts.maybe_int("oom.free") == 0:
        allowance += int(BUDGET_ALLOWANCE * capacity)
        words += " - 20 % that Windows keeps"
    return allowance, words


def _named(facts: Inputs) -> int:
    """Return what the processes hold that a message names beside this one, 0 where it is none."""
    if facts.maybe_int("oom.this_process") is None:
        return 0
    return facts.maybe_int("oom.listed_processes_bytes") or 0


def all_named(facts: Inputs, rest: int) -> Outcome | None:
    """Return what the processes that the message names hold, where that is all of the rest."""
    listed = _named(facts)
    if not listed:
        return None
    keys = ("oom.capacity", "oom.free", "oom.this_process", "oom.listed_processes_bytes")
    if abs(rest - listed) > facts.slack(*keys):
        return None
    one = facts.maybe_int("oom.listed_processes") == 1
    source = "the process that the message names" if one else "sum of the listed processes"
    slack = facts.slack("oom.listed_processes_bytes")
    return Outcome(listed, source, slack, printed="oom.listed_processes_bytes" if one else None)


def _listed_beside_one(facts: Inputs) -> Outcome | None:
    """Sum of the listed processes - the largest: of a message cut before its own figures.

    Inside a PID namespace one of them may be this process, most often the largest.
    """
    if facts.whole("oom.listed_processes") < 2:
        return None
    keys = ("oom.listed_processes_bytes", "oom.largest_process")
    rest = max(0, facts.whole(keys[0]) - facts.whole(keys[1]))
    words = "sum of the listed processes - the largest, which may be this one"
    return Outcome(rest, words, facts.slack(*keys))
