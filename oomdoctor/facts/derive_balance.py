"""Derived facts of the balance sheet: who holds the card, from the figures of one message.

PyTorch prints allocated = live + private pools, and reserved-but-unallocated as what then remains,
so reserved = allocated + unallocated whatever the pools hold (CUDACachingAllocator.cpp, 2.2-2.13).
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_foreign import all_named, foreign_low, foreign_made, shares_main_memory
from oomdoctor.facts.segments import segment_bytes

MIB = 1 << 20
GIB = 1 << 30
CONTEXT_LOW = 0.15 * GIB
CONTEXT_HIGH = 2.5 * GIB
FIT_MARGIN = 128 * MIB
"""A full card shows so much free that no segment can be had of."""
FIT_SHARE = 0.25
TWIN_SHARE = 0.1
"""Processes of one program differ by caches and contexts, not by more than this."""


@derives("torch.reserved", reads=("torch.allocated", "torch.reserved_unallocated"))
def reserved(facts: Inputs) -> Outcome:
    """Allocated + reserved but unallocated."""
    keys = ("torch.allocated", "torch.reserved_unallocated")
    total = sum(map(facts.whole, keys))
    return Outcome(total, "allocated + reserved but unallocated", facts.slack(*keys))


@derives("torch.reserved_unallocated", reads=("torch.reserved", "torch.allocated"))
def reserved_unallocated(facts: Inputs) -> Outcome:
    """Reserved - allocated."""
    cache = max(0, facts.whole("torch.reserved") - facts.whole("torch.allocated"))
    slack = facts.slack("torch.reserved", "torch.allocated")
    return Outcome(cache, "reserved - allocated", slack)


@derives("torch.allocated", reads=("torch.reserved", "torch.reserved_unallocated"))
def allocated(facts: Inputs) -> Outcome | None:
    """Reserved - reserved but unallocated."""
    keys = ("torch.reserved", "torch.reserved_unallocated")
    live = facts.whole(keys[0]) - facts.whole(keys[1])
    if live < 0:
        return None
    return Outcome(live, "reserved - reserved but unallocated", facts.slack(*keys))


@derives("torch.awaiting_free", reads=("torch.active", "torch.allocated"))
def awaiting_free(facts: Inputs) -> Outcome:
    """Active - allocated: blocks that wait for another stream."""
    waiting = max(0, facts.whole("torch.active") - facts.whole("torch.allocated"))
    return Outcome(waiting, "active - allocated", facts.slack("torch.active", "torch.allocated"))


@derives("oom.figures_given", reads=("oom.seen", "oom.requested"))
def figures_given(facts: Inputs) -> Outcome | None:
    """Whether the message states at least the requested size."""
    if facts.maybe_int("oom.requested") is not None:
        return Outcome(value=True, source="the requested size is stated")
    if facts.maybe_flag("oom.seen"):
        return Outcome(value=False, source="no requested size is stated")
    return None


@derives("oom.absurd_size", reads=("oom.seen", "oom.requested", "oom.form"))
def absurd_size(facts: Inputs) -> Outcome | None:
    """A message that states no size states no absurd one."""
    if facts.maybe_int("oom.requested") is not None or facts.maybe_text("oom.form") == "exabyte":
        return None
    if facts.maybe_flag("oom.seen"):
        return Outcome(value=False, source="no requested size is stated")
    return None


@derives(
    "oom.shortfall",
    reads=(
        "oom.requested",
        "oom.free",
        "oom.allowed",
        "oom.other_allocations",
        "oom.absurd_size",
        "torch.reserved",
        "torch.allocated",
    ),
)
def shortfall(facts: Inputs) -> Outcome | None:
    """Requested - what was left: of the card, or of the cap on this process."""
    if facts.maybe_flag("oom.absurd_size"):
        return None
    asked = facts.whole("oom.requested")
    left = list(_room(facts))
    if not left:
        return None
    room, slack, words = min(left)
    return Outcome(
        max(0, asked - room), f"requested - {words}", slack + facts.slack("oom.requested")
    )


def _room(facts: Inputs) -> list[tuple[int, float, str]]:
    """Return (bytes, slack, words) of what the card and the cap still had to give."""
    left: list[tuple[int, float, str]] = []
    free, allowed = facts.maybe_int("oom.free"), facts.maybe_int("oom.allowed")
    if free is not None:
        left.append((free, facts.slack("oom.free"), "free"))
    if allowed is None:
        return left
    other = facts.maybe_int("oom.other_allocations")
    own = "torch.reserved" if other is None else "torch.allocated"
    held = facts.maybe_int(own)
    if held is not None:
        keys = ("oom.allowed", own) + (() if other is None else ("oom.other_allocations",))
        words = "(allowed - reserved)" if other is None else "(allowed - allocated - other)"
        left.append((allowed - held - (other or 0), facts.slack(*keys), words))
    return left


@derives("oom.request_fits_free", reads=("oom.requested", "oom.free", "oom.absurd_size"))
def request_fits_free(facts: Inputs) -> Outcome | None:
    """Whether the free memory clearly covers the segment of the request, or clearly does not."""
    if facts.maybe_flag("oom.absurd_size"):
        return None
    asked, free = facts.whole("oom.requested"), facts.whole("oom.free")
    slack = facts.slack("oom.requested", "oom.free")
    spare = free - max(asked, segment_bytes(asked))
    if spare - slack > max(FIT_MARGIN, FIT_SHARE * asked):
        return Outcome(value=True, source="free - requested exceeds segment and rounding")
    if free + slack < asked:
        return Outcome(value=False, source="free < requested")
    return None


@derives(
    "balance.listed_is_self",
    reads=(
        "oom.this_process",
        "oom.largest_process",
        "oom.listed_processes",
        "oom.capacity",
        "oom.free",
        "torch.reserved",
    ),
)
def listed_is_self(facts: Inputs) -> Outcome | None:
    """Whether the largest listed process is this one: inside a PID namespace it bears a number."""
    if facts.maybe_int("oom.this_process") is not None:
        return None
    largest, held = facts.whole("oom.largest_process"), facts.whole("torch.reserved")
    slack = facts.slack("oom.largest_process", "torch.reserved")
    if largest + slack < held:
        alone = (facts.maybe_int("oom.listed_processes") or 1) == 1
        return Outcome(value=False, source="smaller than what is reserved") if alone else None
    outside_pool = largest - held
    if outside_pool + slack >= CONTEXT_LOW and outside_pool - slack <= CONTEXT_HIGH:
        return Outcome(value=True, source="reserved + 0.15 to 2.5 GiB for the context")
    capacity, free = facts.maybe_int("oom.capacity"), facts.maybe_int("oom.free")
    if capacity is None or free is None:
        return None
    if largest + held > capacity - free + slack + facts.slack("oom.capacity", "oom.free"):
        return Outcome(value=True, source="both together would exceed what is in use")
    return None


@derives(
    "balance.listed_twins",
    reads=(
        "oom.this_process",
        "oom.largest_process",
        "oom.listed_processes",
        "oom.listed_processes_bytes",
    ),
)
def listed_twins(facts: Inputs) -> Outcome | None:
    """Whether each listed process holds about as much as this one: copies of one program."""
    count = facts.whole("oom.listed_processes")
    if not count:
        return None
    own, largest = facts.whole("oom.this_process"), facts.whole("oom.largest_process")
    mean = facts.whole("oom.listed_processes_bytes") / count
    same = abs(largest - own) <= TWIN_SHARE * own and abs(mean - own) <= TWIN_SHARE * own
    return Outcome(same, "largest and mean listed process against this process")


@derives(
    "balance.outside",
    reads=("oom.capacity", "oom.free", "torch.reserved", "oom.backend", "gpu.name"),
)
def outside(facts: Inputs) -> Outcome | None:
    """Capacity - free - reserved: contexts, libraries and other processes together.

    Where card and host share one memory, everything that runs lies outside: it tells nothing.
    """
    if shares_main_memory(facts):
        return None
    keys = ("oom.capacity", "oom.free", "torch.reserved")
    rest = facts.whole(keys[0]) - facts.whole(keys[1]) - facts.whole(keys[2])
    return Outcome(max(0, rest), "capacity - free - reserved", facts.slack(*keys))


@derives(
    "balance.context",
    reads=("oom.this_process", "oom.largest_process", "balance.listed_is_self", "torch.reserved"),
)
def context(facts: Inputs) -> Outcome | None:
    """This process - reserved: its contexts and libraries."""
    key = _self_key(facts)
    if key is None:
        return None
    rest = max(0, facts.whole(key) - facts.whole("torch.reserved"))
    return Outcome(rest, "this process - reserved", facts.slack(key, "torch.reserved"))


def _self_key(facts: Inputs) -> str | None:
    """Return the key that holds the bytes of this process on the device."""
    if facts.maybe_int("oom.this_process") is not None:
        return "oom.this_process"
    if facts.maybe_flag("balance.listed_is_self"):
        return "oom.largest_process"
    return None


@derives(
    "gpu.foreign",
    reads=(
        "oom.capacity",
        "oom.free",
        "oom.this_process",
        "oom.largest_process",
        "oom.listed_processes_bytes",
        "oom.listed_processes",
        "balance.listed_is_self",
        "gpu.used",
        "gpu.largest_row",
        "torch.reserved",
    ),
)
def foreign(facts: Inputs) -> Outcome | None:
    """What other processes hold: capacity - free - this process, or the rows that are not ours."""
    key = _self_key(facts)
    if key is None:
        return _foreign_by_table(facts)
    keys = ("oom.capacity", "oom.free", key)
    rest = facts.whole(keys[0]) - facts.whole(keys[1]) - facts.whole(key)
    listed = facts.maybe_int("oom.listed_processes_bytes") or 0
    others = listed - (facts.whole(key) if key == "oom.largest_process" else 0)
    if others > max(0, rest):
        slack = facts.slack("oom.listed_processes_bytes")
        return Outcome(others, "sum of the other listed processes", slack)
    return all_named(facts, rest) or Outcome(
        max(0, rest), "capacity - free - this process", facts.slack(*keys)
    )


def _foreign_by_table(facts: Inputs) -> Outcome | None:
    """Return used - largest row where that row is this process by its size."""
    row, held = facts.whole("gpu.largest_row"), facts.whole("torch.reserved")
    if not CONTEXT_LOW <= row - held <= CONTEXT_HIGH:
        return None
    rest = max(0, facts.whole("gpu.used") - row)
    return Outcome(
        rest, "used - largest row (this process)", facts.slack("gpu.used", "gpu.largest_row")
    )


STEPS = (
    reserved,
    reserved_unallocated,
    allocated,
    awaiting_free,
    figures_given,
    absurd_size,
    shortfall,
    request_fits_free,
    listed_is_self,
    listed_twins,
    outside,
    context,
    foreign,
    foreign_low,
    foreign_made,
)
