"""Tiny models with random weights, a tokenizer and data, all made on the spot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ("<unk>", "<pad>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz")


def llama(**changes: Any) -> Any:
    """Return a Llama of two layers whose positions are rotary."""
    shape: dict[str, Any] = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "pad_token_id": None,
        "tie_word_embeddings": False,
        "attn_implementation": "sdpa",
    }
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**(shape | changes)))


def gpt2(**changes: Any) -> Any:
    """Return a GPT-2 of two layers whose positions are absolute."""
    shape = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    ends = {"bos_token_id": 2, "eos_token_id": 3, "attn_implementation": "sdpa"}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**(shape | ends | changes)))


def tokenizer(*, pad: str | None = None, mask: str | None = None) -> Any:
    """Return a fast tokenizer of one token per word, without pad and mask token unless given."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, WORDS[0]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": WORDS[0], "bos_token": "<s>", "eos_token": "</s>"}
    special |= {"pad_token": pad} if pad else {}
    special |= {"mask_token": mask} if mask else {}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special)


def rows(number: int = 8, length: int = 8) -> list[dict[str, Any]]:
    """Return samples of random tokens whose labels are the tokens."""
    ids = torch.randint(4, 30, (number, length))
    return [{"input_ids": row, "labels": row.clone()} for row in ids]


def arguments(folder: Path, **given: Any) -> Any:
    """Return TrainingArguments for the CPU that report to nobody."""
    usual = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no"}
    return transformers.TrainingArguments(output_dir=str(folder), **(usual | given))


def trainer(folder: Path, model: Any = None, *, given: Any = None, **settings: Any) -> Any:
    """Return a Trainer of a tiny Llama; `given` goes to the Trainer, the rest to its arguments."""
    parts: dict[str, Any] = {"train_dataset": rows()} | (given or {})
    return transformers.Trainer(
        model=llama() if model is None else model,
        args=arguments(folder, **({"max_steps": 1} | settings)),
        **parts,
    )
