"""Codes, causes and facts are completed by the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("oomdoctor dia", "diagnose"),
        ("oomdoctor diagnose --fact oom.request", "oom.requested"),
        ("oomdoctor explain ACT2", "ACT2001"),
        ("oomdoctor explain logits-v", "logits-vocab-fp32"),
        ("oomdoctor diagnose --form", "--format"),
        ("oomdoctor estimate --gpu h200", "NVIDIA H200"),
        ("oomdoctor plan --model llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("oomdoctor estimate --fact train.micro", "train.micro_batch"),
        ("oomdoctor plan --meth", "--method"),
    ],
)
def test_the_shell_completes(run_python: RunPython, words: str, expected: str) -> None:
    environment = {
        "_OOMDOCTOR_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }

    done = run_python("-m", "oomdoctor", environment=environment)

    assert f"plain,{expected}" in done.stdout.decode().splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run_python: RunPython, shell: str) -> None:
    done = run_python("-m", "oomdoctor", "completion", shell)

    assert done.returncode == 0
    assert f"_OOMDOCTOR_COMPLETE={shell}_complete" in done.stdout.decode()
