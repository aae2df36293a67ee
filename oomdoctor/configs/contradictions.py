"""Two switches of which a library takes one: both on in the same place of a config.

bf16: true                   precision.both_halves, shown at the later line
fp16: true
load_in_8bit: true           quant.both_bits
load_in_4bit: true
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

PAIRS = (
    ("precision.both_halves", "fp16", "bf16"),
    ("precision.both_halves", "fp16.enabled", "bf16.enabled"),
    ("quant.both_bits", "load_in_8bit", "load_in_4bit"),
)


def read(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Yield of each pair that is written in one place whether both are on."""
    for key, one, two in PAIRS:
        places: dict[str, Setting] = {}
        for row in settings.in_force:
            path = f".{row.key}"
            name = next((name for name in (one, two) if path.endswith(f".{name}")), None)
            if name is None:
                continue
            earlier = places.setdefault(path.removesuffix(name), row)
            if earlier is not row:
                yield Claim(key, row.value is True and earlier.value is True), row
