"""What rules of thumb say of a job's peak, in bytes: the formulas people use by hand.

| name | rule |
|---|---|
| x4 | four times the weights (`accelerate estimate-memory` says so of training with Adam) |
| 2sbhl, 6sbhl | states, and 2 or 6 values for each token, unit of width and layer |
| 34sbh | states, and 34 bytes instead (Megatron's count without the attention scores) |
| megatron | the same, with scores of eager attention, checkpointing, and 12 bytes for a logit |
| hf-blog | weights, optimizer, and the larger of gradients and a line in the parameters |

States are weights, and weight, gradient and two moments of what is trained in its dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_shape import Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job

NAMES = ("x4", "2sbhl", "6sbhl", "34sbh", "megatron", "hf-blog")
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
FOUR_BITS = 0.5
SCORES, BLOCK, KEPT = 5, 34, 2
LOGIT = 12
LINE = (4.6894e-4, 1.8494e6)


def naive(job: Job) -> Mapping[str, float]:
    """Return what each rule says of a training job; nothing for the rest."""
    if not job.trains or job.task == "image-classification":
        return {}
    shape = shape_of(job.model.config)
    all_of_it = float(job.model.params or parameters(shape))
    wide = BYTES[job.dtype]
    weights = all_of_it * (FOUR_BITS if job.quant is not None else wide)
    states = weights + 3 * all_of_it * wide
    if job.lora is not None:
        states = weights + 4 * adapter(shape, job) * wide
    tokens = job.batch * job.seq_len
    cells = float(tokens * shape.hidden * shape.layers)
    said = {
        "x4": 4 * weights,
        "2sbhl": states + 2 * cells * wide,
        "6sbhl": states + 6 * cells * wide,
        "34sbh": states + BLOCK / 2 * cells * wide,
        "megatron": states + _megatron(job, shape, cells) + LOGIT * tokens * shape.vocab,
    }
    if job.lora is None:
        kept = tokens * (LINE[0] * all_of_it + LINE[1]) * wide
        said["hf-blog"] = 3 * weights + max(2 * weights, kept)
    return said


def _megatron(job: Job, shape: Shape, cells: float) -> float:
    scores = SCORES * shape.heads * job.batch * job.seq_len**2 * shape.layers
    whole = BLOCK * cells + (scores if job.attention == "eager" else 0)
    return whole if job.checkpointing is None else KEPT * cells + whole / shape.layers


def parameters(shape: Shape) -> int:
    """Return the parameters of a decoder of that shape."""
    heads = shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    inner = shape.width * (3 if shape.gated else 2)
    ends = shape.vocab * shape.hidden * (1 if shape.tied else 2)
    return shape.layers * shape.hidden * (heads + inner) + ends


def adapter(shape: Shape, job: Job) -> int:
    """Return the parameters of LoRA on the query and one more projection of equal width."""
    rank = 0 if job.lora is None else job.lora.rank
    return 2 * rank * 2 * shape.hidden * shape.layers
