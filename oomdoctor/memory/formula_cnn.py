"""Convolutional networks of torchvision, coarsely: what ResNet and VGG keep of each image.

A convolution keeps its input, batch norm its input, a ReLU in place its output; a pooling keeps the
places of its maxima as int64. cuDNN's workspaces have no formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import formula_optimizer
from oomdoctor.memory.tape import ACTIVATION, GRADIENT, OPTIMIZER, TEMPORARY, WEIGHT, Param, Tape

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

RESNETS = {
    "resnet18": ((2, 2, 2, 2), False),
    "resnet34": ((3, 4, 6, 3), False),
    "resnet50": ((3, 4, 6, 3), True),
    "resnet101": ((3, 4, 23, 3), True),
    "resnet152": ((3, 8, 36, 3), True),
}
VGGS = {
    "vgg16": ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
    "vgg19": ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4),
}
INT64 = 8
WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2}


def known(name: str) -> bool:
    """Say whether a network's layers are known here."""
    return name in RESNETS or name in VGGS


def kept(name: str, size: int, width: int) -> tuple[int, int]:
    """Return the bytes that one image keeps for backward, and those of the widest layer."""
    return _vgg(VGGS[name], size, width) if name in VGGS else _resnet(name, size, width)


def _vgg(stages: tuple[tuple[int, ...], ...], size: int, width: int) -> tuple[int, int]:
    total, widest = 3 * size * size * width, 0
    for stage in stages:
        for channels in stage:
            layer = channels * size * size * width
            total, widest = total + layer, max(widest, layer)
        size //= 2
        total += stage[-1] * size * size * (width + INT64)
    return total, widest


def _resnet(name: str, size: int, width: int) -> tuple[int, int]:
    blocks, deep = RESNETS[name]
    size = -(-size // 2)
    widest = 64 * size * size * width
    total = 3 * 4 * size * size * width + 2 * widest
    size = -(-size // 2)
    total += 64 * size * size * (width + INT64)
    for stage, count in enumerate(blocks):
        channels = 64 << stage
        outer = 4 * channels if deep else channels
        for block in range(count):
            before = size
            if stage and not block:
                size = -(-size // 2)
            inner = channels * (before * before if deep else size * size)
            total += 2 * width * (inner + channels * size * size * deep + outer * size * size)
            if not block and (deep or stage):
                total += outer * size * size * width
    return total, widest


def run(tape: Tape, job: Job) -> None:
    """Run load and two steps of a network whose layers are known; ValueError for another."""
    name = str(job.model.config.get("name"))
    if not known(name) or job.model.params is None:
        raise ValueError(f"no formula for the network {name}")
    width = 2 if job.amp is not None else WIDTHS[job.dtype]
    param = Param("network", job.model.params, WIDTHS[job.dtype], trains=job.trains)
    size = job.image_size or 224
    each, widest = kept(name, size, width)
    rows = job.batch
    tape.begin("load")
    weights = tape.block(param.count * param.width, WEIGHT)
    if not job.trains:
        tape.begin("evaluation")
        passing = tape.block(2 * rows * widest, ACTIVATION)
        del passing, weights
        return
    states = None
    for phase in ("step 1", "step 2"):
        tape.begin(phase)
        tape.part = "backward"
        activations = tape.block(rows * each, ACTIVATION)
        passing = tape.block(2 * rows * widest, TEMPORARY)
        del activations, passing
        grads = tape.block(param.count * param.width, GRADIENT)
        tape.part = "optimizer"
        if states is None:
            states = tape.block(formula_optimizer.state_bytes(job, [(param, 1)]), OPTIMIZER)
        step = tape.block(formula_optimizer.step_bytes(job, [(param, 1)]), TEMPORARY)
        del step, grads
    del states, weights
