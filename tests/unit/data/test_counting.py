"""Counting by words gives what the library gives, and gives way where it cannot."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.data.counting import Counter
from oomdoctor.data.tokenizer import load
from oomdoctor.data.words import ascii_pattern, recipe_of
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeTokenizer = Callable[..., Path]

ODD = [
    "",
    " ",
    "  two  blanks \n\n\n  and lines\t",
    "It'S DON'T we'll I'M",
    "<s>the cat</s><|user|> sat <|end|>\n<|user|",
    "12345 1,000.50 (x)  y",
    "caf\u00e9 e\u0301 \u65e5\u672c\u8a9e \U0001f600",
    "\x1cblanks\x1d that \x85 are\u00a0none\u2003",
    "lone \ud800 surrogate",
    "\u1e9b\u0323 \ufb01",
]


@pytest.mark.parametrize("kind", ["gpt2", "llama3", "qwen"])
def test_counting_by_words_gives_what_the_library_gives(
    make_tokenizer: MakeTokenizer, kind: str
) -> None:
    counter = Counter(load(str(make_tokenizer(kind=kind))))

    for special in (True, False):
        assert counter.exact(ODD, special=special) == counter.count(ODD, special=special)
    assert counter.by_words


@pytest.mark.parametrize("kind", ["gpt2", "llama3", "qwen"])
@given(texts=st.lists(st.text() | st.text("ab '\n\t1<s>|", max_size=40), max_size=8))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_it_does_for_any_text(
    tmp_path_factory: pytest.TempPathFactory, kind: str, texts: list[str]
) -> None:
    counter = _counter(kind, tmp_path_factory)
    counter._unchecked = 0  # the comparison with the library must not help

    assert counter.exact(texts, special=False) == counter.count(texts, special=False)


_made: dict[str, Counter] = {}


def _counter(kind: str, factory: pytest.TempPathFactory) -> Counter:
    if kind not in _made:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("making", Path(__file__).parent / "conftest.py")
        assert spec is not None
        assert spec.loader is not None
        making = module_from_spec(spec)
        spec.loader.exec_module(making)
        _made[kind] = Counter(load(str(making.make(factory.mktemp(kind), kind=kind))))
    return _made[kind]


def test_a_tokenizer_of_another_kind_counts_by_itself(make_tokenizer: MakeTokenizer) -> None:
    counter = Counter(load(str(make_tokenizer(kind="metaspace"))))

    assert not counter.by_words
    assert counter.count(["the cat"], special=False) == counter.exact(["the cat"], special=False)


def test_a_difference_in_the_first_texts_ends_counting_by_words(tokenizer: str) -> None:
    counter = Counter(load(tokenizer))
    assert counter._words is not None
    counter._words._known["the"] = 99

    counts = counter.count(["the cat"], special=False)

    assert counter.exact(["the cat"], special=False) == counts
    assert not counter.by_words


def test_words_that_never_come_again_end_counting_by_words(tokenizer: str) -> None:
    counter = Counter(load(tokenizer))
    new = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=4)]

    for start in range(0, 200, 2):
        counter.count([" ".join(new[start : start + 2])], special=False)

    assert not counter.by_words


def test_texts_of_one_batch_are_counted_in_order(tokenizer: str) -> None:
    counter = Counter(load(tokenizer), by_words=False)
    texts = ["the cat"] * 3 + ["a"] + ["the cat sat on a mat"] * 2

    assert counter.count(texts, special=False) == [len(_encoded(tokenizer, text)) for text in texts]


def _encoded(tokenizer: str, text: str) -> list[int]:
    ids: list[int] = load(tokenizer).machine.encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"type": "WordPiece"}},
        {"model": {"type": "BPE", "dropout": 0.1}},
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
    ],
)
def test_only_descriptions_that_are_understood_give_a_recipe(change: dict[str, object]) -> None:
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    plain: dict[str, object] = {"model": {"type": "BPE"}, "pre_tokenizer": level}

    assert recipe_of(plain) is not None
    assert recipe_of(plain | change) is None


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\p{L}+| ?[^\s\p{L}\p{N}]+", r"[A-Za-z]+| ?[^\sA-Za-z0-9]+"),
        (r"[\p{Lu}\p{Lt}]+\p{N}{1,3}", r"[A-Z]+[0-9]{1,3}"),
        (r"\p{Han}+", None),
        (r"\p{Lm}+", None),
        (r"\P{L}", None),
        (r"[a-z&&[^b]]", None),
    ],
)
def test_a_pattern_is_spelled_out_for_ascii(pattern: str, expected: str | None) -> None:
    assert expected == ascii_pattern(pattern)


def test_a_folder_without_a_tokenizer_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no tokenizer\.json") as caught:
        load(str(tmp_path))

    assert "save_pretrained" in str(caught.value)


def test_a_file_that_is_no_tokenizer_is_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 3}', encoding="utf-8")

    with pytest.raises(InputError, match="cannot be read as a tokenizer"):
        load(str(tmp_path))
