"""The closed formulas of a job's memory against real models: states, adapters, activations."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derive import derive
from oomdoctor.memory import parts, physics
from oomdoctor.model.core import Fact
from tests.proofs.proving import proves
from tests.proofs.tiny import llama
from tests.proofs.weighing import saved_bytes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

SHAPE = {"hidden_size": 64, "intermediate_size": 172, "num_hidden_layers": 3, "vocab_size": 96}
ROWS, TOKENS = 2, 48


def formulas(model: Any, **facts: bool | int | str) -> FactBook:
    """Return what the formulas say of a model of this shape."""
    config = model.config
    shape: dict[str, bool | int | str] = {
        "model.params": sum(p.numel() for p in model.parameters()),
        "model.layers": config.num_hidden_layers,
        "model.hidden": config.hidden_size,
        "model.heads": config.num_attention_heads,
        "model.kv_heads": config.num_key_value_heads,
        "model.head_dim": config.hidden_size // config.num_attention_heads,
        "model.intermediate": config.intermediate_size,
        "model.vocab": config.vocab_size,
        "model.tied": False,
        "quant.kind": "none",
        "job.task": "sft",
        "train.micro_batch": ROWS,
        "train.seq_len": TOKENS,
        "train.amp": "none",
        "loss.impl": "full",
    }
    given = [Fact(key=key, value=value) for key, value in {**shape, **facts}.items()]
    book = FactBook().add(given, closes=("train-config",))
    return parts.derive(physics.derive(derive(book)))


def bytes_of(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@proves("full-ft-states-exceed-gpu", "weights-exceed-gpu", "optimizer-state-8bit")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_states_of_a_full_training_are_those_of_the_formula(dtype: str) -> None:
    """Weights, gradients and AdamW's moments weigh 16 bytes per fp32 parameter, 8 per bf16 one."""
    model = llama(**SHAPE).to(getattr(torch, dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(4, 96, (ROWS, TOKENS))
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    moments = [t for state in optimizer.state.values() for t in state.values() if t.dim()]

    said = formulas(
        model,
        **{
            "train.base_dtype": "fp32" if dtype == "float32" else "bf16",
            "lora.on": False,
            "optimizer.name": "adamw_torch",
            "dist.kind": "none",
        },
    )

    held = list(model.parameters())
    assert said.value("part.weights") == bytes_of(held)
    assert said.value("part.gradients") == bytes_of(p.grad for p in held)
    assert said.value("part.optimizer") == bytes_of(moments)


@proves("lora-rank-too-large", "optimizer-8bit-for-lora-pointless")
@pytest.mark.parametrize(
    ("kind", "targets"),
    [
        ("Llama", ["q_proj", "v_proj"]),
        ("Llama", "all-linear"),
        ("Qwen2", "all-linear"),
        ("Phi3", "all-linear"),
    ],
)
def test_an_adapter_has_as_many_parameters_as_the_formula_says(kind: str, targets: Any) -> None:
    """An adapter has rank x (inputs + outputs) parameters per adapted linear."""
    config = getattr(transformers, f"{kind}Config")(
        **SHAPE, num_attention_heads=4, num_key_value_heads=2, pad_token_id=0
    )
    base = getattr(transformers, f"{kind}ForCausalLM")(config)
    shown = ",".join(targets) if isinstance(targets, list) else targets
    names: dict[str, bool | int | str] = {"lora.on": True, "lora.rank": 4, "lora.targets": shown}
    if kind == "Phi3":
        names["model.name"] = "microsoft/Phi-3-mini-4k-instruct"

    said = formulas(base, **names)
    made = peft.get_peft_model(
        base, peft.LoraConfig(r=4, target_modules=targets, task_type="CAUSAL_LM")
    )

    trained = sum(p.numel() for p in made.parameters() if p.requires_grad)
    assert said.value("train.trainable_params") == trained


@proves("checkpointing-off")
@pytest.mark.parametrize("on", [False, True])
def test_kept_activations_are_those_of_the_formula(on: bool) -> None:
    """Layers keep what the measured units say, with and without checkpointing, within 20 %."""
    few, many = (_kept(layers, on=on) for layers in (2, 6))
    model = llama(**{**SHAPE, "num_hidden_layers": 1})
    facts: dict[str, bool | int | str] = {"train.base_dtype": "bf16", "lora.on": False}
    said = formulas(model, **facts, **{"train.grad_checkpointing": on})
    one_layer = said.value("activations.plain")
    unit = ROWS * TOKENS * SHAPE["hidden_size"] * 2

    expected = unit if on else one_layer
    assert isinstance(expected, (int, float))
    assert (many - few) / 4 == pytest.approx(expected, rel=0.2)


def _kept(layers: int, *, on: bool) -> int:
    """Return the bytes that a forward pass in bf16 leaves for backward, besides the weights."""
    model = llama(**{**SHAPE, "num_hidden_layers": layers}).to(torch.bfloat16).train()
    if on:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    ids = torch.randint(4, 96, (ROWS, TOKENS))
    return saved_bytes(lambda: model(ids, use_cache=False).logits, besides=model.parameters())
