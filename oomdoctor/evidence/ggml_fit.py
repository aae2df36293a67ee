"""A ggml engine that could not make its plan fit, in a log that ends before anything was loaded.

common_memory_breakdown_print: | memory breakdown [MiB] | total  free   self   model   context ...
common_memory_breakdown_print: |   - CUDA0 (RTX 4060)   |  8188 = 7600 + (9216 = 7168 + 1536 + ...
common_params_fit_impl: projected to use 9216 MiB of device memory vs. 7600 MiB of free device ...
common_params_fit: failed to fit params to free device memory: n_gpu_layers already set by user ...

The engine goes on with the plan that it was given, so the line by itself is only a warning: it is
a failure where the plan exceeds what is free, and no later line shows that anything was loaded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact
from oomdoctor.evidence.ggml_plan import Plan
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Quote

WORDS = ("failed to fit params to free device memory",)
_PLANS = ("memory_breakdown", "mib of device memory vs", "mib free")
_LOADS = (
    *("buffer size", "layers to gpu", "load_tensors", "llama_context:", "n_ctx"),
    *("listening", "slot ", "main: model loaded", "eval time"),
)


@cache
def _projected() -> re.Pattern[str]:
    return re.compile(r"to use (\d+) MiB of device memory vs\. (\d+) MiB of free device memory")


def unfitted(document: Document) -> Iterator[Failure]:
    """Yield the failure of the last plan that could not be made to fit."""
    haystack = haystack_of(document)
    warned = haystack.telling(WORDS)
    if not warned or any(at > warned[-1] for at in haystack.telling(_LOADS)):
        return
    exceeded = _exceeded(document, warned[-1])
    if exceeded is None:
        return
    line = document.lines[warned[-1]]
    quotes = (document.quote(line), exceeded)
    yield Failure(
        kind="gpu-oom",
        order=line.number,
        line_quote=quotes[0],
        facts=(
            fact("oom.seen", value=True, quotes=quotes),
            fact("oom.form", "engine", quotes[:1]),
            fact("oom.figures_given", value=False, quotes=quotes[:1]),
            fact("run.phase", "load", quotes[:1]),
        ),
        rank=line.rank,
        stamp=line.stamp,
        indirect=True,
    )


def _exceeded(document: Document, end: int) -> Quote | None:
    """Return the line above `end` by which a device gets more than is free on it."""
    plan = Plan()
    found: Quote | None = None
    for index in haystack_of(document).telling(_PLANS):
        if index > end:
            break
        line = document.lines[index]
        plan.take(document, line)
        sums = _projected().search(line.text)
        if sums is not None:
            quote = document.quote(line, *sums.span())
            found = quote if int(sums[1]) > int(sums[2]) else None
    for name, free in plan.free.items():
        load = plan.load_of(name)
        if load is not None and load.bytes > free.bytes:
            return load.quote
    return found
