"""Converters: what the value of a setting says about facts, as data for the dialects' tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.configs import scalars
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from oomdoctor.configs.setting import Plain
    from oomdoctor.model.core import Value

MAX_COUNT = 10**13
DTYPES = {
    "float32": "fp32",
    "fp32": "fp32",
    "f32": "fp32",
    "float": "fp32",
    "single": "fp32",
    "32": "fp32",
    "32-true": "fp32",
    "tf32": "fp32",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "bf16-true": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "16-true": "fp16",
    "fp8": "fp8",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
    "int4": "int4",
}


class Claim(NamedTuple):
    """A fact that a value states; `source` in words where it is more than the plain reading."""

    key: str
    value: Value
    slack: float = 0
    source: str | None = None
    origin: Origin = Origin.STATED


Convert: TypeAlias = "Callable[[Plain], Iterator[Claim]]"
Table: TypeAlias = "Mapping[str, Convert]"


def count(key: str, *, least: int = 1) -> Convert:
    """Take a whole number of at least `least`."""

    def convert(value: Plain) -> Iterator[Claim]:
        number = scalars.as_count(value)
        if number is not None and least <= number < MAX_COUNT:
            yield Claim(key, number)

    return convert


def flag(key: str, *, invert: bool = False) -> Convert:
    """Take a switch."""

    def convert(value: Plain) -> Iterator[Claim]:
        on = scalars.as_bool(value)
        if on is not None:
            yield Claim(key, on != invert)

    return convert


def given(key: str, *, value: Value = True) -> Convert:
    """Claim `value` where anything but null, false or an empty text is written."""

    def convert(written: Plain) -> Iterator[Claim]:
        if written not in (None, False, "", ()) and scalars.as_bool(written) is not False:
            yield Claim(key, value)

    return convert


def when_true(*claims: Claim) -> Convert:
    """Make claims where the switch is on."""

    def convert(value: Plain) -> Iterator[Claim]:
        if scalars.as_bool(value):
            yield from claims

    return convert


def ratio(key: str) -> Convert:
    """Take any number."""

    def convert(value: Plain) -> Iterator[Claim]:
        number = scalars.as_number(value)
        if number is not None:
            yield Claim(key, number)

    return convert


def text(key: str) -> Convert:
    """Take a text, a list joined by commas."""

    def convert(value: Plain) -> Iterator[Claim]:
        word = None if isinstance(value, bool) else scalars.as_text(value)
        if word and not word.startswith("<"):  # an expression that could not be resolved
            yield Claim(key, word)

    return convert


def word(key: str, words: Mapping[str, str]) -> Convert:
    """Take one of a set of words in any case, translated."""

    def convert(value: Plain) -> Iterator[Claim]:
        said = (scalars.as_text(value) or "").lower().rpartition(".")[2]
        if said in words:
            yield Claim(key, words[said])

    return convert


def dtype(key: str, *, only: tuple[str, ...] = ()) -> Convert:
    """Take a dtype word: `torch.bfloat16`, `float16`, `half`, ..."""

    def convert(value: Plain) -> Iterator[Claim]:
        name = dtype_of(value)
        if name and (not only or name in only):
            yield Claim(key, name)

    return convert


def dtype_of(value: Plain) -> str | None:
    """Return the short name of a dtype as someone writes it; None where it is none."""
    said = (scalars.as_text(value) or "").lower()
    return DTYPES.get(said.removeprefix("torch.").removeprefix("jnp.").strip())


def size(key: str, *, slack_share: float = 0.0) -> Convert:
    """Take a size such as `16g` or `252 GB`; a bare number is no size."""

    def convert(value: Plain) -> Iterator[Claim]:
        from oomdoctor.units import parse_size

        found = parse_size(value) if isinstance(value, str) else None
        if found is not None and found.bytes > 0:
            yield Claim(key, found.bytes, max(found.slack_bytes, found.bytes * slack_share))

    return convert


def both(*converts: Convert) -> Convert:
    """Apply several converters to the same value."""

    def convert(value: Plain) -> Iterator[Claim]:
        for one in converts:
            yield from one(value)

    return convert


def either(*converts: Convert) -> Convert:
    """Apply the first converter that claims something."""

    def convert(value: Plain) -> Iterator[Claim]:
        for one in converts:
            claims = tuple(one(value))
            if claims:
                yield from claims
                return

    return convert


def nothing(value: Plain) -> Iterator[Claim]:
    """Claim nothing: a key that means something else than its name suggests elsewhere."""
    del value
    yield from ()
