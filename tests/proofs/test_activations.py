"""Bytes that a forward pass leaves for backward, in units of b*s*h*2 per layer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama
from tests.proofs.weighing import Peak, saved_bytes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

BATCH, LENGTH, WIDTH, HEADS = 2, 64, 256, 4
UNIT = BATCH * LENGTH * WIDTH * 2
LLAMA_2 = {"intermediate_size": 688, "num_key_value_heads": HEADS}
LLAMA_3 = {"intermediate_size": 896, "num_key_value_heads": 1}
ALL_LINEAR = "all-linear"


def block_model(layers: int, dtype: Any, **changes: Any) -> Any:
    """Return a Llama of this many layers, the width and heads above, in training mode."""
    shape = {"hidden_size": WIDTH, "num_attention_heads": HEADS, **LLAMA_2, **changes}
    return llama(num_hidden_layers=layers, **shape).to(dtype).train()


def lora(model: Any, **given: Any) -> Any:
    """Return the model with LoRA of rank 4 on every linear layer."""
    config = peft.LoraConfig(r=4, target_modules=ALL_LINEAR, task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config, **given)


def units_per_layer(make: Any, *, length: int = LENGTH, autocast: bool = False) -> float:
    """Return what one more layer saves; what does not grow with layers falls out."""
    ids = torch.randint(4, 60, (BATCH, length))

    def saved(layers: int) -> int:
        model = make(layers)

        def forward() -> Any:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return model(ids, use_cache=False).logits

        return saved_bytes(forward, besides=[*model.parameters(), *model.buffers(), ids])

    return (saved(3) - saved(1)) / 2 / (UNIT * length // LENGTH)


@proves("checkpointing-off")
@pytest.mark.parametrize(
    ("shape", "expected"), [(LLAMA_2, 10.1 + 2 + 4 * 688 / 256), (LLAMA_3, 10.1 + 0.5 + 4 * 3.5)]
)
def test_a_layer_without_checkpointing(shape: dict[str, int], expected: float) -> None:
    """Full training in bf16 saves 10.1 + 2*kv/a + 4*i/h units per layer (sdpa)."""
    units = units_per_layer(lambda n: block_model(n, torch.bfloat16, **shape))
    assert expected == pytest.approx(units, rel=0.02)


@proves("checkpointing-off")
def test_a_layer_with_lora_on_all_linear_layers() -> None:
    """LoRA on all linear layers without autocast saves 18.2 + 2*kv/a + 5*i/h units."""
    units = units_per_layer(lambda n: lora(block_model(n, torch.bfloat16)))
    assert pytest.approx(units, rel=0.03) == 18.2 + 2 + 5 * 688 / 256


@proves("checkpointing-off")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_layer_saves_its_input_alone(*, reentrant: bool) -> None:
    """With checkpointing a layer saves 1.00 unit, reentrant or not."""

    def make(layers: int) -> Any:
        model = block_model(layers, torch.bfloat16)
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        return model

    assert pytest.approx(units_per_layer(make), rel=0.01) == 1.0


@proves("selective-checkpoint-room")
def test_every_second_layer_may_be_checkpointed() -> None:
    """activation_checkpointing_kwargs every_n_layers=2 checkpoints one layer of two."""

    def saved(kwargs: dict[str, Any] | None) -> int:
        model = block_model(2, torch.bfloat16)
        if kwargs is not None:
            model.activation_checkpointing_enable(**kwargs)
        ids = torch.randint(4, 60, (BATCH, LENGTH))
        return saved_bytes(
            lambda: model(ids, use_cache=False).logits, besides=[*model.parameters(), ids]
        )

    none, half, full = saved(None), saved({"every_n_layers": 2}), saved({})
    assert (full + none) / 2 == pytest.approx(half, rel=0.05)


@proves("no-mixed-precision")
def test_fp32_activations_are_almost_twice_those_of_bf16() -> None:
    """Without mixed precision a layer saves 41.5 units against 22.8 in bf16."""
    units = units_per_layer(lambda n: block_model(n, torch.float32))
    assert pytest.approx(units, rel=0.02) == 41.5


@proves("trl-fp32-default", "full-ft-states-exceed-gpu", "no-mixed-precision")
@pytest.mark.parametrize("frozen", [False, True])
def test_autocast_keeps_a_bf16_copy_of_each_fp32_weight(*, frozen: bool) -> None:
    """bf16 autocast over fp32 weights saves 2 more bytes per linear weight, also frozen ones."""

    def copies(dtype: Any) -> float:
        def make(layers: int) -> Any:
            model = block_model(layers, dtype)
            return lora(model, autocast_adapter_dtype=False) if frozen else model

        return units_per_layer(make, length=1, autocast=True) * UNIT / LENGTH

    weights = 4 * WIDTH * WIDTH + 3 * WIDTH * 688
    assert 2 * weights == pytest.approx(copies(torch.float32) - copies(torch.bfloat16), rel=0.15)


@proves("eager-attention-quadratic")
def test_eager_attention_saves_six_bytes_per_pair_of_tokens() -> None:
    """Eager attention saves 6*b*heads*s^2 bytes per layer more than sdpa."""

    def saved(attention: str) -> float:
        def make(layers: int) -> Any:
            return block_model(layers, torch.bfloat16, attn_implementation=attention)

        return units_per_layer(make, length=128) * UNIT * 128 / LENGTH

    expected = 6 * BATCH * HEADS * 128**2
    assert expected == pytest.approx(saved("eager") - saved("sdpa"), rel=0.1)


@proves("use-cache-with-checkpointing")
def test_the_cache_costs_nothing_in_a_training_forward() -> None:
    """A training forward saves the same bytes with use_cache and without it."""
    model = block_model(2, torch.bfloat16)
    ids = torch.randint(4, 60, (BATCH, LENGTH))
    known = [*model.parameters(), ids]
    kept, plain = (
        saved_bytes(lambda on=on: model(ids, use_cache=on).logits, besides=known)
        for on in (True, False)
    )
    assert kept == plain


@proves("output-attentions-or-hidden")
def test_attention_maps_and_hidden_states_are_kept() -> None:
    """output_attentions keeps a map of s^2 per head and layer, output_hidden_states L+1 states."""
    model = block_model(2, torch.bfloat16, attn_implementation="eager")
    out = model(torch.full((BATCH, 16), 5), output_attentions=True, output_hidden_states=True)
    assert [tuple(m.shape) for m in out.attentions] == [(BATCH, HEADS, 16, 16)] * 2
    assert [tuple(h.shape) for h in out.hidden_states] == [(BATCH, 16, WIDTH)] * 3


@proves("dora-overhead")
def test_dora_builds_the_whole_delta_in_each_forward() -> None:
    """use_dora=True makes temporaries as large as the weight, plain LoRA none."""

    def largest(*, dora: bool) -> int:
        base = torch.nn.Sequential(torch.nn.Linear(512, 512, bias=False))
        config = peft.LoraConfig(r=4, target_modules=["0"], use_dora=dora)
        model = peft.get_peft_model(base, config)
        with Peak() as peak:
            model(torch.ones(2, 512)).sum().backward()
        return peak.largest

    assert largest(dora=True) >= 512 * 512 * 4
    assert largest(dora=False) < 512 * 512 * 4
