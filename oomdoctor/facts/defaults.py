"""Framework defaults as assumed facts, by version: what a config leaves out is not unknown.

They speak only where a training or serving config was read to its end; a traceback alone says
nothing about the settings that it does not show.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts import tables
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Value

CLOSING = ("train-config", "serve-config")
_LAYERS = {
    "transformers": ("transformers", "transformers-optimizer"),
    "trl": ("trl", "transformers", "transformers-optimizer"),
    "llamafactory": ("llamafactory", "transformers", "transformers-optimizer"),
    "unsloth": ("unsloth", "transformers", "transformers-optimizer"),
}
_ALONE = frozenset(
    ("axolotl", "torchtitan", "nanogpt", "diffusers", "lightning", "deepspeed", "vllm")
)
_TRL_TASKS = {"sft": "trl-sft", "dpo": "trl-dpo", "grpo": "trl-grpo"}
_LORA_LAYERS = {
    "llamafactory": "llamafactory-lora",
    "unsloth": "unsloth-lora",
    "transformers": "peft",
    "plain": "peft",
}


class _Default(NamedTuple):
    """A default and the words that say whose it is."""

    value: Value
    source: str


@cache
def table() -> Mapping[str, Mapping[str, object]]:
    """Return the table of defaults; read once, when first asked for."""
    loaded: dict[str, Mapping[str, object]] = tables.table("defaults")
    return loaded


def assumed(book: FactBook) -> tuple[Fact, ...]:
    """Return the defaults that hold for the facts which the config leaves out."""
    framework = book.value("job.framework")
    if not isinstance(framework, str) or not book.closed.intersection(CLOSING):
        return ()
    found: dict[str, _Default] = {}
    task = book.value("job.task")
    _collect(book, _layers(framework, task if isinstance(task, str) else ""), found)
    if _is_lora(book, found) and framework in _LORA_LAYERS:
        _collect(book, (_LORA_LAYERS[framework],), found)
    return tuple(
        Fact(key=key, value=default.value, origin=Origin.ASSUMED, source=default.source)
        for key, default in found.items()
    )


def _layers(framework: str, task: str) -> tuple[str, ...]:
    """Return the sources of defaults, the framework's own before those it inherits."""
    if framework in _ALONE:
        return (framework,)
    layers = _LAYERS.get(framework, ())
    own = _TRL_TASKS.get(task) if framework == "trl" else None
    return (own, *layers) if own else layers


def _is_lora(book: FactBook, found: Mapping[str, _Default]) -> bool:
    said = book.value("lora.on")
    if said is None and "lora.on" in found:
        return found["lora.on"].value is True
    return said is True


def _collect(book: FactBook, layers: Iterable[str], found: dict[str, _Default]) -> None:
    """Add the defaults of `layers` for keys that nobody stated and no earlier layer speaks of.

    A layer that knows a key but cannot say its default at this version still keeps others out.
    """
    settled = {*book.facts, *found, *str(book.value("job.open") or "").split("\n")}
    for layer in layers:
        defaults = dict(_of_layer(book, layer))
        for key, default in defaults.items():
            value = _referred(default, defaults, book) if default is not None else None
            if default is not None and value is not None and key not in settled:
                found[key] = default._replace(value=value)
        settled.update(defaults)


def _referred(
    default: _Default, defaults: Mapping[str, _Default | None], book: FactBook
) -> Value | None:
    """Return the value, or that of the fact which a text such as `=train.micro_batch` names."""
    value = default.value
    if not isinstance(value, str) or not value.startswith("="):
        return value
    stated = book.value(value[1:])
    other = defaults.get(value[1:])
    return other.value if stated is None and other is not None else stated


def _of_layer(book: FactBook, layer: str) -> Iterator[tuple[str, _Default | None]]:
    """Yield what one source of defaults says at the version in use, None where that is open."""
    entry = table()[layer]
    package, facts = entry["package"], entry["facts"]
    if not isinstance(package, str) or not isinstance(facts, dict):
        return
    stated = book.value(f"env.{package.lower()}")
    version = stated if isinstance(stated, str) else None
    for key, runs in facts.items():
        yield key, _at(runs, package, version)


def _at(
    runs: list[tuple[str | None, str, Value | None]], package: str, version: str | None
) -> _Default | None:
    """Return the default at a version; at an unknown one only what never changed."""
    first, last = runs[0][0], runs[-1][1]
    if version is None:
        values = {value for _, _, value in runs if value is not None}
        newest = runs[-1][2]
        if newest is None or len(values) != 1:
            return None
        words = f"default of {package} {last}".rstrip()
        return _Default(newest, f"{words} (version not stated)")
    at = _version(version)
    source = f"default of {package} {version}"
    if first is not None and at < _version(first):
        return None
    for low, high, value in runs:
        if (low is None or _version(low) <= at <= _version(high)) and value is not None:
            return _Default(value, source)
    return _between(runs, at, source)


def _between(
    runs: list[tuple[str | None, str, Value | None]], at: tuple[int, ...], source: str
) -> _Default | None:
    """Return the newest default beyond the last version read; between two runs it is open."""
    newest = runs[-1][2]
    if newest is not None and at > _version(runs[-1][1]):
        return _Default(newest, f"{source} (read up to {runs[-1][1]})")
    return None


def _version(text: str) -> tuple[int, ...]:
    """Return up to three numbers of a version, so that 4.57.1.dev0 counts as 4.57.1."""
    numbers: list[int] = []
    for part in text.lstrip("v").split("+")[0].split(".")[:3]:
        digits = "".join(character for character in part if character.isdecimal())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple((*numbers, 0, 0, 0)[:3])
