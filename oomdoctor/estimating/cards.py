"""The cards that an estimate is judged on: by name from the table, or by a size alone.

RTX 4090            the memory that this card reports to PyTorch
A100                two cards, 40 and 80 GB
24GiB               some card that reports so much
A100 MIG 3g.20gb    a slice
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.facts.gpus import GIB, MIB, OF_SMI, SPREAD, cards, lookup, split_mig
from oomdoctor.facts.processors import processors_of
from oomdoctor.model.job import CardSpec
from oomdoctor.units import format_size, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.facts.gpus import Gpu

MOST_BYTES = 1 << 50  # of one card
PLAIN = CardSpec(name="", capability=(8, 0), processors=108, total_bytes=80 * GIB)
USUAL = (
    "NVIDIA GeForce RTX 3060",
    "Tesla T4",
    "NVIDIA GeForce RTX 4090",
    "NVIDIA GeForce RTX 5090",
    "NVIDIA A100-SXM4-40GB",
    "NVIDIA L40S",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H200",
    "NVIDIA B200",
)
"""The cards of an estimate that names none."""


def cards_of(names: Iterable[str]) -> tuple[CardSpec, ...]:
    """Return the cards that names and sizes stand for, each once; UsageError for unknown ones."""
    found: dict[tuple[str, int], CardSpec] = {}
    for name in names:
        for card in _cards(name.strip()):
            found.setdefault((card.name, card.total_bytes), card)
    return tuple(found.values())


def usual_cards() -> tuple[CardSpec, ...]:
    """Return the cards that are shown where none is named."""
    return tuple(_spec(card) for card in cards() if card.name in USUAL)


def _cards(name: str) -> tuple[CardSpec, ...]:
    size = parse_size(name)
    if size is not None:
        if not MIB <= size.bytes <= MOST_BYTES:
            raise UsageError(f"--gpu {name!r} is no card", hint="for example --gpu 24GiB")
        label = f"{format_size(size.bytes)} card"
        return (
            CardSpec(
                name=label,
                capability=PLAIN.capability,
                processors=PLAIN.processors,
                total_bytes=size.bytes,
            ),
        )
    found = lookup(name)
    if not found:
        raise UsageError(f"--gpu {name!r} is no card that is known", hint=_near(name))
    _, piece = split_mig(name)
    if piece is not None:
        return (_slice(found[0], name, piece),)
    return _merged(found)


def _near(name: str) -> str:
    from difflib import get_close_matches

    known = {card.name.lower(): card.name for card in cards()}
    short = {low.replace("nvidia ", "").replace("geforce ", ""): one for low, one in known.items()}
    near = get_close_matches(name.lower(), [*known, *short], n=1, cutoff=0.8)
    first = f"did you mean {(known | short)[near[0]]!r}? " if near else ""
    return f"{first}give a name such as 'RTX 4090' or a size such as 24GiB"


def _merged(found: Sequence[Gpu]) -> tuple[CardSpec, ...]:
    """Return the cards without those that differ from another one by nothing that counts."""
    kept: list[CardSpec] = []
    for card in found:
        spec = _spec(card)
        same = any(
            one.capability == spec.capability
            and max(one.total_bytes, spec.total_bytes)
            < SPREAD * min(one.total_bytes, spec.total_bytes)
            for one in kept
        )
        if not same:
            kept.append(spec)
    return tuple(kept)


def _spec(card: Gpu) -> CardSpec:
    capability = capability_of(card.compute_capability)
    return CardSpec(
        name=card.name,
        capability=capability,
        processors=processors_of(card.name, capability),
        total_bytes=card.reported_bytes(),
    )


def _slice(card: Gpu, name: str, gigabytes: int) -> CardSpec:
    """Return a MIG slice; it has its share of the memory and of the multiprocessors."""
    whole = _spec(card)
    share = gigabytes * GIB / max(whole.total_bytes, gigabytes * GIB)
    return CardSpec(
        name=name,
        capability=whole.capability,
        processors=max(1, round(whole.processors * share)),
        total_bytes=int(gigabytes * GIB * OF_SMI),
    )


def capability_of(text: str | None) -> tuple[int, int]:
    """Return (8, 0) for "8.0"; cards of other makers count as the plain one."""
    major, _, minor = (text or "").partition(".")
    if major.isdecimal() and minor.isdecimal():
        return int(major), int(minor)
    return PLAIN.capability
