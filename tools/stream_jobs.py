"""The jobs whose streams of allocations are recorded for `fixtures/streams`.

Together they take every path of the tracer: dtypes, adapters, quantised bases, checkpointing,
attention on three kinds of cards, optimizers, evaluation, generation. Most models have their real
widths and few layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.model.job import (
    EvalSpec,
    GenerationSpec,
    Job,
    LoraSpec,
    ModelSpec,
    OptimizerSpec,
    QuantSpec,
)
from oomdoctor.record import replace
from tools.stream_jobs_wider import wider
from tools.stream_models import (
    ALL,
    GPT2,
    H100,
    L4,
    LLAMA2_7B,
    LLAMA3_8B,
    MISTRAL,
    QV,
    QWEN_7B,
    QWEN_HALF,
    Recorded,
    half,
    model,
    tiny,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def _pictures(spec: ModelSpec, **changes: Any) -> Job:
    """Return a job that tells pictures of ten classes apart."""
    task = "image-classification"
    return Job(model=spec, task=task, dtype="fp32", batch=16, labels=10, **changes)


def jobs() -> dict[str, Recorded]:
    """Return all jobs by the names of their files."""
    kinds = (_full, _adapters, _quantised, _optimizers, _other_phases, _other_tasks, _libraries)
    return {name: one for kind in (*kinds, wider) for name, one in kind()}


def _full() -> Iterator[tuple[str, Recorded]]:
    yield "tiny-bf16", Recorded(job=Job(model=tiny(), batch=2, seq_len=256))
    yield (
        "tiny-plain-loop",
        Recorded(job=Job(model=tiny(), batch=2, seq_len=256, framework="torch", clip_norm=None)),
    )
    yield "half-bf16", Recorded(job=Job(model=model(QWEN_HALF), batch=2, seq_len=1024))
    yield "half-fp32-eager", Recorded(job=half(dtype="fp32", attention="eager"))
    yield "half-autocast", Recorded(job=half(dtype="fp32", amp="bf16"))
    yield "half-fp16-scaler", Recorded(job=half(dtype="fp32", amp="fp16", scaler=True))
    yield "half-padded-checkpointed", Recorded(job=half(padded=True, checkpointing="reentrant"))
    yield "half-odd-shape", Recorded(job=half(batch=3, seq_len=777))
    yield "half-accumulated", Recorded(job=half(grad_accum=3))
    yield "half-sm90", Recorded(job=half(), card=H100)
    yield "half-sm89", Recorded(job=half(), card=L4)
    yield "half-padded-sm90", Recorded(job=half(padded=True), card=H100)
    yield "half-expandable", Recorded(job=half(), settings="expandable_segments:True")
    yield "gpt2-fp32", Recorded(job=Job(model=model(GPT2), dtype="fp32", batch=2, seq_len=512))
    gpt2 = Job(model=model(GPT2, 6), dtype="fp32", amp="bf16", batch=2, seq_len=512, grad_accum=2)
    yield "gpt2-autocast-accumulated", Recorded(job=gpt2)
    yield (
        "llama2-7b-full-checkpointed",
        Recorded(job=Job(model=model(LLAMA2_7B, 4), seq_len=2048, checkpointing="non-reentrant")),
    )
    yield "llama3-8b-gqa", Recorded(job=Job(model=model(LLAMA3_8B, 2), seq_len=2048))


def _adapters() -> Iterator[tuple[str, Recorded]]:
    lora = LoraSpec(rank=8, targets=QV, dropout=0.05)
    yield (
        "llama2-7b-lora",
        Recorded(job=Job(model=model(LLAMA2_7B), method="lora", lora=lora, seq_len=2048)),
    )
    yield (
        "llama2-7b-lora-checkpointed",
        Recorded(
            job=Job(
                model=model(LLAMA2_7B, 8),
                method="lora",
                lora=lora,
                seq_len=2048,
                checkpointing="non-reentrant",
            )
        ),
    )
    yield (
        "llama2-7b-lora-autocast",
        Recorded(
            job=Job(model=model(LLAMA2_7B, 4), method="lora", lora=lora, dtype="fp32", amp="bf16")
        ),
    )
    yield (
        "mistral-7b-lora-reentrant",
        Recorded(
            job=Job(model=model(MISTRAL, 8), method="lora", lora=lora, checkpointing="reentrant")
        ),
    )
    wide = LoraSpec(rank=16, targets=ALL)
    yield (
        "qwen-7b-lora-all",
        Recorded(job=Job(model=model(QWEN_7B, 4), method="lora", lora=wide, batch=2, seq_len=1024)),
    )
    yield (
        "qwen-7b-lora-sm90",
        Recorded(
            job=Job(model=model(QWEN_7B, 4), method="lora", lora=wide, seq_len=1024), card=H100
        ),
    )
    yield (
        "half-dora",
        Recorded(job=half(method="dora", lora=LoraSpec(rank=8, targets=QV, dora=True))),
    )


def _quantised() -> Iterator[tuple[str, Recorded]]:
    wide = LoraSpec(rank=16, targets=ALL)
    four = QuantSpec(kind="nf4", double=True, prepared=True)
    yield (
        "llama2-7b-qlora",
        Recorded(
            job=Job(
                model=model(LLAMA2_7B, 4),
                method="qlora",
                lora=wide,
                quant=four,
                amp="bf16",
                batch=2,
                seq_len=1024,
                checkpointing="reentrant",
                optimizer=OptimizerSpec(name="adamw-8bit", paged=True),
            ),
            card=L4,
        ),
    )
    yield (
        "half-nf4",
        Recorded(job=half(method="qlora", lora=wide, quant=QuantSpec(kind="nf4"), amp="bf16")),
    )
    yield (
        "half-int8",
        Recorded(
            job=half(
                method="qlora",
                lora=wide,
                quant=QuantSpec(kind="int8", compute_dtype="fp16"),
                dtype="fp16",
                amp="fp16",
            )
        ),
    )


def _optimizers() -> Iterator[tuple[str, Recorded]]:
    for name, spec in (
        ("fused", OptimizerSpec(implementation="fused")),
        ("for-loop", OptimizerSpec(implementation="for-loop")),
        ("sgd", OptimizerSpec(name="sgd", decay=0.01)),
        ("momentum", OptimizerSpec(name="sgd-momentum", decay=0.01)),
        ("adafactor", OptimizerSpec(name="adafactor")),
        ("adamw-8bit", OptimizerSpec(name="adamw-8bit")),
        ("adamw-paged", OptimizerSpec(paged=True)),
        ("lion", OptimizerSpec(name="lion")),
    ):
        yield f"half-{name}", Recorded(job=half(optimizer=spec))


def _other_phases() -> Iterator[tuple[str, Recorded]]:
    evaluation = EvalSpec(batch=2, seq_len=512, batches=3, keeps_outputs=True)
    generation = GenerationSpec(batch=2, prompt=64, new_tokens=16)
    yield (
        "half-phases",
        Recorded(job=half(evaluation=evaluation, generation=generation, saves=True, resumes=True)),
    )
    yield (
        "half-lora-merged",
        Recorded(
            job=half(
                method="lora",
                lora=LoraSpec(targets=QV),
                evaluation=evaluation,
                saves=True,
                merges=True,
            )
        ),
    )
    yield (
        "half-generation",
        Recorded(
            job=half(task="generation", optimizer=None, generation=generation, framework="torch")
        ),
    )
    yield "half-forward", Recorded(job=half(task="forward", optimizer=None, framework="torch"))


def _other_tasks() -> Iterator[tuple[str, Recorded]]:
    bert = model("google-bert/bert-large-uncased", 6)
    yield (
        "bert-autocast-padded",
        Recorded(
            job=Job(
                model=bert,
                task="masked-lm",
                dtype="fp32",
                amp="bf16",
                batch=8,
                seq_len=256,
                padded=True,
            )
        ),
    )
    yield (
        "t5-fp32",
        Recorded(
            job=Job(
                model=model("google-t5/t5-small"),
                task="seq2seq",
                dtype="fp32",
                batch=4,
                seq_len=256,
                target_len=64,
            )
        ),
    )
    vit = model("google/vit-base-patch16-224", 6)
    yield "vit-autocast", Recorded(job=_pictures(vit, amp="bf16"))
    resnet = ModelSpec(name="ResNet-50", config={"model_type": "resnet"}, source="made up")
    yield "resnet-fp32", Recorded(job=_pictures(resnet, attention="eager"))
    yield "resnet-sm90", Recorded(job=_pictures(resnet, attention="eager"), card=H100)


def _libraries() -> Iterator[tuple[str, Recorded]]:
    small = Job(model=tiny(), dtype="fp32", amp="bf16", batch=2, seq_len=256)
    half = Job(model=model(QWEN_HALF, 2), amp="bf16", batch=2, seq_len=512, framework="trl")
    wide = LoraSpec(rank=8, targets=QV)
    chats = replace(half, method="lora", lora=wide, loss="chunked")  # TRL's own loss
    yield "loop-trainer", Recorded(job=small, loop="transformers")
    yield "loop-trl-sft", Recorded(job=chats, loop="trl-sft")
    pairs = replace(chats, task="dpo", reference="adapter-off")
    yield "loop-trl-dpo-lora", Recorded(job=pairs, loop="trl-dpo")
    full = replace(half, task="dpo", loss="chunked", reference="separate")
    yield "loop-trl-dpo", Recorded(job=full, loop="trl-dpo")
