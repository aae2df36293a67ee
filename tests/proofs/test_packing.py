"""Packing: who sees whom, and what the mask costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, tokenizer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

FIRST, SECOND = [5, 9, 7], [11, 6, 8, 10]
PACKED = torch.tensor([FIRST + SECOND])
POSITIONS = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])


def leak(model: Any, **given: Any) -> float:
    """Return how far the packed second sample's logits are from those that it has alone."""
    with torch.no_grad():
        alone = model(torch.tensor([SECOND]), use_cache=False).logits
        packed = model(PACKED, position_ids=POSITIONS, **given).logits[:, len(FIRST) :]
    return float((alone - packed).abs().max())


def model(attention: str) -> Any:
    """Return a Llama whose weights are large enough for a leak to show."""
    made = llama(attn_implementation=attention, initializer_range=0.5)
    return made.eval()


@proves("use-cache-breaks-packing", "packing-old-without-flash")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_restarting_positions_isolate_packed_samples(attention: str) -> None:
    """Without mask and cache, restarting position_ids isolate samples under sdpa and eager."""
    assert leak(model(attention), use_cache=False) < 1e-4


@proves("use-cache-breaks-packing")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(
    "given",
    [{"use_cache": True}, {"use_cache": False, "attention_mask": torch.ones_like(PACKED)}],
    ids=["cache", "mask of ones"],
)
def test_a_cache_or_a_mask_lets_packed_samples_see_each_other(
    attention: str, given: dict[str, Any]
) -> None:
    """A cache, or an attention_mask of ones, makes the second packed sample see the first."""
    assert leak(model(attention), **given) > 0.01


@proves("use-cache-breaks-packing")
def test_checkpointing_in_training_drops_the_cache() -> None:
    """With checkpointing in training use_cache=True is switched off, and samples stay apart."""
    made = model("sdpa").train()
    made.gradient_checkpointing_enable()
    alone = made(torch.tensor([SECOND]), use_cache=False).logits
    packed = made(PACKED, position_ids=POSITIONS, use_cache=True).logits[:, len(FIRST) :]
    assert float((alone - packed).abs().max()) < 1e-4


def mask_of(attention: str, length: int, **given: Any) -> Any:
    """Return the mask that the library makes for one row of this length."""
    from transformers.masking_utils import create_causal_mask

    made = llama(attn_implementation=attention, max_position_embeddings=length)
    return create_causal_mask(
        config=made.config,
        inputs_embeds=torch.zeros(1, length, 32),
        attention_mask=None,
        past_key_values=None,
        **given,
    )


@proves("packing-sdpa-dense-mask")
def test_packing_under_sdpa_needs_a_mask_of_s_squared() -> None:
    """Under sdpa plain causal rows need no mask, packed ones one byte per pair of tokens."""
    length = 256
    plain = torch.arange(length).unsqueeze(0)
    packed = torch.cat([torch.arange(100), torch.arange(length - 100)]).unsqueeze(0)
    assert mask_of("sdpa", length, position_ids=plain) is None
    mask = mask_of("sdpa", length, position_ids=packed)
    assert mask.shape == (1, 1, length, length)
    assert mask.untyped_storage().nbytes() == length * length


def packed(strategy: str) -> list[list[int]]:
    """Return the rows that TRL packs of samples of 6, 6 and 4 tokens into rows of 8."""
    samples = [[1] * 6, [2] * 6, [3] * 4]
    data = datasets.Dataset.from_dict({"input_ids": samples})
    return [list(row) for row in trl.pack_dataset(data, 8, strategy)["input_ids"]]


@proves("packing-wrapped")
def test_wrapped_packing_cuts_samples_in_two() -> None:
    """packing_strategy="wrapped" cuts samples at row ends and keeps no boundary; bfd cuts none."""
    assert packed("wrapped") == [[1] * 6 + [2] * 2, [2] * 4 + [3] * 4]
    assert sorted(packed("bfd")) == [[1] * 6, [2] * 6, [3] * 4]
    data = datasets.Dataset.from_dict({"input_ids": [[1] * 6, [2] * 2]})
    assert "seq_lengths" not in trl.pack_dataset(data, 8, "wrapped").column_names
    assert "seq_lengths" in trl.pack_dataset(data, 8, "bfd").column_names


def sft(folder: Path, **given: Any) -> Any:
    """Return an SFTTrainer of a tiny Llama."""
    settings = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "bf16": False}
    return trl.SFTTrainer(
        model=llama(),
        args=trl.SFTConfig(**settings, **given),
        train_dataset=datasets.Dataset.from_list([{"text": "a b c"}, {"text": "d e"}]),
        processing_class=tokenizer(pad="<pad>"),
    )


@proves("padding-free-needs-truncation")
def test_padding_free_needs_packing_or_no_limit(tmp_path: Path) -> None:
    """padding_free=True with the default max_length raises; with None or packing it does not."""
    with pytest.raises(ValueError, match="max_length"):
        sft(tmp_path, padding_free=True)
    sft(tmp_path, padding_free=True, max_length=None)
    sft(tmp_path, padding_free=True, packing=True)


@proves("use-cache-breaks-packing", "packing-old-without-flash")
def test_trl_packs_with_positions_and_without_a_mask(tmp_path: Path) -> None:
    """SFTTrainer's packed batches carry restarting position_ids and no attention_mask."""
    made = sft(tmp_path, packing=True, max_length=16)
    batch = next(iter(made.get_train_dataloader()))
    assert "attention_mask" not in batch
    assert (batch["position_ids"] == 0).sum() == 2
