"""How a job runs: precision, batch and length, attention, loss, checkpointing, ranks."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from oomdoctor.model.job import ShardingSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.memory.jobs_book import Said
    from oomdoctor.model.job import ModelSpec

LENGTH = 2048
EAGER_ALONE = ("bloom", "deberta-v2", "deberta", "gpt_neo", "mpt", "gemma2", "gpt_oss", "longt5")
"""Model types without scaled_dot_product_attention in transformers 5.24 (modeling files)."""
_ATTENTION = {"flash2": "flash", "flash3": "flash", "xformers": "sdpa"}
_LOSSES = {"full": "full-logits", "chunked": "chunked", "fused": "fused", "liger": "fused"}
_SHARDED = ("zero1", "zero2", "zero3", "fsdp1", "fsdp2")
_LIBRARIES = (
    *("torch", "transformers", "trl", "peft", "accelerate", "bitsandbytes", "deepspeed"),
    *("axolotl", "llamafactory", "unsloth", "torchtune", "torchtitan", "lightning", "vllm"),
    *("liger", "flash_attn"),
)
_CLIPS = ("transformers", "trl", "axolotl", "llamafactory", "unsloth", "nanogpt", "torchtitan")
_LENGTHS = ("max_position_embeddings", "n_positions", "max_target_positions")


def dtype_of(said: Said) -> str:
    """Return the dtype in which weights are loaded."""
    found = said.text("load.dtype") or said.text("train.base_dtype")
    if found is None and said.text("train.param_dtype"):
        found = said.text("train.param_dtype")
    if found in ("fp32", "bf16", "fp16"):
        return found
    stated = said.text("model.dtype")
    if stated in ("fp32", "bf16", "fp16"):
        said.assume(f"weights in {stated}, the dtype of the checkpoint")
        return stated
    if said.text("job.framework") in ("plain", "nanogpt", "lightning", "torchtitan"):
        said.assume("weights in fp32, as torch makes them")
        return "fp32"
    said.assume("weights in bf16 (no dtype is given)")
    return "bf16"


def autocast_of(said: Said) -> str | None:
    """Return the dtype of autocast, None without one."""
    amp = said.text("train.amp")
    if amp == "fp8":
        said.assume("fp8 training is described as bf16 autocast")
        return "bf16"
    return amp if amp in ("bf16", "fp16") else None


def batch_of(said: Said) -> int:
    """Return the rows of one micro-step on one card."""
    found = said.count("train.micro_batch")
    if found is not None:
        return found
    total, ranks = said.count("train.global_batch"), said.count("dist.world_size") or 1
    accumulated = said.count("train.grad_accum") or 1
    if total and total % (ranks * accumulated) == 0:
        return total // (ranks * accumulated)
    if said.count("gen.batch"):
        return said.count("gen.batch") or 1
    said.assume("one row at a time (no batch is given)")
    return 1


def length_of(said: Said, model: ModelSpec) -> int:
    """Return the tokens of the longest row."""
    longest = _longest(model.config)
    found = said.count("train.seq_len") or said.count("serve.max_len")
    if found is None:
        found = min(LENGTH, longest or LENGTH)
        said.assume(f"rows of {found:,} tokens (no length is given)")
    if longest is not None and found > longest and said.text("model.positions") == "absolute":
        said.assume(f"rows cut at {longest:,} tokens, the model's longest")
        return longest
    if longest is not None and found > longest:
        said.assume(f"rows of {found:,} tokens, though the model was made for {longest:,}")
    return found


def _longest(config: Mapping[str, object]) -> int | None:
    text = config.get("text_config")
    inner = text if isinstance(text, dict) else config
    found = (inner.get(name) for name in _LENGTHS)
    return next((value for value in found if isinstance(value, int)), None)


def attention_of(said: Said, model: ModelSpec) -> str:
    """Return the attention implementation: stated, or what transformers chooses."""
    kind = str(model.config.get("model_type", ""))
    stated = said.text("attention.impl")
    if stated is not None:
        return _ATTENTION.get(stated, stated)
    if kind in EAGER_ALONE:
        said.assume(f"eager attention ({kind} has no other by default)")
        return "eager"
    said.assume("sdpa attention (default of transformers and torch)")
    return "sdpa"


def checkpointing_of(said: Said) -> str | None:
    """Return how activations are recomputed, None where they are kept."""
    if not said.flag("train.grad_checkpointing"):
        return None
    reentrant = said.flag("train.checkpoint_reentrant")
    if reentrant is None:
        reentrant = said.flag("train.reentrant")
    return "reentrant" if reentrant else "non-reentrant"


def loss_of(said: Said, task: str) -> str:
    """Return how the loss meets the vocabulary; TRL's trainers for ORPO and CPO take all logits."""
    if task == "orpo" and not said.stated("loss.impl"):
        return "full-logits"
    return _LOSSES[said.text("loss.used") or said.text("loss.impl") or "full"]


def accumulation_of(said: Said) -> int:
    """Return the micro-steps of a rank in one step; nanoGPT's are those of all ranks together."""
    steps = said.count("train.grad_accum") or 1
    if said.text("job.framework") == "nanogpt":
        return max(1, steps // (said.count("dist.world_size") or 1))
    return steps


def clip_of(said: Said) -> float | None:
    """Return the norm that gradients are clipped to, None where they are not."""
    stated = said.number("train.max_grad_norm")
    if stated is not None:
        return stated or None
    framework = said.text("job.framework")
    return 1.0 if framework is None or framework in _CLIPS else None


def sharding_of(said: Said) -> ShardingSpec:
    """Return how ranks share the work; over an unknown number of them sharding is missing."""
    kind = said.text("dist.kind") or "none"
    ranks = said.count("dist.data_ranks") or said.count("dist.world_size")
    tensor = said.count("dist.tensor_ranks") or said.count("serve.tensor_parallel") or 1
    pipeline = said.count("dist.pipeline_ranks") or 1
    context = said.count("dist.context_ranks") or said.count("dist.sequence_ranks") or 1
    if kind in _SHARDED and ranks is None:
        ranks = _ranks_of_comments(said)
    if kind in _SHARDED and ranks is None and said.supposes:
        said.assume(
            "a single card (how many share the model is not known; each of several would hold"
            " less): --gpus 8"
        )
        ranks = 1
    elif kind in _SHARDED and ranks is None:
        said.lack("the number of cards that share the model: --gpus 8")
    if kind in ("ddp", "dp") and ranks is None:
        said.assume("data parallelism over two cards (their number changes no card's memory)")
        ranks = 2
    alone = ranks == 1 and kind not in _SHARDED  # ZeRO keeps its copies, FSDP its precision
    kind = "" if kind in ("none", "tensor", "pipeline") or alone else kind
    if said.text("dist.device_map") in ("auto", "balanced", "balanced_low_0", "sequential"):
        said.assume("all layers on one card (device_map spreads them where there are more)")
    return ShardingSpec(
        kind="ddp" if kind == "dp" else kind,
        ranks=ranks or 1,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        bucket_bytes=_bucket_bytes(said, kind),
        overlap=said.flag("zero.overlap") if kind.startswith("zero") else None,
        bucket_views=bool(said.flag("dist.bucket_views")),
        offload_params=(said.text("dist.param_offload") or "none") != "none",
        wrap="whole" if said.flag("dist.auto_wrap") is False else "layer",
        reshard=said.flag("dist.reshards") is not False,
        prefetch=said.flag("dist.prefetches"),
        live_values=said.count("zero.max_live") if kind == "zero3" else None,
    )


def _bucket_bytes(said: Said, kind: str) -> int | None:
    """Return the bytes of a bucket of gradients; ZeRO counts values, of 2 bytes each."""
    if kind.startswith("zero"):
        values = said.count("zero.reduce_values")
        return 2 * values if values else None
    mib = said.count("dist.bucket_mib")
    return mib << 20 if mib else None


def _ranks_of_comments(said: Said) -> int | None:
    """Return the processes of the launch that a config's comments show, where they agree."""
    shown = re.findall(
        r"^#.*nproc[-_]per[-_]node[ =](\d{1,3})\b", said.glance("job.text"), re.MULTILINE
    )
    if len(set(shown)) != 1 or int(shown[0]) < 1:
        return None
    said.assume(f"{shown[0]} processes, as the comments of the config launch it")
    return int(shown[0])


def image_of(said: Said, model: ModelSpec, task: str) -> int | None:
    """Return the pixels of a side of an image, None for a model of text."""
    pixels = said.count("vision.image_pixels")
    if pixels:
        return math.isqrt(pixels)
    vision = model.config.get("vision_config")
    inner = vision if isinstance(vision, dict) else model.config
    size = inner.get("image_size")
    if inner.get("model_type") == "pixtral":
        return None  # its size is the largest; pictures of any size are taken
    if task == "image-classification" or "vision_config" in model.config:
        if isinstance(size, int):
            return size
        if task == "image-classification":
            said.assume("images of 224 pixels")
            return 224
    return None


def versions_of(said: Said) -> dict[str, str]:
    """Return the versions that are stated, pinned or assumed."""
    found = {name: said.text(f"env.{name}") for name in _LIBRARIES}
    return {name: text for name, text in found.items() if text and re.match(r"\d", text)}
