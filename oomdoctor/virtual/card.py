"""A card as a program sees it: what torch and the libraries of CUDA ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.facts.gpus import MIB, lookup
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.facts.gpus import Gpu
    from oomdoctor.model.job import CardSpec

# streaming multiprocessors in use, from NVIDIA's data sheets; sizes of some workspaces follow them
_PROCESSORS = {
    "Tesla V100": 80,
    "Tesla T4": 40,
    "TITAN RTX": 72,
    "RTX 2080 Ti": 68,
    "A100": 108,
    "A10G": 80,
    "A10": 72,
    "A40": 84,
    "RTX A6000": 84,
    "RTX A5000": 64,
    "RTX 3060": 28,
    "RTX 3070": 46,
    "RTX 3080": 68,
    "RTX 3090": 82,
    "RTX 3090 Ti": 84,
    "RTX 4060": 24,
    "RTX 4070": 46,
    "RTX 4080": 76,
    "RTX 4090": 128,
    "RTX 6000 Ada": 142,
    "L4": 58,
    "L40": 142,
    "L40S": 142,
    "H100 PCIe": 114,
    "H100 NVL": 132,
    "H100": 132,
    "H200": 132,
    "GH200": 132,
    "B200": 148,
    "GB200": 152,
    "RTX 5070": 48,
    "RTX 5080": 84,
    "RTX 5090": 170,
}
# of cards that are not named above, by compute capability: the largest card of it
_BY_CAPABILITY = {
    (7, 0): 80,
    (7, 5): 72,
    (8, 0): 108,
    (8, 6): 84,
    (8, 9): 142,
    (9, 0): 132,
    (10, 0): 148,
    (12, 0): 170,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualCard:
    """A card that is played.

    `total_bytes` is what it reports to PyTorch, `capability` is (8, 0) for sm80, `processors` are
    its SMs. `context_bytes` are taken before anybody allocates, as the context of a real process
    takes some.
    """

    name: str
    total_bytes: int
    capability: tuple[int, int]
    processors: int
    context_bytes: int = 0


def card_named(name: str) -> VirtualCard:
    """Return the card of the table that a person calls so, the first where several fit."""
    for gpu in lookup(name):
        card = card_of(gpu)
        if card is not None:
            return card
    raise InputError(
        f"no NVIDIA card of known memory and compute capability is called {name!r}",
        hint="name it as nvidia-smi does, such as 'NVIDIA A100-SXM4-80GB'",
    )


def card_of(gpu: Gpu) -> VirtualCard | None:
    """Return the card of a row of the table, None where it cannot be played."""
    totals = gpu.totals()
    if gpu.compute_capability is None or not totals:
        return None
    major, _, minor = gpu.compute_capability.partition(".")
    capability = int(major), int(minor)
    total = gpu.torch_mib[0] * MIB if gpu.torch_mib else totals[0]
    return VirtualCard(
        name=gpu.name,
        total_bytes=total,
        capability=capability,
        processors=processors_of(gpu.name, capability),
    )


def card_like(card: CardSpec) -> VirtualCard:
    """Return the card that a simulated job runs on."""
    return VirtualCard(
        name=card.name,
        total_bytes=card.total_bytes,
        capability=card.capability,
        processors=card.processors,
    )


def processors_of(name: str, capability: tuple[int, int]) -> int:
    """Return the SMs of a card: by the longest name in its own, else by its capability."""
    words = name.replace("-", " ").split()
    named = [known for known in _PROCESSORS if _stand_in_row(known.split(), words)]
    if named:
        return _PROCESSORS[max(named, key=len)]
    near = [known for known in _BY_CAPABILITY if known <= capability]
    return _BY_CAPABILITY[max(near)] if near else min(_BY_CAPABILITY.values())


def _stand_in_row(wanted: list[str], words: list[str]) -> bool:
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))
