"""`bisect`, `confirm`, `run`, `show` and `snapshot` on virtual cards, as they are typed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.gpu.scripts import FOLDER, skip_without
from tests.gpu.shell import bundle_in, oomdoctor, program, skip_without_libraries

if TYPE_CHECKING:
    from pathlib import Path

NAME = "NVIDIA GeForce RTX 4060"
ON_CARD = ("--backend", "virtual", "--gpu", NAME)
# holds so many blocks of 256 MiB, and saves what would replace a checkpoint
BLOCKS = """\
import sys, torch
held = [torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(int(sys.argv[1]))]
if len(held) > 1 and held[0].bool().any():
    print("an unknown value")
torch.save(torch.ones(3), "model.pt")
"""
CARDS = """\
import sys, torch
assert torch.cuda.device_count() == int(sys.argv[1]), torch.cuda.device_count()
for card in range(torch.cuda.device_count()):
    assert torch.cuda.get_device_name(card) == "NVIDIA L4"
"""
RECORDS = """\
import torch
torch.cuda.memory._record_memory_history(max_entries=10000)
layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(4)]
optimizer = torch.optim.AdamW([one for layer in layers for one in layer.parameters()])
for _ in range(4):
    x = torch.ones(64, 512, device="cuda")
    for layer in layers:
        x = torch.relu(layer(x))
    x.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.memory._dump_snapshot("own.pickle")
kept = []
while True:
    kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
"""
JOB = """\
model_name_or_path: {model}
stage: sft
do_train: true
finetuning_type: full
per_device_train_batch_size: 16
cutoff_len: 1024
bf16: true
gradient_checkpointing: false
optim: adamw_torch
"""
MODEL = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 2048,
}


@pytest.fixture(autouse=True)
def _built() -> None:
    skip_without_libraries()


def as_json(text: str) -> Any:
    return json.loads(text)


def test_a_bisection_finds_the_edge_that_a_run_has(tmp_path: Path) -> None:
    words = program(tmp_path, BLOCKS)
    (tmp_path / "model.pt").write_text("precious")
    axis = ("bisect", "-f", "json", "--axis", "n=27..29", *ON_CARD)

    found = as_json(oomdoctor(tmp_path, *axis, "--", *words, "{n}").output)

    bracket = found["answer"]["bracket"]
    assert bracket["ooms_at"] == bracket["fits_at"] + 1
    run = ("run", "--no-diagnosis", "--virtual-gpu", NAME, "--", *words)
    fitting, failing = (
        oomdoctor(tmp_path, *run, str(int(bracket[one]))) for one in ("fits_at", "ooms_at")
    )
    assert fitting.code == 0, fitting.errors
    assert "OutOfMemoryError" in failing.errors
    assert (tmp_path / "model.pt").read_text() == "precious", "trials save elsewhere"
    assumed = {one for trial in found["trials"] for one in trial["assumptions"]}
    assert any("CUDA context for each process is assumed" in one for one in assumed)
    assert any("program.py:3 in <module>" in one for one in assumed), "a value that was read"


@pytest.mark.parametrize("count", [1, 2])
def test_a_command_gets_as_many_cards_as_are_named(tmp_path: Path, count: int) -> None:
    words = program(tmp_path, CARDS)
    cards = ("--backend", "virtual", "--gpu", f"NVIDIA L4 x{count}")

    said = oomdoctor(tmp_path, "bisect", "--git-bisect", *cards, "--", *words, str(count))

    assert said.code == 0, said.errors


def test_a_command_finds_the_interpreter_that_is_named(tmp_path: Path) -> None:
    program(tmp_path, CARDS)
    named = ("--python", sys.executable, "--backend", "virtual", "--gpu", "NVIDIA L4")
    words = ("bisect", "--git-bisect", *named, "--", "python", "program.py", "1")

    said = oomdoctor(tmp_path, *words, PATH="/usr/bin:/bin", CUDA_VISIBLE_DEVICES="7")

    assert said.code == 0, said.errors


def test_a_cause_is_confirmed_in_a_job(tmp_path: Path) -> None:
    skip_without("transformers")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(MODEL))
    (tmp_path / "job.yaml").write_text(JOB.format(model=tmp_path / "model"))
    case = ("confirm", "no-grad-checkpointing", "job.yaml", "-f", "json")

    said = oomdoctor(tmp_path, *case, "--backend", "virtual", "--gpu", "4GiB")

    assert said.code == 0, said.errors
    (one,) = as_json(said.output)["confirmations"]
    assert one["verdict"] == "confirmed"
    assert one["measured_saving_bytes"] > 0
    assert one["whole"], "the need in all was measured, which costs nothing here"


def test_a_diagnosed_cause_is_confirmed_in_a_command(tmp_path: Path) -> None:
    words = (sys.executable, str(FOLDER / "nanogpt.py"), "--eager", "--batch", "18")
    assert oomdoctor(tmp_path, "run", "--virtual-gpu", NAME, "--", *words).code == 1
    diagnosis = bundle_in(tmp_path) / "diagnosis.json"
    case = ("confirm", str(diagnosis), "-f", "json", *ON_CARD)

    said = oomdoctor(tmp_path, *case, "--", *words)

    assert said.code == 0, said.errors
    found = {one["cause"]: one["verdict"] for one in as_json(said.output)["confirmations"]}
    assert found["logits-vocab-fp32"] == "confirmed"


def test_snapshots_of_a_virtual_run_are_read(tmp_path: Path) -> None:
    words = ("run", "--virtual-gpu", NAME, "--", *program(tmp_path, RECORDS))
    assert oomdoctor(tmp_path, *words).code == 1
    (dumped,) = bundle_in(tmp_path).glob("processes/*/oom-1/snapshot.pickle")

    for path in (tmp_path / "own.pickle", dumped):
        report = oomdoctor(tmp_path, "snapshot", "report", str(path))
        top = oomdoctor(tmp_path, "snapshot", "top", str(path))
        verified = oomdoctor(tmp_path, "snapshot", "verify", str(path))

        assert [report.code, top.code, verified.code] == [0, 0, 0], path
        assert ":8 in <module>" in report.output, "the line of the forward pass"
        assert ":8 in <module>" in top.output
        assert "oomdoctor/virtual" not in top.output, "code of ours asks for nothing"
        assert "at the same address" in verified.output


def test_a_bundle_says_that_its_cards_are_virtual(tmp_path: Path) -> None:
    words = program(tmp_path, BLOCKS)
    said = oomdoctor(tmp_path, "run", "--virtual-gpu", NAME, "--", *words, "40")
    assert said.code == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in said.errors

    shown = oomdoctor(tmp_path, "show", "last")
    diagnosed = oomdoctor(tmp_path, "diagnose", str(bundle_in(tmp_path)))

    assert f"It ran on a virtual card: {NAME}" in shown.output
    assert "GPU memory ran out" in diagnosed.output
