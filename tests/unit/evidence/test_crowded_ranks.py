"""Ranks that fail on one device number are counted, with what else was started beside them."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_oom
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU {gpu} has a total"
    " capacity of 23.64 GiB of which 12.00 MiB is free."
)
LISTED = " ".join(f" Process {pid} has 2.00 GiB memory in use." for pid in (9, 402, 401, 404, 407))


def facts_of(text: str) -> dict[str, object]:
    reading = torch_oom.read(clean(source_of_text(text)))
    return {one.key: one.value for one in reading.facts}


def test_ranks_on_one_number_are_counted_with_their_siblings() -> None:
    zero, one = MESSAGE.format(gpu=0), MESSAGE.format(gpu=1)

    facts = facts_of(f"[rank7]: {zero}\n[rank2]: {zero}{LISTED}\n[rank1]: {one}")

    assert (facts["oom.failed_ranks"], facts["oom.crowded_ranks"]) == (3, 2)
    assert facts["oom.listed_siblings"] == 4


def test_each_rank_on_a_card_of_its_own_is_no_crowd() -> None:
    facts = facts_of("\n".join(f"[rank{n}]: {MESSAGE.format(gpu=n)}" for n in range(3)))

    assert facts["oom.crowded_ranks"] == 1


def test_processes_of_far_numbers_are_no_siblings() -> None:
    listed = " ".join(f" Process {pid} has 2.00 GiB memory in use." for pid in (9, 402, 901, 3300))

    (failure,) = torch_oom.read(clean(source_of_text(MESSAGE.format(gpu=0) + listed))).failures

    assert "oom.listed_siblings" not in {one.key for one in failure.facts}


@pytest.mark.parametrize(
    "line",
    [
        "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] {message}",
        "[RANK 2] [E] Error with args ('up', Linear(\n  (lora): LoraLayer()\n)): {message}",
        "[RANK 2] [E] Error with args [\n  'up',\n  Linear(),\n]: {message}",
        (
            "Loading weights:  94%|####| 72/76 [00:01<00:00, 33.1it/s]"
            "[09/17/2025-21:24:18] [TRT-LLM] [RANK 2] [E] {message} [...]"
        ),
    ],
)
def test_the_rank_of_tensorrt_llm_is_read(line: str) -> None:
    document = clean(source_of_text(line.format(message=MESSAGE.format(gpu=0))))

    assert [failure.rank for failure in torch_oom.read(document).failures] == [2]


def test_a_line_that_closes_what_no_rank_opened_has_no_rank() -> None:
    text = f"[RANK 2] [I] loaded\n  (lora): LoraLayer()\n)): {MESSAGE.format(gpu=0)}"

    assert [one.rank for one in torch_oom.read(clean(source_of_text(text))).failures] == [None]
