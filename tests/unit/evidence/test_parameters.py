"""Parameters that programs print, and what follows from them for the request."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import engine_prefix, parameters
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.frames import frame_head
from oomdoctor.evidence.source import source_of_text


@pytest.mark.parametrize(
    ("line", "whole", "trained"),
    [
        (
            "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.06",
            6742609920,
            4194304,
        ),
        ("Total parameters: 355,469,312 (355,000,000 trainable)", 355469312, 355000000),
        ("num. model params: 355,469,312 (num. trained: 1,469,312)", 355469312, 1469312),
        ("  Number of trainable parameters = 1,235,814,400", None, 1235814400),
        ("Trainable parameters = 41,943,040 of 8,072,204,288 (0.5%)", 8072204288, 41943040),
        ("Trainable parameters = 41,943,040/8,072,204,288 (0.5%)", 8072204288, 41943040),
        ("8.0 B     Total params", 8000000000, None),
        ("params: 12", None, None),
    ],
)
def test_printed_parameters_are_read(line: str, whole: int | None, trained: int | None) -> None:
    facts = {fact.key: fact.value for fact in parameters.read(clean(source_of_text(line))).facts}
    assert facts.get("model.params_printed") == whole
    assert facts.get("train.params_printed") == trained


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        (
            "ERROR 02-03 11:12:13 [engine.py:101] torch.OutOfMemoryError: CUDA out of memory.",
            "vllm",
        ),
        ("(EngineCore_DP0 pid=7) ERROR 02-03 11:12:13 [core.py:3] CUDA out of memory.", "vllm"),
        ("ERROR: CUDA out of memory.", None),
    ],
)
def test_an_engine_is_known_by_the_prefix_of_its_failure(line: str, framework: str | None) -> None:
    facts = engine_prefix.read(clean(source_of_text(line))).facts
    assert next((fact.value for fact in facts), None) == framework


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("mylib/trainer.py in evaluation_loop(self, loader, prefix)", "evaluation_loop"),
        ("~/x/trainer.py in fit(self)", "fit"),
        ("we fixed trainer.py in release 3", None),
    ],
)
def test_frames_of_old_notebooks_need_no_leading_slash(line: str, function: str | None) -> None:
    head = frame_head(line)
    assert (head.function if head else None) == function
