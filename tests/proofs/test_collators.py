"""What collators and padding do to labels, positions and sizes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import gpt2, llama, tokenizer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

EOS = 3


def collated(name: Any, ids: list[int]) -> list[int]:
    """Return the labels that the language-model collator makes of one sample."""
    collator = transformers.DataCollatorForLanguageModeling(name, mlm=False)
    return collator([{"input_ids": ids}])["labels"][0].tolist()


@proves("pad-eq-eos-labels")
def test_the_collator_hides_every_eos_if_it_is_the_pad_token() -> None:
    """With pad = eos the LM collator sets the label of each real eos to -100, also unpadded."""
    assert collated(tokenizer(pad="</s>"), [4, 5, EOS]) == [4, 5, -100]
    assert collated(tokenizer(pad="<pad>"), [4, 5, EOS]) == [4, 5, EOS]


@proves("pad-eq-eos-labels")
def test_collators_that_pad_labels_by_position_keep_eos() -> None:
    """DataCollatorForSeq2Seq and TRL's collator keep eos in the labels although pad = eos."""
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    sample = {"input_ids": [4, 5, EOS], "labels": [4, 5, EOS]}
    of_seq2seq = transformers.DataCollatorForSeq2Seq(tokenizer(pad="</s>"))
    assert of_seq2seq([dict(sample)])["labels"][0].tolist() == [4, 5, EOS]
    of_trl = DataCollatorForLanguageModeling(pad_token_id=EOS)
    assert of_trl([{"input_ids": [4, 5, EOS]}])["labels"][0].tolist() == [4, 5, EOS]


@proves("mlm-true-causal")
def test_the_collator_masks_words_unless_told_otherwise() -> None:
    """Unless said otherwise mlm is True, which a tokenizer without a mask token refuses."""
    with pytest.raises(ValueError, match="mask token"):
        transformers.DataCollatorForLanguageModeling(tokenizer(pad="<pad>"))
    transformers.DataCollatorForLanguageModeling(tokenizer(pad="<pad>", mask="z"))


@proves("pad-token-missing")
def test_padding_without_a_pad_token_fails() -> None:
    """tokenizer.pad raises without a pad token, even for one sample that needs no padding."""
    collator = transformers.DataCollatorWithPadding(tokenizer())
    with pytest.raises(ValueError, match="padding token"):
        collator([{"input_ids": [4, 5]}])


@proves("pad-token-missing")
def test_trl_pads_with_eos_where_no_pad_token_is_set(tmp_path: Path) -> None:
    """SFTTrainer falls back to eos as the pad token, so there the rule is silent."""
    made = trl.SFTTrainer(
        model=llama(),
        args=trl.SFTConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", bf16=False),
        train_dataset=datasets.Dataset.from_list([{"text": "a b c"}]),
        processing_class=tokenizer(),
    )
    assert made.data_collator.pad_token_id == EOS


@proves("padding-max-length")
def test_max_length_pads_each_batch_to_the_limit() -> None:
    """padding="max_length" makes 64 tokens of 5, "longest" 5, pad_to_multiple_of=8 makes 8."""
    name = tokenizer(pad="<pad>")
    samples = [{"input_ids": [4] * 5}, {"input_ids": [4] * 3}]

    def width(**given: Any) -> int:
        return transformers.DataCollatorWithPadding(name, **given)(samples)["input_ids"].shape[1]

    assert width(padding="max_length", max_length=64) == 64
    assert width() == 5
    assert width(pad_to_multiple_of=8) == 8


def difference_on_real_tokens(model: Any) -> float:
    """Return how far the logits of the real tokens move when padding goes from right to left."""
    model = model.eval()
    ids, pads = torch.tensor([[5, 9, 7, 11]]), torch.tensor([[1, 1, 1]])
    right, left = torch.cat([ids, pads], 1), torch.cat([pads, ids], 1)
    seen = torch.tensor([[1, 1, 1, 1, 0, 0, 0]])
    with torch.no_grad():
        at_right = model(right, attention_mask=seen).logits[:, :4]
        at_left = model(left, attention_mask=seen.flip(1)).logits[:, 3:]
    return float((at_right - at_left).abs().max())


@proves("padding-side-left-training")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_left_padding_does_not_matter_with_rotary_positions(attention: str) -> None:
    """With rotary positions the logits of real tokens are the same left and right padded."""
    assert difference_on_real_tokens(llama(attn_implementation=attention)) < 1e-5


@proves("padding-side-left-training")
def test_left_padding_moves_absolute_positions() -> None:
    """With GPT-2's absolute positions left padding changes the logits of real tokens."""
    model = gpt2()
    torch.nn.init.normal_(model.transformer.wpe.weight)
    assert difference_on_real_tokens(model) > 0.01


@proves("padding-side-right-generation")
def test_generation_goes_on_after_the_pads(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right-padded prompts generate other tokens than unpadded ones; generate() only warns."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    model = llama(pad_token_id=1, initializer_range=0.5).eval()
    two = torch.tensor([[5, 9, 7], [8, 6, 4]])
    pads = torch.ones_like(two)

    def answer(ids: Any) -> list[list[int]]:
        given = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": 63}
        out = model.generate(ids, attention_mask=(ids != 1).long(), **given)
        return out[:, ids.shape[1] :].tolist()

    alone = answer(two)
    assert answer(torch.cat([pads, two], 1)) == alone
    assert "right-padding was detected" not in caplog.text
    assert answer(torch.cat([two, pads], 1)) != alone
    assert "right-padding was detected" in caplog.text


@proves("seq-len-exceeds-model")
def test_absolute_positions_end_and_rotary_ones_go_on() -> None:
    """Beyond max_position_embeddings GPT-2 raises IndexError, a rotary Llama runs on silently."""
    ids = torch.full((1, 65), 5)
    with pytest.raises(IndexError):
        gpt2()(ids)
    assert torch.isfinite(llama()(ids).logits).all()


@proves("overlong-samples")
@pytest.mark.parametrize(("given", "longest"), [({}, 1024), ({"max_length": None}, 3000)])
def test_only_a_max_length_cuts_a_long_sample(
    given: dict[str, Any], longest: int, tmp_path: Path
) -> None:
    """SFTConfig cuts at 1024 tokens by default; with max_length=None a long sample stays whole."""
    made = trl.SFTTrainer(
        model=llama(max_position_embeddings=4096),
        args=trl.SFTConfig(
            output_dir=str(tmp_path), use_cpu=True, report_to="none", bf16=False, **given
        ),
        train_dataset=datasets.Dataset.from_list([{"text": "a " * 3000}, {"text": "a b"}]),
        processing_class=tokenizer(pad="<pad>"),
    )
    batch = made.data_collator([made.train_dataset[0], made.train_dataset[1]])
    assert longest <= batch["input_ids"].shape[1] <= longest + 1
