"""What lies outside the pools of several cards is compared."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_oom
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text

OLD = (
    "CUDA out of memory. Tried to allocate 60.00 MiB (GPU {gpu}; 79.19 GiB total capacity; "
    "{live} GiB already allocated; 60.56 MiB free; {pool} GiB reserved in total by PyTorch)"
)


def facts_of(text: str) -> dict[str, object]:
    return {one.key: one.value for one in torch_oom.read(clean(source_of_text(text))).facts}


@pytest.mark.parametrize(("pools", "expected"), [(("67.50", "67.50"), 2), (("67.50", "58.50"), 1)])
def test_what_lies_outside_the_pools_of_several_cards_is_compared(
    pools: tuple[str, str], expected: int
) -> None:
    lines = [OLD.format(gpu=gpu, live="50.00", pool=pool) for gpu, pool in enumerate(pools)]

    assert facts_of("\n".join(lines))["oom.equal_cards"] == expected


def test_one_card_has_nothing_to_compare_with() -> None:
    line = OLD.format(gpu=3, live="50.00", pool="67.50")

    assert "oom.equal_cards" not in facts_of(f"{line}\n{line}")
