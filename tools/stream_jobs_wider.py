"""Further recorded jobs: other families, preferences of TRL, one rank of several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.job import GenerationSpec, Job, LoraSpec, ModelSpec, ShardingSpec
from oomdoctor.record import replace
from tools.stream_models import ALL, BART, EXPERTS, LLAMA2_7B, TINY, Recorded, half, model

if TYPE_CHECKING:
    from collections.abc import Iterator


def wider() -> Iterator[tuple[str, Recorded]]:
    """Yield all of them by the names of their files."""
    for kind in (_families, _preferences, _sharded):
        yield from kind()


def _families() -> Iterator[tuple[str, Recorded]]:
    """Experts, normalisation in fp32 with windows, an encoder with a decoder."""
    yield "mixtral-experts", Recorded(job=Job(model=small_experts("mixtral"), seq_len=512))
    yield "qwen3-experts", Recorded(job=Job(model=small_experts("qwen3_moe"), seq_len=512))
    gemma = model("google/gemma-3-1b-pt", 6)
    yield "gemma3-windows", Recorded(job=Job(model=gemma, seq_len=1024))
    bart = ModelSpec(name="small BART", config=BART, source="made up")
    pairs = Job(model=bart, task="seq2seq", dtype="fp32", batch=4, seq_len=256, target_len=64)
    yield "bart-fp32", Recorded(job=pairs)


def small_experts(kind: str) -> ModelSpec:
    """Return a model of two layers of eight experts, of which every token takes two."""
    config = {**TINY, **EXPERTS, "model_type": kind}
    return ModelSpec(name=f"small {kind}", config=config, source="made up")


def _preferences() -> Iterator[tuple[str, Recorded]]:
    job = half(framework="trl", task="kto", reference="separate", amp="bf16")
    yield "half-kto", Recorded(job=job)
    answers = GenerationSpec(batch=2, prompt=64, new_tokens=32)
    grpo = half(framework="trl", task="grpo", batch=2, seq_len=96, generation=answers)
    yield "half-grpo", Recorded(job=grpo)


def _sharded() -> Iterator[tuple[str, Recorded]]:
    """One rank of several; what is sent comes back at once."""
    lora = LoraSpec(rank=16, targets=ALL)
    for kind in ("ddp", "fsdp1", "fsdp2"):
        spec = ShardingSpec(kind=kind, ranks=4)
        yield f"{kind}-half", Recorded(job=half(sharding=spec))
        yield f"{kind}-accumulated", Recorded(job=half(sharding=spec, grad_accum=3))
        adapted = Job(
            model=model(LLAMA2_7B, 4), method="lora", lora=lora, seq_len=1024, sharding=spec
        )
        yield f"{kind}-lora", Recorded(job=adapted)
    for kind in ("fsdp1", "fsdp2"):
        eight = ShardingSpec(kind=kind, ranks=8)
        base = Job(model=model(LLAMA2_7B, 4), seq_len=1024, sharding=eight)
        yield f"{kind}-checkpointed", Recorded(job=replace(base, checkpointing="non-reentrant"))
        yield f"{kind}-plain-loop", Recorded(job=replace(base, framework="torch"))
        yield f"{kind}-autocast", Recorded(job=half(dtype="fp32", amp="bf16", sharding=eight))
        kept = ShardingSpec(kind=kind, ranks=4, reshard=False)
        yield f"{kind}-kept", Recorded(job=half(sharding=kept))
    ahead = ShardingSpec(kind="fsdp1", ranks=8, prefetch=True)
    base = Job(model=model(LLAMA2_7B, 4), seq_len=1024, sharding=ahead)
    yield "fsdp1-ahead", Recorded(job=base)
