"""The whole model in one flat tensor: the request as printed parameters x ranks x bytes.

A program that shards a model as a single unit prints one rank's parameters, and gathers weights or
gradients of all ranks at once: 2,826,830,336 x 4 ranks x 2 bytes = 21.06 GiB.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_job import SHARD_OPTIMIZER

MIB = 1 << 20
MOST_RANKS = 64
LEAST = 512 * MIB
ROUNDED_TO = 2 * MIB
FULL_WIDTH = 4
CERTAIN = 32
"""The printed share must be so many times the rounding, else a multiple fits by chance."""


@derives(
    "fingerprint.flat_model",
    reads=(
        "oom.requested",
        "oom.gpu_index",
        "model.params_printed",
        "model.params",
        "dist.kind",
        "dist.world_size",
        "lora.on",
    ),
)
def flat_model(facts: Inputs) -> Outcome | None:
    """Printed (or known) parameters x ranks x 2 or 4 bytes, within rounding."""
    size, slack = facts.number("oom.requested"), facts.slack("oom.requested") + ROUNDED_TO
    if (
        size < LEAST
        or facts.text("dist.kind") not in SHARD_OPTIMIZER
        or facts.maybe_flag("lora.on")
    ):
        return None
    printed = facts.maybe_int("model.params_printed")
    params = facts.maybe_int("model.params")
    if printed is None and params is not None and not facts.slack("model.params"):
        if any(abs(size - params * width) <= slack for width in (2, 4)):
            return Outcome(value=True, source="all parameters x 2 or 4 bytes")
        return None
    if printed is None or facts.slack("model.params_printed"):
        return None
    ranks = facts.maybe_int("dist.world_size")
    least = (facts.maybe_int("oom.gpu_index") or 0) + 1
    for width in (2, 4):
        if printed * width < CERTAIN * slack:
            continue
        times = round(size / (printed * width))
        fits = abs(size - printed * width * times) <= slack
        likely = times in (1, ranks) if ranks is not None else max(2, least) <= times <= MOST_RANKS
        if fits and likely:
            words = f"printed parameters x {times} ranks x {width} bytes"
            return Outcome(value=True, source=words, guess=ranks is None)
    return None


@derives(
    "fingerprint.flat_copy",
    reads=("oom.requested", "train.trainable_params", "lora.on"),
)
def flat_copy(facts: Inputs) -> Outcome | None:
    """Trained parameters x 4 bytes within rounding: master weights, gradients or a moment."""
    size, slack = facts.number("oom.requested"), facts.slack("oom.requested") + ROUNDED_TO
    trained = facts.whole("train.trainable_params")
    if size < LEAST or facts.maybe_flag("lora.on") or facts.slack("train.trainable_params"):
        return None
    equal = abs(size - trained * FULL_WIDTH) <= slack
    return Outcome(equal, "requested against trained parameters x 4 bytes")


STEPS = (flat_model, flat_copy)
