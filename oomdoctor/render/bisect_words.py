"""Words for trials: values, outcomes, peaks; who measured, computed or simulated them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import CRASH, FIT, HOST_OOM, OOM, REFUSED, TIMEOUT
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.trial import OomIdentity, TrialResult, Value

OUTCOMES = {
    FIT: "fits",
    OOM: "out of memory",
    HOST_OOM: "out of host memory",
    TIMEOUT: "took too long",
    CRASH: "crashed",
    REFUSED: "refused",
}
BACKENDS = {
    "cuda": "measured on the card",
    "cuda-twin": "inferred from a scaled twin of the job that ran on the card",
    "cpu": "counted on tensors of the CPU, not measured on a card",
    "virtual": "PyTorch's CUDA allocator on a virtual card, no device",
    "simulate": "simulated: traced on tensors without memory, not measured",
    "formula": "computed by formula, not measured",
}
OF_THE_HOST = "what its processes held on the host, looked at a few times a second"
TIMELESS = ("virtual", "simulate", "formula")
"""Where work takes no time, so that a speed says nothing."""


def value_words(value: Value) -> str:
    """Print a value of an axis."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        return f"{value:g}"
    return format_count(int(value))


def values_words(values: Mapping[str, Value]) -> str:
    """Print the values of a trial: `batch 8, seq 2,048`."""
    return ", ".join(f"{name} {value_words(value)}" for name, value in values.items())


def outcome_words(result: TrialResult) -> str:
    """Print an outcome with the rank that failed first."""
    words = OUTCOMES.get(result.outcome, result.outcome)
    if result.outcome == CRASH and result.exit_code == 0:  # it ended well, and showed nothing
        words = "tells nothing"
    if result.outcome in (FIT, OOM, HOST_OOM) or not result.reason:
        return (
            words if result.rank is None or result.ranks < 2 else f"{words} on rank {result.rank}"
        )
    return f"{words}: {result.reason.partition(chr(10))[0]}"


def figures_words(result: TrialResult) -> tuple[str, ...]:
    """Print what a trial measured: its peak, and its speed where it has one."""
    found = []
    if result.peak_bytes is not None:
        kind = "reserved" if result.reserved_bytes is not None else "allocated"
        found.append(f"{format_size(result.peak_bytes)} {kind}")
    elif result.host_bytes is not None:
        found.append(f"{format_size(result.host_bytes)} of the host")
    if result.tokens_per_second is not None and result.backend not in TIMELESS:
        found.append(f"{format_count(round(result.tokens_per_second))} tokens/s")
    return tuple(found)


def identity_words(identity: OomIdentity | None) -> str:
    """Print what failed and where."""
    if identity is None:
        return ""
    at = "" if identity.site is None else f" at {identity.site}"
    return f"{identity.exception} of {identity.backend}{at}"
