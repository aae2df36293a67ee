"""Derived facts of the processes that a message lists, where no table of a device tool is given."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

_WORDS = "small equal processes of the message, beside one that is much larger"


@derives("oom.small_twins", reads=("oom.listed_processes",))
def small_twins(facts: Inputs) -> Outcome:
    """None, where the reader of a message that lists processes found no such group."""
    facts.whole("oom.listed_processes")
    return Outcome(0, "no three listed processes are small and equal beside a large one")


@derives("gpu.small_rows", reads=("oom.small_twins", "gpu.process_rows"))
def small_rows(facts: Inputs) -> Outcome | None:
    """Equal small processes beside a large one are contexts, as equal rows of a table are."""
    twins = facts.whole("oom.small_twins")
    if not twins or facts.maybe_int("gpu.process_rows") is not None:
        return None
    return Outcome(twins, _WORDS)


@derives("gpu.small_rows_bytes", reads=("oom.small_twins_bytes", "gpu.process_rows"))
def small_rows_bytes(facts: Inputs) -> Outcome | None:
    """Their sum."""
    if facts.maybe_int("gpu.process_rows") is not None:
        return None
    return Outcome(facts.whole("oom.small_twins_bytes"), f"sum of the {_WORDS}")


STEPS = (small_twins, small_rows, small_rows_bytes)
