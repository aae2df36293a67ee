"""Scripts whose job can be described allocate on a card what is simulated for the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.session import WorkerSession
from oomdoctor.lab.simulate_trial import SimulateBackend
from oomdoctor.model.job import (
    CardSpec,
    GenerationSpec,
    Job,
    LoraSpec,
    ModelSpec,
    OptimizerSpec,
    QuantSpec,
    ShardingSpec,
)
from oomdoctor.model.trial import FIT, TrialSpec
from tests.gpu.scripts import run_script, skip_without

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LLAMA = ModelSpec(
    name="the Llama of made.py",
    config={
        "model_type": "llama",
        "vocab_size": 8192,
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "max_position_embeddings": 16384,
        "tie_word_embeddings": False,
    },
    source="made up",
)
RESNET = ModelSpec(
    name="ResNet-50",
    config={"library": "torchvision", "name": "resnet50", "num_classes": 10},
    source="torchvision",
)
BF16 = {"model": LLAMA, "dtype": "bf16", "amp": "bf16"}
# a model that is made in the script goes to the card as it is
TRL = {**BF16, "framework": "trl", "loss": "chunked", "loading": "moved"}
OF_RANKS = {"model": LLAMA, "batch": 4, "seq_len": 512, "framework": "torch"}
FULL = Job(model=LLAMA, dtype="fp32", amp="bf16", batch=8, seq_len=512)
BUCKET = 2 * 20_000_000

JOBS: dict[str, tuple[Job, tuple[str, ...]]] = {
    "trainer_full.py": (FULL, ("accelerate",)),
    # what accelerate prepares, transformers' Trainer has it prepare
    "accelerate_loop.py": (FULL, ("accelerate",)),
    "trainer_lora.py": (
        Job(
            **BF16,
            method="lora",
            lora=LoraSpec(rank=16, targets=("q_proj", "k_proj", "v_proj", "o_proj")),
            batch=8,
            seq_len=1024,
            checkpointing="non-reentrant",
        ),
        ("accelerate", "peft"),
    ),
    "trl_sft.py": (Job(**TRL, batch=8, seq_len=512), ("trl",)),
    "trl_dpo.py": (Job(**TRL, task="dpo", reference="separate", batch=4, seq_len=512), ("trl",)),
    # a prompt of 64 tokens; TRL scores the answers tile by tile, as in SFT
    "trl_grpo.py": (
        Job(
            **TRL,
            task="grpo",
            batch=8,
            seq_len=64 + 128,
            generation=GenerationSpec(batch=8, prompt=64, new_tokens=128),
        ),
        ("trl",),
    ),
    "qlora.py": (
        Job(
            **BF16,
            method="lora",
            quant=QuantSpec(kind="nf4", double=True, prepared=True),
            lora=LoraSpec(rank=16, targets=("all-linear",)),
            batch=8,
            seq_len=512,
            checkpointing="non-reentrant",
            optimizer=OptimizerSpec(name="adamw-8bit", paged=True),
        ),
        ("accelerate", "peft", "bitsandbytes"),
    ),
    "resnet.py": (
        Job(
            model=RESNET,
            task="image-classification",
            labels=10,
            image_size=224,
            dtype="fp32",
            batch=32,
            attention="eager",
            framework="torch",
            clip_norm=None,
            optimizer=OptimizerSpec(name="sgd-momentum", decay=1e-4),
        ),
        ("torchvision",),
    ),
    "fsdp2.py": (
        Job(**OF_RANKS, dtype="fp32", amp="bf16", sharding=ShardingSpec(kind="fsdp2", ranks=4)),
        (),
    ),
    "deepspeed_zero.py --stage 2": (
        Job(**OF_RANKS, sharding=ShardingSpec(kind="zero2", ranks=4, bucket_bytes=BUCKET)),
        ("deepspeed",),
    ),
    "deepspeed_zero.py --stage 3": (
        Job(**OF_RANKS, sharding=ShardingSpec(kind="zero3", ranks=4, bucket_bytes=BUCKET)),
        ("deepspeed",),
    ),
}


@pytest.fixture(scope="module")
def tracer() -> Iterator[WorkerSession]:
    """One worker for all traces; it sees no card."""
    with WorkerSession() as session:
        yield session


@pytest.mark.parametrize("name", JOBS)
def test_a_script_allocates_what_is_simulated(
    torch: Any, tmp_path: Path, tracer: WorkerSession, name: str
) -> None:
    job, needs = JOBS[name]
    skip_without("transformers", *needs)
    device = torch.cuda.get_device_properties(0)
    card = CardSpec(
        name=device.name,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
        total_bytes=device.total_memory,
    )
    script, *rest = name.split()
    tokens = job.seq_len if job.generation is None else job.generation.new_tokens
    length = () if job.image_size else ("--length", str(tokens))
    arguments = ("--batch", str(job.batch), *length, *rest)

    ran = run_script(torch, tmp_path / "run", script, arguments, ranks=max(1, job.sharding.ranks))
    simulated = SimulateBackend(tracer, card).run(TrialSpec(values={}, job=job), lambda _: None)

    assert (ran.outcome, simulated.outcome) == ("fit", FIT), (ran.output, simulated.reason)
    assert simulated.allocated_bytes == pytest.approx(ran.allocated_bytes, rel=0.005)
