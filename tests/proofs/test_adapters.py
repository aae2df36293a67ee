"""What PEFT trains, keeps, copies and merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, trainer
from tests.proofs.weighing import Peak

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

EMBEDDING = 64 * 32


def lora(model: Any, **given: Any) -> Any:
    """Return the model with LoRA, of PEFT's defaults unless given."""
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **given))


def trained(model: Any) -> set[str]:
    """Return the last names of the modules that are trained."""
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    return {name.split(".lora_")[0].rsplit(".", 1)[-1] for name in names}


def trainable(model: Any) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@proves("lora-targets-partial-match")
def test_a_target_that_matches_nothing_is_passed_over() -> None:
    """PEFT takes target_modules of which one matches, and raises only if none does."""
    assert trained(lora(llama(), target_modules=["q_proj", "query_key_value"])) == {"q_proj"}
    with pytest.raises(ValueError, match="not found in the base model"):
        lora(llama(), target_modules=["query_key_value"])


@proves("lora-targets-partial-match")
def test_the_fused_projections_of_phi_3_are_missed() -> None:
    """With the usual names q, v and o_proj LoRA trains o_proj alone of Phi-3."""
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 64}
    config = transformers.Phi3Config(**shape, **heads, pad_token_id=0)
    model = transformers.Phi3ForCausalLM(config)
    assert trained(lora(model, target_modules=["q_proj", "v_proj", "o_proj"])) == {"o_proj"}


@proves("lora-rank-too-large")
@pytest.mark.parametrize("rank", [4, 64])
def test_adapters_grow_with_the_rank(rank: int) -> None:
    """An adapter has r * (inputs + outputs) parameters per layer, in fp32 also on a bf16 base."""
    model = lora(llama().to(torch.bfloat16), r=rank, target_modules=["gate_proj"])
    assert trainable(model) == 2 * rank * (32 + 64)
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}


@proves("lora-alpha-scale")
def test_the_scale_is_alpha_over_r() -> None:
    """Scaling is lora_alpha / r, with use_rslora over the root of r; PEFT's defaults give 1."""

    def scale(**given: Any) -> float:
        return lora(llama(), **given).model.model.layers[0].self_attn.q_proj.scaling["default"]

    assert scale() == 1.0
    assert scale(r=8, lora_alpha=128) == 16.0
    assert scale(r=16, lora_alpha=32, use_rslora=True) == 8.0


@proves("modules-to-save-wide")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_modules_to_save_are_copied_beside_the_frozen_original(dtype: Any) -> None:
    """modules_to_save keeps the original and adds a trainable copy of the same dtype."""
    model = lora(llama().to(dtype), modules_to_save=["embed_tokens"])
    wrapper = model.model.model.embed_tokens
    original, copy = wrapper.original_module.weight, wrapper.modules_to_save["default"].weight
    assert (original.requires_grad, copy.requires_grad) == (False, True)
    assert copy.dtype == dtype
    assert original.data_ptr() != copy.data_ptr()


@proves("modules-to-save-wide")
def test_tied_embeddings_are_copied_twice_unless_told_to_stay_tied() -> None:
    """Both tied modules in modules_to_save give two copies, trainable_token_indices a few rows."""
    both = ["embed_tokens", "lm_head"]
    adapters = trainable(lora(llama()))
    assert trainable(lora(llama(), modules_to_save=both)) == adapters + 2 * EMBEDDING
    tied = llama(tie_word_embeddings=True)
    assert trainable(lora(tied, modules_to_save=both)) == adapters + 2 * EMBEDDING
    tied = llama(tie_word_embeddings=True)
    kept = lora(tied, modules_to_save=["embed_tokens"], ensure_weight_tying=True)
    assert trainable(kept) == adapters + EMBEDDING
    rows_alone = lora(llama(), trainable_token_indices={"embed_tokens": [60, 61]})
    assert trainable(rows_alone) == adapters + 2 * 32


@proves("modules-to-save-needed")
def test_rows_of_new_tokens_stay_as_they_are_under_lora() -> None:
    """After resizing, LoRA leaves the new rows frozen; trainable_token_indices trains them."""

    def moved(**given: Any) -> bool:
        model = llama()
        model.resize_token_embeddings(66)
        adapted = lora(model, **given)
        optimizer = torch.optim.SGD((p for p in adapted.parameters() if p.requires_grad), lr=10.0)
        ids = torch.tensor([[64, 65, 5]])
        table = adapted.get_input_embeddings()
        before = table(ids).detach().clone()
        adapted(ids, labels=ids).loss.backward()
        optimizer.step()
        return not torch.equal(before, table(ids).detach())

    assert moved() is False
    assert moved(trainable_token_indices={"embed_tokens": [64, 65]}) is True


@proves("base-unfrozen-with-lora")
def test_the_base_is_frozen_until_code_unfreezes_it() -> None:
    """get_peft_model freezes the base; setting requires_grad afterwards trains all of it."""
    model = lora(llama())
    everything = sum(p.numel() for p in model.parameters())
    assert trainable(model) * 10 < everything
    for parameter in model.parameters():
        parameter.requires_grad = True
    assert trainable(model) == everything


@proves("peft-version-mismatch")
def test_the_adapter_api_of_transformers_wants_a_newer_peft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """model.add_adapter raises ValueError below MIN_PEFT_VERSION, get_peft_model does not."""
    module = transformers.integrations.peft
    monkeypatch.setattr(module, "MIN_PEFT_VERSION", "999.0")
    with pytest.raises(ValueError, match=r">= 999\.0"):
        llama().add_adapter(peft.LoraConfig(target_modules=["q_proj"]))
    lora(llama())


@proves("peft-version-mismatch")
def test_the_least_peft_of_this_transformers() -> None:
    """For its adapter API transformers 5.24 asks for peft 0.22.0, so peft 0.21 fails."""
    assert transformers.integrations.peft.MIN_PEFT_VERSION == "0.22.0"


@proves("lora-input-grads")
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("first", ["lora", "checkpointing"])
def test_checkpointed_lora_gets_gradients_in_version_5(
    first: str, *, reentrant: bool, tmp_path: Path
) -> None:
    """In version 5 LoRA gets gradients with checkpointing, whichever of the two came first."""
    model = llama()
    if first == "checkpointing":
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    adapted = lora(model)
    made = trainer(
        tmp_path,
        adapted,
        activation_checkpointing=True,
        activation_checkpointing_kwargs={"use_reentrant": reentrant},
    )
    made.train()
    heads = [w for name, w in adapted.named_parameters() if "lora_B" in name]
    assert all(weight.abs().sum() > 0 for weight in heads)


@proves("lora-input-grads", "reentrant-default-v4")
def test_the_default_of_version_5_is_not_reentrant() -> None:
    """gradient_checkpointing_enable() without kwargs is use_reentrant=False in version 5."""
    model = llama().train()
    model.gradient_checkpointing_enable()
    assert model.model.layers[0]._gradient_checkpointing_func.keywords == {"use_reentrant": False}


@proves("fp16-amp-with-fp16-weights")
@pytest.mark.parametrize(
    ("given", "fails"), [({}, False), ({"modules_to_save": ["lm_head"]}, True)]
)
def test_unscaling_fp16_gradients_is_refused(given: dict[str, Any], *, fails: bool) -> None:
    """On an fp16 base LoRA alone is fp32, but modules_to_save is fp16, which GradScaler refuses."""
    model = lora(llama().half(), **given)
    weights = [p for p in model.parameters() if p.requires_grad]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD(weights, lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    if fails:
        with pytest.raises(ValueError, match="unscale FP16 gradients"):
            scaler.unscale_(optimizer)
    else:
        scaler.unscale_(optimizer)


@proves("fp16-amp-with-bf16-weights")
def test_modules_to_save_are_bf16_on_a_bf16_base() -> None:
    """On a bf16 base LoRA alone is fp32, but the copy of modules_to_save is bf16."""
    plain = lora(llama().to(torch.bfloat16))
    wide = lora(llama().to(torch.bfloat16), modules_to_save=["lm_head"])
    kinds = [{p.dtype for p in m.parameters() if p.requires_grad} for m in (plain, wide)]
    assert kinds == [{torch.float32}, {torch.float32, torch.bfloat16}]


@proves("merge-on-gpu-oom")
def test_merging_makes_the_delta_of_one_layer_at_a_time() -> None:
    """merge_and_unload needs the weights and fp32 temporaries of one layer, not of all."""
    base = torch.nn.Sequential(*(torch.nn.Linear(256, 256, bias=False) for _ in range(8)))
    names = [str(number) for number in range(8)]
    model = peft.get_peft_model(base.to(torch.bfloat16), peft.LoraConfig(target_modules=names))
    with Peak() as peak:
        model.merge_and_unload()
    one_layer = 256 * 256 * 4
    assert one_layer <= peak.peak < 3 * one_layer


@proves("save-optimizer-disk")
def test_a_checkpoint_holds_the_states_of_the_optimizer(tmp_path: Path) -> None:
    """A checkpoint has optimizer.pt of 8 bytes per parameter, with save_only_model it has none."""
    parameters = sum(p.numel() for p in llama().parameters())
    sizes = []
    for only in (False, True):
        folder = tmp_path / str(only)
        made = trainer(folder, save_strategy="steps", save_steps=1, save_only_model=only)
        made.train()
        file = folder / "checkpoint-1" / "optimizer.pt"
        sizes.append(file.stat().st_size if file.exists() else 0)
    assert sizes[0] == pytest.approx(8 * parameters, rel=0.25)
    assert sizes[1] == 0
