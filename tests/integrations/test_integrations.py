"""A program that records itself: the same bundle, the same program afterwards, and a diagnosis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.inject import programs
from tests.inject.recorded import environment
from tests.inject.running import needs

pytestmark = [pytest.mark.slow, needs("torch")]
ROOT = Path(__file__).resolve().parents[2]
BLOCK = """
import sys
import torch
from oomdoctor.integrations import recording

before = (torch.nn.Module.__call__, torch.save, sys.excepthook, list(sys.meta_path))
with recording("bundle") as run:
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        model(torch.ones(1, 8)).sum().backward()
        optimizer.step()
print(before == (torch.nn.Module.__call__, torch.save, sys.excepthook, list(sys.meta_path)))
print("__call__" in vars(torch.nn.Linear), "transformers" in sys.modules)
print(run.folder.name, run.report.splitlines()[0])
"""
FAILS = """
import torch
from oomdoctor.integrations import recording

try:
    with recording("bundle"):
        torch.empty(1 << 50)
except RuntimeError as error:
    print("caught", type(error).__name__)
with recording("bundle") as run:
    pass
print(run.folder.name)
"""
CALLBACK = programs.TRAINER.replace("max_steps=100", "max_steps=4").replace(
    "trainer.train()",
    "from oomdoctor.integrations import TrainerRecorder\n"
    "recorder = TrainerRecorder('bundle')\n"
    "trainer.add_callback(recorder)\n"
    "trainer.train()\n"
    "print(recorder.session.line)",
)
LIGHTNING = """
import lightning
import torch
from oomdoctor.integrations import LightningRecorder

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        if index == 5:
            torch.empty(1 << 50)
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

rows = torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=4)
lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[LightningRecorder("bundle")],
).fit(Model(), rows)
"""
CELL = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "oomdoctor.integrations.ipython")
shell.run_cell("%%oomdoctor bundle\\nx = 40 + 2")
print("x is", shell.user_ns["x"])
shell.run_cell("%%oomdoctor bundle\\nimport torch\\ntorch.empty(1 << 50)")
"""


def run(
    folder: Path, program: str, **more: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run a program that records itself; return what it printed, and the end of its bundle."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=environment(None, ROOT, **more),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    path = folder / "bundle" / "run.json"
    return done, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def events(folder: Path) -> list[dict[str, Any]]:
    """Return what the process told."""
    (path,) = folder.glob("processes/*/events.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_block_is_recorded_and_leaves_the_libraries_as_they_were(tmp_path: Path) -> None:
    done, told = run(tmp_path, BLOCK)

    assert done.stdout.splitlines() == [
        "True",
        "False False",
        "bundle program: succeeded",
    ], done.stderr
    assert (told["outcome"], told["exit_code"]) == ("succeeded", 0)
    steps = [one["number"] for one in events(tmp_path / "bundle") if one["type"] == "step"]
    assert steps == [1, 2, 3]


def test_an_exception_goes_on_and_is_diagnosed(tmp_path: Path) -> None:
    done, told = run(tmp_path, FAILS)

    assert done.stdout.splitlines() == ["caught RuntimeError", "bundle-2"], done.stderr
    assert told["outcome"] == "out-of-host-memory"
    assert "oomdoctor: out of host memory" in done.stderr


@needs("transformers", "accelerate")
def test_a_trainer_is_recorded_by_its_callback(tmp_path: Path) -> None:
    done, told = run(tmp_path, CALLBACK)

    assert "oomdoctor: succeeded" in done.stdout, done.stderr
    assert told["outcome"] == "succeeded"
    (path,) = (tmp_path / "bundle").glob("processes/*/arguments.json")
    arguments = json.loads(path.read_text(encoding="utf-8"))
    assert arguments["framework"] == "transformers"
    assert arguments["arguments"]["gradient_accumulation_steps"] == 2
    assert arguments["model"]["config"]["vocab_size"] == 512
    steps = [one["number"] for one in events(tmp_path / "bundle") if one["type"] == "step"]
    assert steps == [1, 2, 3, 4]


@needs("lightning")
def test_lightning_is_recorded_by_its_callback(tmp_path: Path) -> None:
    done, told = run(tmp_path, LIGHTNING)

    assert done.returncode == 1
    assert told["outcome"] == "out-of-host-memory", done.stderr
    assert [one["number"] for one in events(tmp_path / "bundle") if one["type"] == "step"][-1] == 5
    (path,) = (tmp_path / "bundle").glob("processes/*/arguments.json")
    assert json.loads(path.read_text(encoding="utf-8"))["framework"] == "lightning"


@needs("IPython")
def test_a_cell_is_recorded_by_its_magic(tmp_path: Path) -> None:
    done, told = run(tmp_path, CELL, IPYTHONDIR=str(tmp_path / "ipython"))

    assert "oomdoctor: succeeded" in done.stdout, done.stderr
    assert "x is 42" in done.stdout
    assert told["outcome"] == "succeeded"
    assert "out of host memory" in done.stdout


def test_a_recorded_command_is_left_to_its_recorder(tmp_path: Path) -> None:
    hooks = ROOT / "oomdoctor" / "inject" / "hooks"
    path = os.pathsep.join((str(hooks), str(ROOT)))

    done, _ = run(tmp_path, BLOCK, PYTHONPATH=path, OOMDOCTOR_RUN=str(tmp_path / "outer"))

    assert done.returncode == 1  # there is no report of a run that is not over
    assert not (tmp_path / "bundle").exists()
    assert len(events(tmp_path / "outer")) > 3
