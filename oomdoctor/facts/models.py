"""Look up the shape of a model by hub name, base name or local path.

    meta-llama/Llama-3.1-8B-Instruct       an exact name or alias
    /data/models/Qwen2.5-7B-Instruct-AWQ   a path; quantised and tuned variants keep the shape
    my-company/support-bot-7b              no known model: only a size, and that is a guess

It never guesses between families: `Qwen1.5-7B` is not `Qwen2.5-7B`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts.tables import table
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIZE_SLACK = 0.08
_VARIANTS = (
    "instruct",
    "chat",
    "it",
    "hf",
    "base",
    "pt",
    "dpo",
    "sft",
    "bnb",
    "4bit",
    "8bit",
    "int4",
    "int8",
    "4-bit",
    "8-bit",
    "gptq",
    "awq",
    "fp8",
    "nf4",
    "nvfp4",
    "mxfp4",
    "fp16",
    "bf16",
    "w4a16",
    "w8a8",
    "dynamic",
    "quantized",
    "unsloth",
    "gguf",
)
# How positions enter (transformers 5.24.0, modeling files); families that mix both are left out.
_ABSOLUTE = ("GPT2", "OPT", "Bert", "Roberta", "DistilBert", "Whisper", "ViT", "CLIP")
_ROPE = ("Llama", "Mistral", "Mixtral", "Qwen", "QWen", "Gemma", "Phi", "Deepseek", "GPTJ")
_ROPE_TOO = ("GPTNeoX", "ChatGLM", "InternLM2", "Llava")
_ALIBI = ("Bloom",)
_SCALE = {"b": 10**9, "m": 10**6}
_LONGEST_SIZE = 12


class Model(NamedTuple):
    """A model of the table; a dimension it does not have is absent from `shape`."""

    name: str
    architecture: str
    kind: str
    tied: bool | None
    shape: Mapping[str, int]
    aliases: tuple[str, ...] = ()


class Found(NamedTuple):
    """A model found by its name, and whether a variant's suffix had to be dropped for it."""

    model: Model
    variant: bool


@cache
def models() -> tuple[Model, ...]:
    """Return the table; read once, when first asked for."""
    return tuple(_model(row) for row in table("models"))


def _model(row: dict[str, object]) -> Model:
    aliases = row.get("aliases")
    return Model(
        name=str(row["name"]),
        architecture=str(row["architecture"]),
        kind=str(row["kind"]),
        tied=row["tied"] is True if "tied" in row else None,
        shape={
            key: value
            for key, value in row.items()
            if isinstance(value, int) and not isinstance(value, bool)
        },
        aliases=tuple(map(str, aliases)) if isinstance(aliases, list) else (),
    )


def positions_of(architecture: str) -> str | None:
    """Return rope, absolute or alibi for an architecture's class name, None where not known."""
    for starts, kind in ((_ABSOLUTE, "absolute"), (_ROPE + _ROPE_TOO, "rope"), (_ALIBI, "alibi")):
        if architecture.startswith(starts):
            return kind
    return None


@cache
def _by_name() -> Mapping[str, Model]:
    """Return the models by the lower-case base names of all their names."""
    named: dict[str, Model] = {}
    for model in models():
        for name in (model.name, *model.aliases):
            named.setdefault(_plain(base_name(name)), model)
    return named


@cache
def _by_stem() -> Mapping[str, Model | None]:
    """Return the models by their names without variant suffixes; None where two of them meet."""
    stems: dict[str, Model | None] = {}
    for name, model in _by_name().items():
        untuned = model.kind == "causal-lm"  # of other models `base` is a size
        size_word = name.endswith("-base") and not untuned
        stem = name if size_word else _stem(name.replace("-base-", "-") if untuned else name)
        other = stems.get(stem, model)
        same = other is not None and (other.shape, other.tied) == (model.shape, model.tied)
        stems[stem] = model if same else None
    return stems


def lookup(name: str) -> Found | None:
    """Return the model that `name` means, None where that is not certain."""
    plain = _plain(base_name(name))
    exact = _by_name().get(plain)
    if exact is not None:
        return Found(exact, variant=False)
    near = _by_stem().get(_stem(plain))
    return None if near is None else Found(near, variant=True)


@cache
def _by_words() -> tuple[tuple[tuple[str, ...], Model], ...]:
    """Return the words of all names that tell a size, longest first."""
    found = {
        tuple(_words(_stem(plain))): model
        for plain, model in _by_name().items()
        if any(_sized(word) for word in _words(_stem(plain)))
    }
    return tuple(sorted(found.items(), key=lambda one: -len(one[0])))


def nearest(name: str) -> Found | None:
    """Return the model whose name, with its size, is part of `name` or of a folder of its path.

    That is a guess: `OpenHermes-2.5-Mistral-7B` has the shape of Mistral-7B, but a merge of layers
    may be called so as well.
    """
    for part in reversed(name.replace("\\", "/").split("/")):
        words = _words(_plain(part))
        for known, model in _by_words():
            if _has(words, known):
                return Found(model, variant=True)
    return None


def _has(words: Sequence[str], wanted: tuple[str, ...]) -> bool:
    count = len(wanted)
    return any(
        tuple(words[start : start + count]) == wanted for start in range(len(words) - count + 1)
    )


def _words(plain: str) -> list[str]:
    """Split a name at hyphens, and a family from its number: llama3-8b as llama-3-8b."""
    return [word for word in _version().sub(r"\1-\2", plain).split("-") if word]


@cache
def _version() -> re.Pattern[str]:
    return re.compile(r"\b([a-z]{3,})-?(\d)")


def _sized(word: str) -> bool:
    """Say whether a word tells a size: 7b, 350m, 8x7b, 16e."""
    return word[:1].isdecimal() and word[-1:] in ("b", "m", "e")


def base_name(name: str) -> str:
    """Return the last part of a hub name or path; of a hub cache path the model it holds."""
    parts = [part for part in name.strip().strip("\"'").replace("\\", "/").split("/") if part]
    for part in parts:
        if part.startswith("models--"):
            return part.split("--")[-1]
    return parts[-1] if parts else ""


def _plain(name: str) -> str:
    """Return a base name in lower case, with one kind of hyphen, without Meta's own prefix."""
    low = "-".join(name.lower().replace("_", "-").split())
    return low.removeprefix("meta-").removesuffix("-")


def _stem(plain: str) -> str:
    """Drop the words of tuned and quantised variants, however many there are."""
    plain = plain.replace("-instruct-", "-").replace("-chat-", "-")
    while True:
        for variant in _VARIANTS:
            if plain.endswith(f"-{variant}"):
                plain = plain[: -len(variant) - 1]
                break
        else:
            return plain


def stated_size(name: str) -> int | None:
    """Return the parameters that `7b` or `350M` in a name stands for; None for `8x7b` or none.

    Two sizes in one name (a draft model's, say) and a number of experts say nothing either.
    """
    parts = _parts(base_name(name))
    if any(part[-1:] == "e" and part[:-1].isdecimal() for part in parts):
        return None
    sizes = {size for part in parts if (size := _size(part)) is not None}
    return sizes.pop() if len(sizes) == 1 else None


def _parts(name: str) -> list[str]:
    return name.lower().replace("_", "-").replace(" ", "-").split("-")


def _size(part: str) -> int | None:
    """Return the parameters of one part such as `7b`, `1.5b` or `350m`."""
    scale = _SCALE.get(part[-1:])
    digits = part[:-1]
    if scale is None or len(part) > _LONGEST_SIZE or digits.count(".") > 1:
        return None
    if not digits.replace(".", "").isdecimal():
        return None
    return int(float(digits) * scale) if digits[0] != "." and digits[-1] != "." else None
