"""Two switches of which a library takes one: both on in the same place of a config.

bf16: true                   precision.both_halves, shown at the later line
fp16: true
load_in_8bit: true           quant.both_bits
load_in_4bit: true
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs.claims import Claim
from oomdoctor.configs.setting import normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

PAIRS = (
    ("precision.both_halves", ("fp16", "bf16")),
    ("precision.both_halves", ("fp16.enabled", "bf16.enabled")),
    ("quant.both_bits", ("load_in_8bit", "load_in_4bit")),
)


def read(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Yield what holds of each pair of which at least one switch is written."""
    rows = settings.in_force
    for key, names in PAIRS:
        for row, other in _pairs(rows, *names):
            both = other is not None and row.value is True and other.value is True
            yield Claim(key, both), row


def _pairs(
    rows: tuple[Setting, ...], one: str, two: str
) -> Iterator[tuple[Setting, Setting | None]]:
    """Yield the later of two switches under the same path with the earlier one, if there is any."""
    places: dict[str, Setting] = {}
    found: dict[str, tuple[Setting, Setting | None]] = {}
    for row in rows:
        for name in (one, two):
            end = f".{name}"
            key = f".{normal('.'.join(row.path))}"
            if key.endswith(end):
                place = key.removesuffix(end)
                found[place] = (row, places.get(place))
                places[place] = row
    both = [pair for pair in found.values() if pair[1] is not None]
    yield from both or list(found.values())[:1]
