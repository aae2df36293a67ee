"""Derived shares: the figures of the balance as parts of the card."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives, share

_CAPACITY = ("oom.capacity", "gpu.mig_slice", "gpu.total")


def _share(facts: Inputs, part: str, words: str) -> Outcome:
    """Return a fact as a share of the capacity."""
    whole = facts.first(*_CAPACITY)
    value, slack = share(
        facts.number(part),
        facts.number(whole),
        part_slack=facts.slack(part),
        whole_slack=facts.slack(whole),
    )
    return Outcome(value, f"{words} / capacity", slack)


@derives("gpu.foreign_share", reads=("gpu.foreign", *_CAPACITY))
def foreign_share(facts: Inputs) -> Outcome:
    """Other processes as a share of the card."""
    return _share(facts, "gpu.foreign", "other processes")


@derives("balance.foreign_low_share", reads=("balance.foreign_low", *_CAPACITY))
def foreign_low_share(facts: Inputs) -> Outcome:
    """Lower bound of other processes as a share of the card."""
    return _share(facts, "balance.foreign_low", "lower bound of other processes")


@derives("balance.allocated_share", reads=("torch.allocated", *_CAPACITY))
def allocated_share(facts: Inputs) -> Outcome:
    """Allocated as a share of the card."""
    return _share(facts, "torch.allocated", "allocated")


@derives("balance.cache_share", reads=("torch.reserved_unallocated", *_CAPACITY))
def cache_share(facts: Inputs) -> Outcome:
    """The cache as a share of the card."""
    return _share(facts, "torch.reserved_unallocated", "reserved but unallocated")


@derives("balance.request_share", reads=("oom.requested", "oom.absurd_size", *_CAPACITY))
def request_share(facts: Inputs) -> Outcome | None:
    """The request as a multiple of the card; it may well exceed 1."""
    if facts.maybe_flag("oom.absurd_size"):
        return None
    whole = facts.first(*_CAPACITY)
    value = facts.number("oom.requested") / facts.number(whole)
    slack = (facts.slack("oom.requested") + value * facts.slack(whole)) / facts.number(whole)
    return Outcome(value, "requested / capacity", slack)


@derives("gpu.used_share", reads=("gpu.used", "gpu.free", "gpu.total"))
def used_share(facts: Inputs) -> Outcome:
    """Used / total of the device tool."""
    total = facts.number("gpu.total")
    used = facts.maybe_number("gpu.used")
    part, key = (
        (total - facts.number("gpu.free"), "gpu.free") if used is None else (used, "gpu.used")
    )
    value, slack = share(
        part, total, part_slack=facts.slack(key), whole_slack=facts.slack("gpu.total")
    )
    return Outcome(value, "used / total", slack)


STEPS = (
    foreign_share,
    foreign_low_share,
    allocated_share,
    cache_share,
    request_share,
    used_share,
)
