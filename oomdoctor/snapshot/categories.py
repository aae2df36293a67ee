"""What a block is for, as far as the stack of its request shows.

Only what stands in the stack is told. Blocks of before the recording have no stack, and their
category says so; weights and optimizer states are among them where recording began late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.snapshot.lives import BEFORE

if TYPE_CHECKING:
    from oomdoctor.snapshot.lives import Life
    from oomdoctor.snapshot.stacks import Frame, Stack

EARLIER = "before the recording"
WEIGHTS = "made or moved as weights"
OPTIMIZER = "optimizer"
BACKWARD = "backward pass"
FORWARD = "forward pass"
OTHER = "other code"
UNKNOWN = "no recorded stack"

MODULE = "torch/nn/modules/module.py"
MOVES = ("_apply", "to", "cuda", "half", "bfloat16", "float", "convert")
LOADS = ("from_pretrained", "load_state_dict", "_load_state_dict_into_meta_model")


def category_of(life: Life, stack: Stack) -> str:
    """Return the category of a block."""
    if not stack.frames:
        if stack.backward:
            return BACKWARD
        return EARLIER if life.born == BEFORE else UNKNOWN
    words = [_word(one) for one in stack.frames]
    for word in (OPTIMIZER, BACKWARD, FORWARD, WEIGHTS):
        if word in words or (word == BACKWARD and stack.backward):
            return word
    return OTHER


def _word(frame: Frame) -> str | None:
    """Return what one frame says."""
    file, name = frame.file.replace("\\", "/"), frame.name
    if "torch/optim/" in file or ("optim" in file.rpartition("/")[2] and name == "step"):
        return OPTIMIZER
    if "torch/autograd/" in file and name in ("backward", "_engine_run_backward", "grad"):
        return BACKWARD
    if file.endswith("torch/_tensor.py") and name == "backward":
        return BACKWARD
    if frame.forward:
        return FORWARD
    if file.endswith(MODULE):
        return WEIGHTS if name in MOVES else None
    return WEIGHTS if name in LOADS or name == "__init__" else None
