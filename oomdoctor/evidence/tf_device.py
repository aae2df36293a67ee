"""What TensorFlow and XLA say of the card at start, of reservations refused, and of the failing op.

Created TensorFlow device (/job:localhost/.../device:GPU:0 with 7524 MB memory) -> physical GPU
    (device: 0, name: Tesla V100-SXM2-16GB, pci bus id: 0000:03:00.0, compute capability: 7.0)
Created device /job:localhost/replica:0/task:0/device:GPU:0 with 120 MB memory:  -> device: 0,
    name: NVIDIA GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6
name: GeForce GTX 1080 Ti major: 6 minor: 1 memoryClockRate(GHz): 1.582
totalMemory: 10.92GiB freeMemory: 312.50MiB     (or `Total memory:`, `Free memory:` on two lines)
Memory usage: 39714816 bytes free, 8361017344 bytes total.          (under a cuDNN error)
Reported by CUDA: Free memory/Total memory: 412090368/25393692672   (cudaMallocAsync)
Non-zero status code returned while running MatMul node. Name:'/encoder/layer.0/attention/MatMul_1'
failed to allocate 7.35G (7889485824 bytes) from device: hipError_t(1002)
failed to allocate 6.61G (7100536832 bytes) from device: hipError_t(1002)
[[{{node gradient_tape/model/conv2d_3/Conv2D/Conv2DBackpropFilter}}]]   [Op:Conv2D]
E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_...
    Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import derived, first_of_each, flag, stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.pool_oom import HANDLE, HANDLES
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = (
    "mb memory",
    "totalmemory:",
    "total memory: ",
    "freememory:",
    "free memory: ",
    "bytes free,",
    "free memory/total memory:",
    "from device: ",
    "{{node ",
    "[[node",
    "[op:",
    "detected at node",
    "returned while running ",
    "runtime cudnn library",
    *HANDLES,
)
LONGEST = 2000
BACKOFF = (0.88, 0.92)
"""A refused reservation is tried again with nine tenths of its size."""
_BLOCK_LINES = 2
"""The free memory stands so far at most below the total of the same device."""

_OWN_CONTEXT = 1 << 29
"""What the context of a process that has allocated nothing yet may hold."""

_ROOMY = 0.5
"""A card that is fuller than this may be what keeps a library from starting."""
_BACKWARD = ("gradient_tape/", "gradients/", "gradients_", "grad/", "_grad/")
_OPTIMIZER = ("adam/", "training/", "rmsprop", "momentum/", "/apply", "optimizer/", "adagrad")


@cache
def _created() -> re.Pattern[str]:
    return re.compile(
        r"with (?P<mb>\d+) MB memory\)?:?\s*->\s*(?:physical GPU \()?device: (?P<index>\d+), "
        r"name: (?P<name>[^,]+), "
    )


@cache
def _total() -> re.Pattern[str]:
    return re.compile(r"[tT]otal ?[mM]emory: (?P<size>\d[\d.]*[KMG]iB)")


@cache
def _free() -> re.Pattern[str]:
    return re.compile(r"[fF]ree ?[mM]emory: (?P<size>\d[\d.]*[KMG]iB)")


@cache
def _usage() -> re.Pattern[str]:
    return re.compile(
        r"(?P<free>\d+) bytes free, (?P<total>\d+) bytes total"
        r"|Free memory/Total memory: (?P<free2>\d+)/(?P<total2>\d+)"
    )


@cache
def _refused() -> re.Pattern[str]:
    return re.compile(r"failed to allocate \S+ \((\d+) bytes\) from device")


@cache
def _node() -> re.Pattern[str]:
    return re.compile(
        r"\[\[(?:\{\{)?[nN]ode:? (?P<name>[\w./\-:]+)|\[Op:(?P<op>\w+)"
        r"|Detected at node:? ['\"](?P<at>[\w./\-:]+)"
        r"|returned while running (?P<kind>\w+) node\.(?: Name: ?['\"](?P<called>[\w./\-:]*))?"
    )


@cache
def _clash() -> re.Pattern[str]:
    return re.compile(
        r"Loaded runtime CuDNN library: \S+ but source was compiled with|"
        r"Possibly insufficient driver version"
    )


@cache
def _handle() -> re.Pattern[str]:
    return re.compile(HANDLE)


def _library_of(text: str) -> str:
    """Say in which library the handle failed: JAX has TensorFlow's sources below `external/`."""
    if re.search(r"external/(?:xla|tsl|org_tensorflow)/|(?:^|\s)xla/|jaxlib|XlaRuntimeError", text):
        return "xla"
    if "tensorflow" in text or re.search(r"(?i)get convolution algorithm|launch failed", text):
        return "tensorflow"
    return "xla" if re.search(r"(?i)DNN library|best cudnn", text) else "other"


def read(document: Document) -> Reading:
    """Return the first device's figures, the series of refused sizes, and the failing node."""
    lines = [document.lines[index] for index in haystack_of(document).lines_with(ANCHORS)]
    lines = [line for line in lines if len(line.text) <= LONGEST]
    facts = [fact for line in lines for fact in _line_facts(document, line)]
    facts += [*_block_facts(document, lines), *_room_facts(facts)]
    return Reading(facts=first_of_each((*facts, *_series_facts(document, lines))))


def _room_facts(facts: list[Fact]) -> Iterator[Fact]:
    """Say that a library could not start although the process itself counted most memory free."""
    failed = next((one for one in facts if one.key == "fault.handle_failed"), None)
    shares = [one for one in facts if one.key == "gpu.used_share"]
    fullest = max((one.value for one in shares if isinstance(one.value, float)), default=1.0)
    room = fullest <= _ROOMY
    if failed is not None and room:
        quotes = (*failed.quotes, *shares[0].quotes)
        source = "a handle failed and free / total of the same process"
        yield derived("fault.handle_room", room, *quotes, source=source)


def _line_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text
    found = _created().search(text)
    if found is not None:
        quote = document.quote(line, *found.span())
        yield stated("tf.device_memory", int(found["mb"]) << 20, quote, slack=1 << 19)
        yield stated("gpu.name", found["name"].strip(), quote)
    found = _usage().search(text)
    if found is not None and int(found["total"] or found["total2"]) > 0:
        free, total = found["free"] or found["free2"], found["total"] or found["total2"]
        yield from _usage_facts(int(free), int(total), document.quote(line))
    found = _node().search(text)
    if found is not None:
        name = found["name"] or found["op"] or found["at"] or _of_runtime(found)
        yield from _node_facts(name, document.quote(line, *found.span()))
    if any(word in text.lower() for word in HANDLES):
        found = _handle().search(text)
        if found is not None:
            quote = document.quote(line, *found.span())
            yield flag("fault.handle_failed", quote)
            yield stated("fault.handle_in", _library_of(text), quote)
    found = _clash().search(text)
    if found is not None:
        yield flag("tf.cudnn_version_clash", document.quote(line, *found.span()))


def _block_facts(document: Document, lines: Sequence[LogLine]) -> Iterator[Fact]:
    """Yield total and free memory of the first device, and what others held of it at the start."""
    total: Fact | None = None
    below = 0
    for line in lines:
        found = _sized(document, line, "gpu.total", _total())
        if found is not None and total is None:
            total, below = found, line.number + _BLOCK_LINES
            yield total
        free = _sized(document, line, "gpu.free", _free())
        if free is not None and total is not None and line.number <= below:
            yield free
            yield _others(total, free)
            return


def _sized(document: Document, line: LogLine, key: str, pattern: re.Pattern[str]) -> Fact | None:
    found = pattern.search(line.text)
    size = None if found is None else parse_size(found["size"])
    if found is None or size is None:
        return None
    quote = document.quote(line, *found.span())
    return stated(key, size.bytes, quote, slack=size.slack_bytes)


def _others(total: Fact, free: Fact) -> Fact:
    """Return what others hold: the process had taken no more than a context when it looked."""
    return derived(
        "gpu.foreign",
        max(0, int(total.value) - int(free.value) - _OWN_CONTEXT),
        *total.quotes,
        *free.quotes,
        source="total - free before TensorFlow allocated anything - 0.5 GiB for its context",
        slack=total.slack + free.slack,
    )


def _of_runtime(found: re.Match[str]) -> str:
    """Return a node of ONNX Runtime: its name, which seldom tells what it does, and its kind."""
    return f"{found['called'] or ''}:{found['kind']}".lstrip(":")


def _usage_facts(free: int, total: int, quote: Quote) -> Iterator[Fact]:
    yield stated("gpu.free", free, quote)
    yield stated("gpu.total", total, quote)
    share = round(1 - free / total, 4)
    yield derived("gpu.used_share", share, quote, source="1 - free / total of one line")


def _node_facts(name: str, quote: Quote) -> Iterator[Fact]:
    """Yield the node, and the phase where its name tells: gradients, or the optimizer's own ops."""
    yield stated("tf.node", name, quote)
    yield stated("run.operator", name.rpartition("/")[2] or name, quote)
    lower = name.lower()
    if "/initializer/" in lower:  # the first values of a variable or moment: no step ran yet
        yield stated("run.phase", "prepare", quote)
    elif any(word in lower for word in _BACKWARD):
        yield stated("run.phase", "backward", quote)
    elif any(word in lower for word in _OPTIMIZER):
        yield stated("run.phase", "optimizer", quote)


def _series_facts(document: Document, lines: Sequence[LogLine]) -> Iterator[Fact]:
    """Yield the refused reservations that follow one another from large to small."""
    rows: list[tuple[int, Quote]] = []
    for line in lines:
        found = _refused().search(line.text)
        size = None if found is None else int(found[1])
        if found is None or size is None or (rows and size >= rows[-1][0]):
            continue
        rows.append((size, document.quote(line, *found.span())))
    if not rows:
        return
    yield stated("tf.reserve_first", rows[0][0], rows[0][1])
    yield stated("tf.reserve_last", rows[-1][0], rows[-1][1])
    yield stated("tf.reserve_tries", len(rows), *(quote for _, quote in rows[:8]))
    if len(rows) > 1:
        steps = [low[0] / high[0] for high, low in pairwise(rows)]
        regular = all(BACKOFF[0] <= step <= BACKOFF[1] for step in steps)
        yield flag("tf.reserve_backoff", rows[0][1], rows[1][1], value=regular)
