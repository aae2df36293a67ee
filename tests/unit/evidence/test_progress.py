"""The last progress line before the failure says the step; other bars say nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.evidence.progress import progress_facts
from oomdoctor.evidence.progress_lines import parse_progress
from tests.unit.evidence.documents import document_of, raw_text

OOM = "RuntimeError: CUDA out of memory."


def values(*lines: str) -> dict[str, object]:
    document = document_of("\n".join([*lines, OOM]))
    return {
        fact.key.removeprefix("run."): fact.value for fact in progress_facts(document, len(lines))
    }


def test_a_bar_says_step_total_and_share() -> None:
    assert values("  6%|6         | 310/5200 [00:12<03:10,  1.33it/s]") == {
        "step": 310,
        "first_step": False,
        "late_step": True,
        "total_steps": 5200,
        "progress": 310 / 5200,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  0%|          | 0/23676 [00:00<?, ?it/s]", (0, True, False, 23676)),
        ("  1%|          | 1/100 [00:01<01:00, 1it/s]", (1, False, False, 100)),
        (" 10%|█ | 1.00k/10.0k [00:01<01:00, 1it/s]", (1000, False, True, 10_000)),
        ("step 164", (164, False, True, None)),
        ("step 1 loss 3.0", (1, True, False, None)),
        ("Step 3/1000 | loss 2.0", (3, False, False, 1000)),
        ("iter: 300  loss: 1", (300, False, True, None)),
        ("[iter 50] max_mem: 5000M", (50, False, True, None)),
        ("at iteration 19", (19, False, False, None)),
        (" iteration      100/  500000 | consumed samples: 25600 |", (100, False, True, 500_000)),
        ("eta: 1:00  iter: 20  total_loss: 0.5  max_mem: 5000M", (20, False, False, None)),
        ("global_step=40 lr=1e-5", (40, False, True, None)),
        ("{'loss': 0.61, 'step': 30, 'epoch': 0.5}", (30, False, True, None)),
    ],
)
def test_the_step_of_a_line(line: str, expected: tuple[object, ...]) -> None:
    found = values(line)

    keys = ("step", "first_step", "late_step", "total_steps")
    assert tuple(found.get(key) for key in keys) == expected


@pytest.mark.parametrize(
    ("line", "step", "epoch"),
    [
        ("Epoch 3:  12%|█▏        | 120/1000 [00:10<01:20, 1it/s]", 3120, 3.0),
        ("Epoch 0:  12%|█▏        | 120/1000 [00:10<01:20, 1it/s]", 120, 0.0),
        ("Epoch: [2][ 10/5005]\tTime  0.3", 10_020, 2.0),
        ("Epoch [1][50/7330]\tlr: 0.02", 50, 0.0),
        ("Epoch 3/10", None, 3.0),
        ("{'loss': 0.61, 'learning_rate': 5e-05, 'epoch': 0.5}", None, 0.5),
        ("Epoch 0: 6843.771 seconds", None, 0.0),
    ],
)
def test_a_step_within_an_epoch_counts_from_the_start(
    line: str, step: int | None, epoch: float
) -> None:
    found = values(line)

    assert found.get("step") == step
    assert found["epoch"] == epoch


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint shards:  33%|███▎      | 1/3 [00:01<00:02]",
        "Map (num_proc=4):  50%|█████     | 500/1000 [00:01<00:01]",
        "Downloading: 100%|██████████| 440M/440M [00:09<00:00, 48MB/s]",
        "Gradient Accumulation steps = 4",
        "Total optimization step budget: 40",
        "logging_steps: 500",
        "python train.py --max_steps 100",
        '  File "train.py", line 3, in step',
        "batch_size: 4",
        "no number here: step",
        "Evaluating:  40%|████      | 4/10 [00:01<00:02]",
    ],
)
def test_other_lines_are_no_training_progress(line: str) -> None:
    assert "step" not in values(line)


def test_the_last_line_before_the_failure_counts() -> None:
    found = values("step 3", "step 40", "some text")

    assert found["step"] == 40


def test_a_bar_right_after_the_failure_counts_where_none_stands_before_it() -> None:
    document = document_of(f"{OOM}\n 10%|█████████▌")

    found = {fact.key: fact.value for fact in progress_facts(document, 0)}

    assert found == {"run.progress": 0.1, "run.first_step": False}


def test_a_line_long_after_the_failure_does_not_count() -> None:
    document = document_of("\n".join([OOM, *["text"] * 9, "step 40"]))

    assert progress_facts(document, 0) == ()


def test_bars_of_an_announced_evaluation_are_not_training_steps() -> None:
    document = document_of(raw_text("logs", "evaluation_after_training.txt"))

    found = {fact.key: fact.value for fact in progress_facts(document, 10)}

    assert found["run.step"] == 500
    assert found["run.total_steps"] == 4875


def test_the_banner_gives_the_total() -> None:
    found = values("  Total optimization steps = 23,676", "step 40")

    assert found["total_steps"] == 23_676


def test_a_finished_bar_is_an_epoch_boundary() -> None:
    assert values("100%|██████████| 50/50 [00:10<00:00]")["epoch_boundary"] is True
    assert "epoch_boundary" not in values(" 98%|█████████ | 49/50 [00:10<00:00]")


@given(st.text(max_size=300))
def test_parsing_never_raises(text: str) -> None:
    for line in document_of(text).lines:
        parse_progress(line)


@pytest.mark.parametrize(
    ("bar", "step", "first"),
    [
        ("| epoch 001:   0%| | 1/85544 [00:01<44:15, 1.8s/it, loss=20.7, num_updates=1]", 1, False),
        ("Epoch 1/10:   0%|          | 0/500 [00:00<?, ?it/s]", 0, True),
        ("Epoch 2/10:   1%|          | 5/500 [00:00<?, ?it/s]", 505, False),
        ("Epoch 1:   1%|          | 5/500 [00:00<?, ?it/s]", 505, False),
    ],
)
def test_epochs_that_count_from_one_add_no_steps(bar: str, *, step: int, first: bool) -> None:
    document = document_of(f"{bar}\nRuntimeError: CUDA out of memory.")
    facts = {fact.key: fact.value for fact in progress_facts(document, 1)}
    assert (facts["run.step"], facts["run.first_step"]) == (step, first)


@pytest.mark.parametrize("line", ["val loss 2.1, best iteration: 17000", "best step 900 so far"])
def test_the_best_step_is_not_the_last_one(line: str) -> None:
    assert "step" not in values(line)
