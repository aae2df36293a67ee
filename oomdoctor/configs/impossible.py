"""Numbers that no job can have: told, so that no default stands in for them unseen.

micro_batch_size: 0  ->  "line 3: micro_batch_size = 0 is not read: train.micro_batch is a ..."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs.mapping import converter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.mapping import Dialect
    from oomdoctor.configs.setting import Settings

COUNTS = ("train.micro_batch", "train.seq_len", "train.grad_accum")


def impossible(settings: Settings, dialect: Dialect) -> Iterator[str]:
    """Yield a sentence for each number that its key cannot be."""
    for row in settings:
        if isinstance(row.value, bool) or not isinstance(row.value, (int, float)):
            continue
        convert = converter(row.path, dialect) if row.path else None
        if convert is None:
            continue
        means = {claim.key for claim in convert(1)} - {claim.key for claim in convert(row.value)}
        for key in COUNTS:
            if key in means:
                yield (
                    f"line {row.quote.line}: {'.'.join(row.path)} = {row.value} is not read:"
                    f" {key} is a whole number of at least 1"
                )
