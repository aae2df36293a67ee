"""The kind of an input is told by its content."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.sniff import kind_of, kinds_of
from oomdoctor.evidence.source import source_of_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "log"),
        ("hello world", "log"),
        ("Traceback (most recent call last):\n  File 'x'", "log"),
        ("RuntimeError: CUDA out of memory.\nbatch_size: 4\nlr: 3", "log"),
        ("| NVIDIA-SMI 535.1 |\n| 30% 40C | 1906MiB /  8111MiB |", "process-table"),
        ("|  PyTorch CUDA memory summary, device ID 0  |", "memory-summary"),
        ("torch==2.4.0\ntransformers==4.44.0\ntrl==0.9.1", "packages"),
        ("Package Version\n------- -------\ntorch 2.4.0\npeft 0.12.0\ntrl 0.9.1", "packages"),
        ("base_model: x\nmicro_batch_size: 4\nsequence_len: 2048\n", "config"),
        (
            '{\n "train_micro_batch_size_per_gpu": 4,\n "zero_optimization": {"stage": 2}\n}',
            "config",
        ),
        ('{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32}', "model-config"),
        ("import torch\nfrom trl import SFTTrainer\ntrainer = SFTTrainer(\n    model)\n", "script"),
        ('  File "a.py", line 3, in f\n    return g(x)\n    return h(x)\n', "log"),
        ("#!/bin/bash\nset -e\ntorchrun train.py", "shell"),
        ("export CUDA_VISIBLE_DEVICES=0\naccelerate launch train.py --bf16", "shell"),
        ('{"segments": [], "device_traces": []}', "snapshot"),
    ],
)
def test_the_kind_is_told_by_content(text: str, kind: str) -> None:
    assert kind_of(source_of_text(text)) == kind


def test_a_name_helps_where_content_is_short() -> None:
    assert kind_of(source_of_text("lr: 1", name="a.yaml")) == "config"
    assert kind_of(source_of_text("x = 1", name="a.py")) == "script"


def test_a_log_that_also_holds_a_table_says_both() -> None:
    text = "RuntimeError: CUDA out of memory.\n| 30% 40C | 1906MiB /  8111MiB |"

    assert kinds_of(source_of_text(text)) == ("log", "process-table")
