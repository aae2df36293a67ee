"""A card as a program sees it: what torch and the libraries of CUDA ask of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, UsageError
from oomdoctor.facts.gpus import MIB, lookup, split_mig
from oomdoctor.facts.processors import processors_of
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.facts.gpus import Gpu
    from oomdoctor.model.job import CardSpec

MOST_CARDS = 16
# MiB and SMs of the slices that `nvidia-smi mig -lgip` lists, by capability and nominal GB
_SLICES = {
    ((8, 0), 40): {
        (1, 5): (4864, 14),
        (2, 10): (9984, 28),
        (3, 20): (20096, 42),
        (4, 20): (20096, 56),
        (7, 40): (40448, 98),
    },
    ((8, 0), 80): {
        (1, 10): (9728, 14),
        (2, 20): (19968, 28),
        (3, 40): (40192, 42),
        (4, 40): (40192, 56),
        (7, 80): (80640, 98),
    },
    ((9, 0), 80): {
        (1, 10): (9984, 16),
        (1, 20): (20096, 26),
        (2, 20): (20096, 32),
        (3, 40): (40448, 60),
        (4, 40): (40448, 64),
        (7, 80): (81152, 132),
    },
}
_SLICE_SHARE = 0.975  # of the gigabytes in a slice's name, as those above have
_NVIDIA_ALONE = "only NVIDIA's cards can be played, `oomdoctor estimate` knows others"


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualCard:
    """A card that is played.

    `total_bytes` is what it reports to PyTorch, `capability` is (8, 0) for sm80, `processors` are
    its SMs. `context_bytes` are taken when a process first uses the card, `others_bytes` are a
    stranger's from the start. A communicator of NCCL takes `pair_bytes` for two ranks,
    `communicator_bytes` for more.
    """

    name: str
    total_bytes: int
    capability: tuple[int, int]
    processors: int
    context_bytes: int = 0
    others_bytes: int = 0
    pair_bytes: int = 0
    communicator_bytes: int = 0


def cards_named(names: str) -> tuple[VirtualCard, ...]:
    """Return the cards of a list: `RTX 4090`, `RTX 4090 x8`, `A100, 2x L4`, `H100 MIG 2g.20gb`."""
    found: list[VirtualCard] = []
    for part in names.split(","):
        name, times = without_times(part.strip())
        found += [card_named(name)] * times
    if len(found) > MOST_CARDS:
        raise UsageError(f"a machine has 1 to {MOST_CARDS} virtual cards, not {len(found)}")
    return tuple(found)


def without_times(text: str) -> tuple[str, int]:
    """Return a name and how often it stands: `RTX 4090 x8`, `8x RTX 4090` and `8 x RTX 4090`."""
    ahead, behind = r"(\d+)\s*[xX\u00d7]\s+(.+)", r"(.+?[\s\d])\s*[xX\u00d7]\s*(\d+)"
    found = re.fullmatch(f"{ahead}|{behind}", text)
    if found is None:
        return text, 1
    times = int(found[1] or found[4])
    if times < 1:
        raise UsageError(f"{text!r} names no card: a count begins at 1")
    return (found[2] or found[3]).strip(), times


def card_named(name: str) -> VirtualCard:
    """Return the card of the table that a person calls so, the first where several fit."""
    bare, slice_gb = split_mig(name)
    for gpu in lookup(bare):
        card = card_of(gpu)
        if card is not None:
            return card if slice_gb is None else slice_of(card, name, gpu.nominal_gb)
    raise InputError(
        f"no NVIDIA card of known memory and compute capability is called {name!r}",
        hint=f"name it as nvidia-smi does, such as 'NVIDIA A100-SXM4-80GB'; {_NVIDIA_ALONE}",
    )


def card_of(gpu: Gpu) -> VirtualCard | None:
    """Return the card of a row of the table, None where it cannot be played."""
    total = gpu.reported_bytes()
    if gpu.compute_capability is None or not total:
        return None
    major, _, minor = gpu.compute_capability.partition(".")
    capability = int(major), int(minor)
    return VirtualCard(
        name=gpu.name,
        total_bytes=total,
        capability=capability,
        processors=processors_of(gpu.name, capability),
    )


def slice_of(card: VirtualCard, name: str, nominal_gb: Sequence[int]) -> VirtualCard:
    """Return a MIG slice of a card, `H100 80GB HBM3 MIG 2g.20gb`."""
    found = re.search(r"(?i)MIG\s+(\d+)g\.(\d+)gb", name)
    if found is None:
        raise InputError(
            f"{name!r} names no MIG slice", hint="name it as nvidia-smi does, such as MIG 2g.20gb"
        )
    parts, size_gb = int(found[1]), int(found[2])
    known = _SLICES.get((card.capability, max(nominal_gb, default=0)), {}).get((parts, size_gb))
    mib = known[0] if known else int(size_gb * 1024 * _SLICE_SHARE)
    processors = known[1] if known else parts * (14 if card.capability == (8, 0) else 16)
    return replace(
        card,
        name=f"{card.name} MIG {parts}g.{size_gb}gb",
        total_bytes=min(mib * MIB, card.total_bytes),
        processors=min(processors, card.processors),
    )


def card_like(card: CardSpec) -> VirtualCard:
    """Return the card that an estimate or a trial is made for; InputError where it is no NVIDIA."""
    found = lookup(card.name)
    if found and all(one.compute_capability is None for one in found):
        raise InputError(f"{card.name} cannot be played: {_NVIDIA_ALONE}")
    return VirtualCard(
        name=card.name,
        total_bytes=card.total_bytes,
        capability=card.capability,
        processors=card.processors,
    )
