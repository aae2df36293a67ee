"""A small tokenizer made on the spot, and data in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    MakeTokenizer = Callable[..., Path]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "then",
    "it's",
    "2",
    "dogs,",
    "17",
    "birds",
    "(or",
    "more)",
    "ran;",
    "don't",
    "wait",
]
TEXTS = [" ".join(WORDS[at:] + WORDS[:at]) for at in range(len(WORDS))] * 3
SPECIAL = ["<s>", "</s>", "<|user|>", "<|end|>"]


def pre_tokenizer(kind: str) -> Any:
    if kind == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind == "metaspace":
        return pre_tokenizers.Metaspace()
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, level])


def make(folder: Path, *, kind: str = "gpt2", config: dict[str, object] | None = None) -> Path:
    """Train a tokenizer of one of the common kinds and write it as a model's folder has it."""
    machine = Tokenizer(models.BPE())
    if kind == "qwen":
        machine.normalizer = normalizers.NFC()
    machine.pre_tokenizer = pre_tokenizer(kind)
    machine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    machine.train_from_iterator(TEXTS, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    machine.save(str(folder / "tokenizer.json"))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.fixture
def make_tokenizer(tmp_path: Path) -> MakeTokenizer:
    """Make a tokenizer in a folder of its own."""

    def made(name: str = "model", **values: Any) -> Path:
        return make(tmp_path / name, **values)

    return made


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level tokenizer without template."""
    return str(make(tmp_path_factory.mktemp("tokenizer")))


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., str]:
    """Write rows as JSON lines; a row that is a string stands there as it is."""

    def write(rows: Sequence[object], name: str = "train.jsonl") -> str:
        path = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    return write
