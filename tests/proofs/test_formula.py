"""The tape of the formulas against the storages of real models, family by family."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.formula_steps import Steps
from oomdoctor.model.job import Job, ModelSpec, OptimizerSpec
from tests.proofs.weighing import Peak

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ROWS, TOKENS, LAYERS = 2, 64, 4
PLAIN = {
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
GPT = {"n_embd": 128, "n_layer": LAYERS, "n_head": 4, "vocab_size": 1000, "n_positions": 256}
NO_DROPOUT = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
SMALL_HEADS = {**PLAIN, "head_dim": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": PLAIN,
    "qwen2": PLAIN,
    "qwen3": SMALL_HEADS,
    "mistral": {**PLAIN, "sliding_window": None},
    "gemma": SMALL_HEADS,
    "phi3": {**PLAIN, "pad_token_id": 0},
    "phi": PLAIN,
    "olmo2": PLAIN,
    "glm4": {**SMALL_HEADS, "pad_token_id": 0},
    "gpt_neox": {**PLAIN, "intermediate_size": 512},
    "gptj": {**GPT, "rotary_dim": 16, **NO_DROPOUT},
    "gpt2": {**GPT, **NO_DROPOUT},
}


def measured(kind: str, config: dict[str, Any]) -> tuple[int, int]:
    """Return the highest bytes of forward and of backward beside weights, on the CPU."""
    read = transformers.AutoConfig.for_model(kind, **config)
    read.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(read).to(torch.bfloat16).train()
    ids = torch.randint(4, 900, (ROWS, TOKENS))
    with Peak() as seen:
        loss = model(input_ids=ids, labels=ids).loss
        forward, seen.peak = seen.peak, seen.now
        loss.backward()
    return forward, seen.peak


def counted(kind: str, config: dict[str, Any]) -> tuple[int, int]:
    """Return the same by the tape."""
    spec = ModelSpec(name=kind, config={**config, "model_type": kind}, source="proof")
    job = Job(model=spec, batch=ROWS, seq_len=TOKENS, optimizer=OptimizerSpec(name="sgd"))
    steps = Steps(job, shape_of(spec.config))
    steps.load()
    tape, weights = steps.tape, steps.tape.live
    tape.begin("forward")
    loss, logits = steps.network.loss(ROWS, TOKENS)
    tape.begin("backward")
    assert loss.node is not None
    loss.node.grad = tape.block(4)
    del logits
    tape.backward(tape.nodes)
    return tape.phases["forward"] - weights, tape.phases["backward"] - weights


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_tape_counts_what_a_real_model_keeps(kind: str) -> None:
    """Within 2 % for forward and backward of every family; what differs are the CPU's kernels."""
    real, made = measured(kind, FAMILIES[kind]), counted(kind, FAMILIES[kind])

    assert made[0] == pytest.approx(real[0], rel=0.02)
    assert made[1] == pytest.approx(real[1], rel=0.02)
