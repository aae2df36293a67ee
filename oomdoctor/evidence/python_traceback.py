"""Python tracebacks to facts: the stack, its failing frame, its library, operator and exception.

```
Traceback (most recent call last):
  File "train.py", line 24, in <module>
    trainer.train()
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.37 GiB. ...
```
`stacks` gives all stacks of a document, `facts_of` what one of them says; `readers` attaches them
to the failures that they belong to.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.frames import Frame, is_ornament
from oomdoctor.evidence.libraries import is_installed, library_of
from oomdoctor.evidence.phase import inference_only, phase_of
from oomdoctor.evidence.stacks import Stack, stacks
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Quote, Value

__all__ = ["facts_of", "quoted_code", "stacks"]

_WRAPPING = """
    type tuple list dict set len super zip map isinstance getattr setattr hasattr enumerate range
    print str int float bool sum min max any all next iter return yield await lambda not if for in
    and or assert with raise del except partial cast
"""
_WRAPPERS = frozenset(_WRAPPING.split())
_HANDLER_FILES = ("torch/utils/data/_utils/signal_handling.py",)
_CODE_LOOKBACK = 3
_LISTED_LINES = 4
_CODE_CHARS = 400
_LAYER_DEPTH = 3
_FRAMEWORKS = (
    ("axolotl", "axolotl"),
    ("llamafactory", "llamafactory"),
    ("llmtuner", "llamafactory"),
    ("unsloth", "unsloth"),
    ("unsloth_zoo", "unsloth"),
    ("trl", "trl"),
    ("torchtune", "torchtune"),
    ("torchtitan", "torchtitan"),
    ("megatron", "megatron"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("ultralytics", "ultralytics"),
    ("detectron2", "detectron2"),
    ("mmengine", "openmmlab"),
    ("mmcv", "openmmlab"),
    ("mmdet", "openmmlab"),
    ("mmseg", "openmmlab"),
    ("lightning", "lightning"),
    ("pytorch_lightning", "lightning"),
    ("diffusers", "diffusers"),
    ("transformers", "transformers"),
    ("deepspeed", "deepspeed"),
    ("accelerate", "accelerate"),
)


def facts_of(document: Document, stack: Stack) -> tuple[Fact, ...]:
    """Return what `stack` says: trace.*, run.library, run.operator, run.phase, ..."""
    if not stack.frames:
        return tuple(_ending_facts(document, stack))
    facts = [*_frame_facts(document, stack), *_ending_facts(document, stack)]
    facts.extend(_run_facts(document, stack))
    return tuple(facts)


def quoted_code(document: Document, index: int) -> Stack | None:
    """Make a stack of one line of code that stands alone right before the line `index`.

    People cut a traceback down to `attn = F.scaled_dot_product_attention(` and the message.
    """
    line = document.lines[index]
    for before in range(index - 1, max(-1, index - 1 - _CODE_LOOKBACK), -1):
        other = document.lines[before]
        if (other.stream, other.rank) != (line.stream, line.rank) or not other.text.strip():
            continue
        if is_ornament(other.text):
            continue
        if len(other.text) > _CODE_CHARS or _code_line().match(other.text) is None:
            return None
        if before and _warning().search(document.lines[before - 1].text) is not None:
            return None
        if _is_listing(document, before):
            return None
        code = other.text.strip()
        frame = Frame("", None, "", code, before, before)
        return Stack(frames=(frame,), rank=line.rank, stream=line.stream, first=before, last=before)
    return None


def _is_listing(document: Document, index: int) -> bool:
    """Say whether a line stands there again and again but for its numbers: nobody quotes such."""
    first = index - _LISTED_LINES
    rows = [line.text[:_CODE_CHARS] for line in document.lines[max(0, first) : index + 1]]
    return first >= 0 and len({_digits().sub("0", row) for row in rows}) == 1


def _frame_facts(document: Document, stack: Stack) -> Iterator[Fact]:
    failing = stack.frames[-1]
    shown = "\n".join(frame.shown for frame in stack.frames)
    quotes = tuple(_quote(document, frame) for frame in stack.frames)
    last = quotes[-1:]
    yield _fact("trace.stack", shown, *quotes)
    yield _fact("trace.frame", failing.shown, *last)
    if failing.function:
        yield _fact("trace.function", failing.function, *last)
    if failing.path:
        yield _fact("trace.file", failing.path, *last)
    if failing.code and failing.code_at is not None:
        yield _fact("trace.code", failing.code, document.quote(document.lines[failing.code_at]))
    own = next((one for one in reversed(stack.frames) if _is_user(one)), None)
    if own is not None:
        yield _fact("trace.user_frame", own.shown, _quote(document, own))
    checkpointed = next((one for one in stack.frames if _is_checkpoint(one)), None)
    if checkpointed is not None:
        yield _flag("trace.checkpoint_frames", _quote(document, checkpointed), value=True)
    elif _shows_all_layers(stack):
        yield _flag("trace.checkpoint_frames", *last, value=False)


def _shows_all_layers(stack: Stack) -> bool:
    """Say whether the stack goes whole through a model's forward pass, layers and all."""
    depth = sum(1 for frame in stack.frames if frame.function == "forward")
    found = phase_of(stack)
    in_forward = found is not None and found.phase == "forward"
    return stack.complete and not stack.hidden and in_forward and depth >= _LAYER_DEPTH


def _ending_facts(document: Document, stack: Stack) -> Iterator[Fact]:
    if stack.ending is not None:
        ending = document.quote(document.lines[stack.ending])
        if stack.exception is not None:
            yield _fact("trace.exception", stack.exception, ending)
        if stack.header is not None and stack.frames:
            header = document.quote(document.lines[stack.header])
            yield _flag("trace.complete", header, ending, value=True)
            return
    if stack.frames:
        yield _flag("trace.complete", _quote(document, stack.frames[0]), value=False)


def _run_facts(document: Document, stack: Stack) -> Iterator[Fact]:
    failing = stack.frames[-1]
    quote = _quote(document, failing)
    library = library_of(failing.path)
    if library is not None:
        yield _fact("run.library", library, quote)
    operator = operator_of(stack)
    if operator is not None:
        yield _fact("run.operator", operator, _code_quote(document, failing))
    if any(handler in frame.path for frame in stack.frames for handler in _HANDLER_FILES):
        return
    found = phase_of(stack)
    if found is not None:
        yield _fact("run.phase", found.phase, _code_quote(document, found.frame))
    serves = inference_only(stack)
    if serves is not None:
        yield _fact("run.inference_only", serves.value, _code_quote(document, serves.frame))
    if stack.notebook:
        yield _flag("env.notebook", quote, value=True)
    yield from _framework(document, stack)


def _framework(document: Document, stack: Stack) -> Iterator[Fact]:
    """Name the framework that the frames show; a config that names it has precedence."""
    owners: dict[str, Frame] = {}
    for frame in stack.frames:
        library = library_of(frame.path)
        if library is not None:
            owners.setdefault(library, frame)
    for library, framework in _FRAMEWORKS:
        if library in owners:
            yield Fact(
                key="job.framework",
                value=framework,
                origin=Origin.DERIVED,
                quotes=(_quote(document, owners[library]),),
                source="frames of the traceback",
            )
            return


def operator_of(stack: Stack) -> str | None:
    """Name the operator that asked for memory, from the failing frame's code and function."""
    failing = stack.frames[-1]
    if failing.path.replace("\\", "/").endswith("torch/nn/functional.py") and failing.function:
        return failing.function
    if failing.code:
        if _product().match(failing.code):
            return "matmul"
        for name in _call().findall(failing.code):
            last = name.rpartition(".")[2]
            if len(last) > 1 and last not in _WRAPPERS:
                return str(last)
    for frame in reversed(stack.frames):
        if frame.function and not frame.function.startswith("<"):
            return frame.function
    return None


def _is_user(frame: Frame) -> bool:
    return bool(frame.path) and not is_installed(frame.path)


def _is_checkpoint(frame: Frame) -> bool:
    path = frame.path.replace("\\", "/")
    return (
        path.endswith(("torch/utils/checkpoint.py", "checkpoint_wrapper.py"))
        or "activation_checkpointing" in path
        or "gradient_checkpointing" in frame.function
        or (frame.code is not None and _checkpoint_call().search(frame.code) is not None)
    )


def _quote(document: Document, frame: Frame) -> Quote:
    return document.quote(document.lines[frame.at])


def _code_quote(document: Document, frame: Frame) -> Quote:
    index = frame.at if frame.code_at is None else frame.code_at
    return document.quote(document.lines[index])


def _fact(key: str, value: Value, *quotes: Quote) -> Fact:
    return Fact(key=key, value=value, quotes=quotes)


def _flag(key: str, *quotes: Quote, value: bool) -> Fact:
    return Fact(key=key, value=value, quotes=quotes)


@cache
def _call() -> re.Pattern[str]:
    return re.compile(r"([A-Za-z_][\w.]*)\(")


@cache
def _digits() -> re.Pattern[str]:
    return re.compile(r"\d+")


@cache
def _product() -> re.Pattern[str]:
    """Match code whose first operation is a matrix product: `scores = q @ k.transpose(1, 2)`."""
    return re.compile(r"(?:return |[\w., \[\]]+ = )?[\w.\[\]:, ]+ @ ")


@cache
def _warning() -> re.Pattern[str]:
    """Match the first line of a Python warning; the second one is the code that it is about."""
    return re.compile(r"\.py:\d+: \w*Warning: ")


@cache
def _checkpoint_call() -> re.Pattern[str]:
    return re.compile(r"(?:_gradient_checkpointing_func|(?<![\w.])checkpoint|\.checkpoint)\(")


@cache
def _code_line() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:-{1,6}>\s*\d+\s+)?(?:return\s+|[\w.\[\]\"', ]+ [+\-*/@]?= )?(?:await )?"
        r"[A-Za-z_][\w.]*(?:\[[^\]]*\])?(?:\.\w+)*\((?:[^:]|:(?! ))*$"
        r"|\s{2,}(?:return|[\w.]+ [+\-*/@]?=) [\w.()\[\], ]+ (?:[+\-*/@%]|//) [\w.()\[\], *+\-/@]+$"
        r"|\s{2,}(?:return|[\w.\[\]\"', ]+ [+\-*/@]?=) \([^:]+\)\.[A-Za-z_]\w*\((?:[^:]|:(?! ))*$"
    )
