"""What the run was doing when it failed, told by the log lines before the failure.

```
***** Running Evaluation *****                       Trainer
Validation:  40%|████      | 4/10 [00:01<00:02]      tqdm with a description
Saving model checkpoint to out/checkpoint-500
Loading checkpoint shards:  33%|███▎      | 1/3
Capturing CUDA graph shapes:  71%|███████▏  | 25/35  vLLM
Error executing method 'load_model'. This might ...   a worker of an engine
```
The last line that tells counts; a line of plain training progress says that the phase is over.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.phase_marks import MARKS, Names
from oomdoctor.evidence.progress_lines import parse_progress
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, LogLine

_LOOK_BACK = 400
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "eval",
        (
            "***** running evaluation",
            "***** running prediction",
            "***** eval",
            "running validation",
            "running evaluation",
            "starting validation",
            "starting evaluation",
            "start validation",
            "start evaluation",
            "begin validation",
            "evaluating:",
            "evaluating ",
            "evaluation:",
            "evaluation [",
            "evaluation  [",
            "test: [",
            "test:  [",
            "epoch(val)",
            "epoch(test)",
            "validating:",
            "validating ",
            "validation:",
            "validation dataloader",
            "validation sanity check",
            "sanity checking",
            "valid (loss",
            "valid:",
            "val:",
            "eval:",
            "testing:",
            "testing dataloader",
            "predicting",
            "start inference on",
            "computing metrics",
        ),
    ),
    (
        "graph-capture",
        (
            "capturing cuda graph",
            "capturing cudagraph",
            "capturing the model for cuda graphs",
            "capture cuda graph begin",
            "capturing batches",
            "starting cuda graph capture",
        ),
    ),
    (
        "serve-profile",
        (
            "starting profile run",
            "profile run",
            "warming up sampler",
            "warming up model",
            "memory profiling",
        ),
    ),
    (
        "save",
        (
            "saving model checkpoint",
            "saving checkpoint",
            "saving model to",
            "saving the model",
            "saving state",
            "saving current state",
            "saving optimizer",
            "save checkpoint",
            "saving full state",
            "model weights saved in",
            "configuration saved in",
        ),
    ),
    (
        "resume",
        (
            "resuming from",
            "resuming training",
            "resume from checkpoint",
            "loading states from",
            "loading optimizer state",
            "restoring states from",
            "restoring from checkpoint",
            "continuing training from checkpoint",
        ),
    ),
    ("merge", ("merging lora", "merging adapter", "merge lora", "merging weights")),
    (
        "load",
        (
            "loading checkpoint shards",
            "loading safetensors checkpoint shards",
            "loading pt checkpoint shards",
            "loading pipeline components",
            "loading weights",
            "loading checkpoint:",
            "loading model",
            "building model",
            "starting to load model",
            "load_tensors:",
            "materializing param",
        ),
    ),
    (
        "prepare",
        (
            "before initializing optimizer states",
            "creating fp16 zero",
            "creating bf16 zero",
            "creating torch.float16 zero",
            "creating torch.bfloat16 zero",
            "stage 3 initialize",
        ),
    ),
)
_TRAINING = "training"
_OVER = (
    "***** running training",
    "'loss':",
    '"loss":',
    "'eval_loss':",
    "eval_loss",
    "starting training",
    "start training",
    "training:",
    "train:",
    "epoch(train)",
    "application startup complete",
    "model loaded",
    "loading weights took",
    "loading model weights took",
    "model loading took",
    "graph capturing finished",
    "memory profiling takes",
)


# What the message itself, or the line that wraps it, says about where it happened.
_WRAPPED = (
    ("when warming up sampler", "serve-profile"),
    ("failed to clone() tensor", "save"),
    ("entry could point to invalid memory regions", "save"),
    ("capture cuda graph failed", "graph-capture"),
    ("alloc_tensor_range: failed", "load"),
    ("error loading model", "load"),
    ("failed to load model", "load"),
    ("model failed to load", "load"),
    ("failed to load weights", "load"),
    ("error executing load_", "load"),
    ("error while loading model", "load"),
    ("could not load the model", "load"),
    ("failed to allocate compute", "serve-start"),
    ("graph_reserve: failed", "serve-start"),
    ("failed to allocate buffer for kv cache", "serve-start"),
    ("failed to initialize the context", "serve-start"),
    ("not enough memory to handle", "serve-profile"),
    ("try to increase --mem-fraction-static", "serve-start"),
    ("available memory for the cache blocks", "serve-start"),
    ("look_ahead_size", "serve"),
    ("regular vae decoding, retrying", "generate"),
)
_WRAP_LINES = 4


class TextPhase(NamedTuple):
    """A phase, the line that tells it, and where that line stands in the document."""

    phase: str
    line: LogLine
    at: int


def phase_before(document: Document, index: int) -> TextPhase | None:
    """Return what the last telling line before the line `index` says the run was doing.

    Lines of other ranks count too: ranks go through a run together.
    """
    stepped = False
    for at in range(index - 1, max(-1, index - 1 - _LOOK_BACK), -1):
        line = document.lines[at]
        lowered = line.text[:400].lower()
        phase = _phase_of_line(lowered)
        if phase == _TRAINING:
            return None
        if phase is not None:
            over = _finished(lowered) or (stepped and phase != "eval")
            return None if over else TextPhase(phase, line, at)
        # a bar without a description: training steps, or the batches of an announced evaluation
        stepped = stepped or ("%|" in lowered and parse_progress(line) is not None)
    return None


@lru_cache(maxsize=4096)
def _phase_of_line(lowered: str) -> str | None:
    """Return the phase that a line announces; remembered, since failures share their past."""
    if any(word in lowered for word in _OVER) or lowered.lstrip().startswith("epoch: ["):
        return _TRAINING
    for phase, words in _MARKS:
        if any(word in lowered and _starts(lowered, word) for word in words):
            return phase
    return None


def phase_at(document: Document, index: int) -> TextPhase | None:
    """Return what the line `index` or the few lines after it say about where it happened."""
    following = document.lines[index : index + _WRAP_LINES]
    for at, line in enumerate(following, start=index):
        lowered = line.text[:1000].lower()
        for words, phase in _WRAPPED:
            if words in lowered:
                return TextPhase(phase, line, at)
        if " method " in lowered:
            told = _phase_of_method(lowered)
            if told is not None:
                return TextPhase(told, line, at)
    return None


def _phase_of_method(lowered: str) -> str | None:
    """Return the phase in which a worker runs the method that is said to have failed."""
    named = _method().search(lowered)
    if named is None:
        return None
    return next((phase for phase, names in _methods() if names.has(named[1])), "serve")


@cache
def _method() -> re.Pattern[str]:
    return re.compile(r"(?:exception .{0,80}while processing|error executing) method '?(\w+)")


@cache
def _methods() -> tuple[tuple[str, Names], ...]:
    return tuple((mark.phase, Names(mark.functions)) for mark in MARKS if mark.functions)


def _starts(lowered: str, word: str) -> bool:
    """Say whether `word` stands in the line and is not the end of a longer word."""
    at = lowered.find(word)
    return at == 0 or (at > 0 and not lowered[at - 1].isalnum() and lowered[at - 1] not in "_-'\"")


def _finished(lowered: str) -> bool:
    return "100%|" in lowered or "completed" in lowered or "finished" in lowered
