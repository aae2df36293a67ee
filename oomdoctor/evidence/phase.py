"""What the run was doing when it failed, told by the functions and files of a stack.

From the failing frame outwards the first frame with a meaning names the phase, but for phases that
hold whatever runs inside them: an OOM in a forward pass that `evaluation_loop` called is an
evaluation OOM, one under `capture_model` a graph capture OOM.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.phase_marks import MARKS, Mark, Names
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.evidence.frames import Frame
    from oomdoctor.evidence.stacks import Stack


class Found(NamedTuple):
    """A phase, the frame that says so, and whether the stack settles it."""

    phase: str
    frame: Frame
    certain: bool


class Serves(NamedTuple):
    """Whether nothing trains, and the frame that says so."""

    value: bool
    frame: Frame


_HOLDING = ("graph-capture", "serve-profile", "merge", "eval", "backward")
_INNER = frozenset({"save", "resume", "merge"})
_RESUMED = frozenset({"optimizer", "load"})
_MODEL_CALLS = (
    "model( self.model( self.module( self.forward( net( self.net( self.network( unwrapped_model("
    " self.policy( self.actor( unet( self.unet( transformer( self.transformer("
)
_STEPS = "training_step* _training_step* train_step train_batch closure optimizer_closure"
_TRAINS = Mark(
    "train",
    functions="train _train training_step* inner_training_loop _inner_training_loop fit _fit"
    " backward run_backward train_one_epoch train_step train_batch pretrain train_epoch"
    " training_loop train_detector train_model prepare_model_for_kbit_training do_train finetune"
    " fine_tune _optimizer_step optimizer_step _run_epoch run_epoch log_validation*",
    files="/trl/ /torch/optim/",
    calls=".train() .backward( trainer.fit( optimizer.step(",
)
_SERVES = Mark(
    "serve",
    functions="generate",
    files="/vllm/ /sglang/ /lmdeploy/ /text_generation_server/ /tensorrt_llm/ /llama_cpp/"
    " /ctranslate2/ /faster_whisper/ /comfy/ /invokeai/ /transformers/generation/"
    " /diffusers/pipelines/",
    calls=".generate(",
)


def phase_of(stack: Stack) -> Found | None:
    """Return the phase that `stack` shows, None where no frame tells."""
    strong: list[Found] = []
    weak: list[Found] = []
    certain = modelled = False
    for frame in reversed(stack.frames):
        modelled = modelled or _runs_model(frame)
        mark = next((mark for mark in MARKS if _fits(mark, frame)), None)
        if mark is not None:
            # a loss that runs the model itself holds the forward pass too
            around = mark.phase == "loss" and modelled
            found = Found("forward" if around else mark.phase, frame, certain=True)
            (weak if mark.weak else strong).append(found)
        if _names(_STEPS).has(frame.function):
            certain = True
            break
    if strong:
        return _outranking(strong)
    meaningful = (found for found in weak if found.phase != "forward")
    chosen = next(meaningful, weak[0] if weak else None)
    return None if chosen is None else chosen._replace(certain=certain)


def inference_only(stack: Stack) -> Serves | None:
    """Say whether the stack shows that nothing trains; None where it shows neither."""
    for mark, value in ((_TRAINS, False), (_SERVES, True)):
        for frame in stack.frames:
            if _fits(mark, frame):
                return Serves(value=value, frame=frame)
    return None


def _outranking(strong: list[Found]) -> Found:
    """Choose among the strong marks, innermost first: a holding phase further out takes it all."""
    if strong[0].phase in _INNER:
        return strong[0]
    if strong[0].phase in _RESUMED:
        # reading a checkpoint runs through the optimizer's and the model's own files
        resumed = next((found for found in strong if found.phase == "resume"), None)
        if resumed is not None:
            return resumed
    for phase in _HOLDING:
        for found in strong:
            if found.phase == phase:
                return found
    return strong[0]


def _fits(mark: Mark, frame: Frame) -> bool:
    function = frame.function
    if function and _names(mark.functions).has(function):
        return True
    path = "/" + frame.path.replace("\\", "/")
    if frame.path and any(part in path for part in _words(mark.files)):
        return True
    for part, functions in mark.scoped:
        if part in path and _names(functions).has(function):
            return True
    return bool(frame.code) and any(_calls(frame.code or "", text) for text in _words(mark.calls))


def _runs_model(frame: Frame) -> bool:
    """Say whether a frame's code calls the model, or hands it to what does."""
    return frame.code is not None and (
        any(_calls(frame.code, text) for text in _words(_MODEL_CALLS))
        or _handed().search(frame.code) is not None
    )


@cache
def _handed() -> re.Pattern[str]:
    return re.compile(r"\w\((?:self\.)?(?:model|module|net|network)[,)]")


def _calls(code: str, text: str) -> bool:
    """Say whether `text` stands in the code and starts a word there."""
    at = code.find(text)
    while at >= 0:
        before = code[at - 1 : at]
        if text.startswith(".") or not (before.isalnum() or before == "_"):
            return True
        at = code.find(text, at + 1)
    return False


@cache
def _names(words: str) -> Names:
    return Names(words)


@cache
def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
