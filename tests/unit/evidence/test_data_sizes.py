"""Sizes of the data that a log prints: rows and tokens of batches, dictionaries."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import data_sizes
from tests.unit.evidence.documents import document_of


def values(text: str) -> dict[str, object]:
    return {fact.key: fact.value for fact in data_sizes.read(document_of(text)).facts}


@pytest.mark.parametrize(
    "text",
    [
        "input_ids.shape torch.Size([4, 8192])",
        "input_ids.shape: torch.Size([4, 8192])",
        "batch['input_ids'].shape = torch.Size([4, 8192])",
        "input_ids shape: (4, 8192)",
        "{'attention_mask': torch.Size([4, 8192])}",
        "tokens.size() torch.Size([4, 8192])",
    ],
)
def test_the_shape_of_a_token_tensor_gives_rows_times_tokens(text: str) -> None:
    assert values(text) == {"data.tokens_seen": 32768, "train.longest_row": 8192}


def test_a_packed_row_has_one_dimension() -> None:
    assert values("position_ids: torch.Size([8192])")["data.tokens_seen"] == 8192


@pytest.mark.parametrize(
    "text",
    [
        "latents.shape torch.Size([1, 13, 16, 60, 90])",
        "labels: torch.Size([32])",
        "input_ids: tensor([4, 8192])",
        "max tokens (1, 2) of 3",
        "maximum sequence length: 2048.5 ms",
        "longest run: 12 h",
    ],
)
def test_other_tensors_and_words_say_nothing_of_tokens(text: str) -> None:
    assert values(text) == {}


def test_the_longest_row_of_all_counts_and_the_last_batch() -> None:
    text = (
        "Token indices sequence length is longer than the specified maximum sequence length for "
        "this model (9471 > 2048). Running this\n"
        "input_ids.shape torch.Size([2, 512])\ninput_ids.shape torch.Size([2, 256])"
    )
    assert values(text) == {"train.longest_row": 9471, "data.tokens_seen": 512}


def test_sizes_after_the_failure_do_not_count() -> None:
    text = "input_ids: torch.Size([2, 512])\nCUDA out of memory.\ninput_ids: torch.Size([1, 64])"
    assert values(text)["data.tokens_seen"] == 1024


@pytest.mark.parametrize(
    ("text", "vocab"),
    [
        ("| [de] dictionary: 5000 types\n| [en] dictionary: 922896 types", 922896),
        (" > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)", 50304),
        ('  "vocab_size": 151936', 151936),
        ("llm_load_print_meta: n_vocab = 128256", 128256),
    ],
)
def test_a_printed_dictionary_is_the_vocabulary(text: str, vocab: int) -> None:
    assert values(text) == {"model.vocab": vocab}
