"""The reference of preference and reward training: a second frozen model, or the base alone."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.run.loading import build
from oomdoctor.worker.twins.adapter import is_adapted, unwrapped
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.worker.run.bench import Bench

_KINDS = (None, "separate", "adapter-off")


def load_reference(bench: Bench) -> None:
    """Load a second model where the job has one; it comes to the card as the first did."""
    kind = bench.job.reference
    if kind not in _KINDS:
        raise UnsupportedError(f"a reference of the kind {kind!r} is not traced")
    if kind == "adapter-off" and not is_adapted(unwrapped(bench.model)):
        raise UnsupportedError("a reference without the adapter needs one")
    if kind == "separate":
        bench.reference = build(bench).eval()
        bench.tag_weights(bench.reference)


@contextmanager
def reference_of(bench: Bench) -> Iterator[Any]:
    """Give the model that speaks for the reference, without gradients and as the loop casts."""
    adapter = bench.job.reference == "adapter-off"
    model = bench.model if adapter else bench.reference
    without = unwrapped(model).disable_adapter() if adapter else nullcontext()
    amp = bench.job.amp
    casts = torch.autocast(bench.device.type, dtype=dtype_of(amp)) if amp else nullcontext()
    with torch.no_grad(), without, casts:
        yield model
