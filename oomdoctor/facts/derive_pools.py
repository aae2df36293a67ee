"""Derived facts of library pools: what is unused, what a compiled program lacks, which library."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts.derivation import Inputs, Outcome, derives

if TYPE_CHECKING:
    from oomdoctor.facts.derivation import Derivation

LEAST_TOKENS = 256
LEAST_VOCABULARY, MOST_VOCABULARY = 20_000, 600_000
LEAST_ROWS = 100_000
LEAST_BATCH = 4
LEAST_ELEMENTS = 1 << 20
_LARGEST_KERNEL = 11
_FORMS_OF_TORCH = ("allocator", "preempted", "exabyte", "invalid-buffer", "nvml-assert")


_DIGITS = 18
"""No dimension has more."""


@derives("oom.library", reads=("oom.seen", "oom.form"))
def library(facts: Inputs) -> Outcome | None:
    """PyTorch's own texts are PyTorch's; what no reader ascribes is of another library."""
    if not facts.flag("oom.seen"):
        return None
    own = facts.maybe_text("oom.form") in _FORMS_OF_TORCH
    return Outcome("torch" if own else "other", "form of the message")


@derives(
    "oom.second_pool",
    reads=("oom.library", "oom.this_process", "job.text", "log.text"),
)
def second_pool(facts: Inputs) -> Outcome | None:
    """PyTorch fails beside a library with a pool of its own, and this process is not told apart."""
    if facts.text("oom.library") != "torch":
        return Outcome(value=False, source="it is not PyTorch that fails")
    if facts.maybe_int("oom.this_process") is not None:
        return Outcome(value=False, source="the message states what this process holds")
    said = facts.glance("job.text") + "\n" + facts.glance("log.text")
    named = _other_pools().search(said) is not None
    return Outcome(named, "libraries that the job and the log name")


@cache
def _other_pools() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\btorch_xla\b|^\s*(?:import|from) (?:jax|flax|tensorflow)\b|\bjax/_src/|\bjaxlib/|"
        r"\bXLA_PYTHON_CLIENT|\btensorflow/python/",
        re.MULTILINE,
    )


@derives("oom.scores_shape", reads=("oom.tensor_shape",))
def scores_shape(facts: Inputs) -> Outcome | None:
    """Whether the last two of three or more dimensions are equal and many."""
    dims = _dims(facts)
    value = len(dims) >= 3 and dims[-1] == dims[-2] >= LEAST_TOKENS
    return Outcome(value=value, source="last two dimensions of the tensor")


@derives("oom.vocab_shape", reads=("oom.tensor_shape",))
def vocab_shape(facts: Inputs) -> Outcome | None:
    """Whether the last dimension is as large as a vocabulary."""
    dims = _dims(facts)
    value = len(dims) >= 2 and LEAST_VOCABULARY <= dims[-1] <= MOST_VOCABULARY
    return Outcome(value=value, source="last dimension of the tensor")


@derives("oom.batch_shape", reads=("oom.tensor_shape", "train.micro_batch"))
def batch_shape(facts: Inputs) -> Outcome | None:
    """Whether the first of three or more dimensions is the number of rows of a batch."""
    dims, rows = _dims(facts), facts.whole("train.micro_batch")
    if len(dims) < 3 or rows < LEAST_BATCH:
        return None
    return Outcome(value=dims[0] == rows, source="first dimension of the tensor against the batch")


@derives("oom.batch_shape", reads=("xla.buffers", "train.micro_batch"))
def batch_buffer(facts: Inputs) -> Outcome | None:
    """The same of the largest buffer of a compiled program."""
    rows = facts.whole("train.micro_batch")
    largest = facts.text("xla.buffers").partition("\n")[0]
    shape = largest.rpartition("[")[2].rstrip("]").split(",")
    if len(shape) < 3 or rows < LEAST_BATCH or not shape[0].isdecimal():
        return None
    return Outcome(value=int(shape[0]) == rows, source="first dimension of the largest buffer")


@derives("oom.layer_shape", reads=("oom.tensor_shape",))
def layer_shape(facts: Inputs) -> Outcome:
    """Whether it is what a layer makes of a batch, and no kernel, of which the first two are few.

    Rows x places x channels in either order; a kernel of a convolution is 3 x 3 x inputs x outputs.
    """
    dims = _dims(facts)
    kernel = len(dims) > 3 and max(dims[:2]) <= _LARGEST_KERNEL
    value = len(dims) >= 3 and not kernel and math.prod(dims) >= LEAST_ELEMENTS
    return Outcome(value=value, source="number and size of the dimensions")


@derives("oom.table_shape", reads=("oom.tensor_shape",))
def table_shape(facts: Inputs) -> Outcome | None:
    """Whether it is a table of very many rows."""
    dims = _dims(facts)
    value = len(dims) == 2 and dims[0] >= LEAST_ROWS and 8 <= dims[1] <= 8192
    return Outcome(value=value, source="two dimensions, the first very large")


def _dims(facts: Inputs) -> tuple[int, ...]:
    """Return the dimensions, none where the text is no shape."""
    parts = facts.text("oom.tensor_shape").split("x")
    decimal = all(part.isdecimal() and len(part) <= _DIGITS for part in parts)
    return tuple(map(int, parts)) if decimal else ()


@derives("bfc.unused", reads=("bfc.limit", "bfc.in_use"))
def unused(facts: Inputs) -> Outcome:
    """Limit - in use."""
    rest = max(0, facts.whole("bfc.limit") - facts.whole("bfc.in_use"))
    return Outcome(rest, "limit - in use", facts.slack("bfc.limit", "bfc.in_use"))


@derives("bfc.in_use_share", reads=("bfc.limit", "bfc.in_use"))
def in_use_share(facts: Inputs) -> Outcome | None:
    """In use / limit."""
    return _share(facts, ("bfc.in_use",), "bfc.limit")


@derives("bfc.unused_fits", reads=("bfc.unused", "oom.requested", "oom.absurd_size"))
def unused_fits(facts: Inputs) -> Outcome | None:
    """Whether the unused bytes of the pool exceed the request beyond rounding."""
    if facts.maybe_flag("oom.absurd_size"):
        return None
    room = facts.whole("bfc.unused") - facts.whole("oom.requested")
    slack = facts.slack("bfc.unused", "oom.requested")
    if abs(room) <= slack:
        return None
    return Outcome(value=room > 0, source="(limit - in use) against requested")


@derives("tf.device_share", reads=("tf.device_memory", "gpu.most"))
def device_share(facts: Inputs) -> Outcome | None:
    """Device memory of TensorFlow / card."""
    return _share(facts, ("tf.device_memory",), "gpu.most")


@derives("tf.reserve_share", reads=("tf.reserve_first", "gpu.most"))
def reserve_share(facts: Inputs) -> Outcome | None:
    """First refused reservation / card."""
    return _share(facts, ("tf.reserve_first",), "gpu.most")


@derives("xla.parameter_share", reads=("xla.parameters", "xla.constants", "xla.total"))
def parameter_share(facts: Inputs) -> Outcome | None:
    """(Parameters + constants) / total."""
    keys: tuple[str, ...] = ("xla.parameters",)
    if facts.maybe_int("xla.constants") is not None:
        keys = (*keys, "xla.constants")
    return _share(facts, keys, "xla.total")


@derives("xla.temp_share", reads=("xla.temp", "xla.total"))
def temp_share(facts: Inputs) -> Outcome | None:
    """Temporary buffers / total."""
    return _share(facts, ("xla.temp",), "xla.total")


def _excess(key: str, room: str = "gpu.most") -> Derivation:
    @derives("xla.excess", reads=(key, room))
    def excess(facts: Inputs) -> Outcome:
        """What the program needs - what it may use, never below zero."""
        rest = max(0, facts.whole(key) - facts.whole(room))
        return Outcome(rest, f"{key} - {room}", facts.slack(key, room))

    return excess


def _share(facts: Inputs, parts: tuple[str, ...], whole: str) -> Outcome | None:
    total = facts.whole(whole)
    if total <= 0:
        return None
    value = sum(map(facts.whole, parts)) / total
    words = " + ".join(parts)
    return Outcome(round(value, 4), f"{words} / {whole}", facts.slack(*parts) / total)


STEPS = (
    library,
    second_pool,
    scores_shape,
    vocab_shape,
    batch_shape,
    layer_shape,
    batch_buffer,
    table_shape,
    unused,
    in_use_share,
    unused_fits,
    device_share,
    reserve_share,
    parameter_share,
    temp_share,
    _excess("xla.total"),
    _excess("xla.hbm_used"),
    _excess("xla.needed", "xla.limit"),
)
