"""What a trace of the job adds to a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor import pipeline
from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.of_failure import with_simulation
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.render.json import as_dict
from oomdoctor.render.layout import plain
from oomdoctor.render.text import page
from oomdoctor.render.theme import Theme
from oomdoctor.render.view import View
from tests.unit.estimating.doubles import GIB, Double, a_card

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.model.plan import Diagnosis

LOG = (
    'Traceback (most recent call last):\n  File "/x/transformers/loss/loss_utils.py", line 40, in'
    " ForCausalLMLoss\n    logits = logits.float()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total"
    " capacity of 7.64 GiB of which 238.00 MiB is free. Including non-PyTorch memory, this process"
    " has 7.40 GiB memory in use. Of the allocated memory 6.70 GiB is allocated by PyTorch, and"
    " 250.00 MiB is reserved by PyTorch but unallocated.\n"
)
CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
max_seq_length: 1024
output_dir: out/full
per_device_train_batch_size: 2
optim: adamw_torch
learning_rate: 1.0e-5
gradient_accumulation_steps: 32
"""


def simulated(folder: Path, engine: Engine, *, config: str = CONFIG) -> Diagnosis:
    (folder / "crash.log").write_text(LOG, encoding="utf-8")
    (folder / "train.yaml").write_text(config, encoding="utf-8")
    gathered = pipeline.gather(str(folder / "crash.log"), config=[str(folder / "train.yaml")])
    book = pipeline.assemble(gathered)
    rules = pipeline.chosen_rules((), preview=False, select=(), ignore=())
    return with_simulation(pipeline.concluded(gathered, book, rules), book, engine)


@pytest.fixture
def traced(tmp_path: Path) -> Diagnosis:
    return simulated(tmp_path, Simulation(Double(), a_card(8 * GIB)))


def test_the_request_is_named_with_module_and_operator(traced: Diagnosis) -> None:
    first = traced.traced[0]
    assert (first.operator, first.part) == ("aten._to_copy.default", "forward")
    assert first.bytes == 2 * 1024 * 151936 * 4
    assert "In the simulated job the request is that of aten._to_copy.default" in plain(
        page(traced, Theme(), View())
    )


def test_json_lists_the_requests(traced: Diagnosis) -> None:
    listed = as_dict(traced)["traced_requests"]
    assert isinstance(listed, list)
    assert listed[0]["category"] == "logits and loss"


def test_a_diagnosis_without_a_simulation_has_no_such_key() -> None:
    found = pipeline.diagnose(LOG)
    assert "traced_requests" not in as_dict(found)


def test_few_jobs_are_traced(tmp_path: Path) -> None:
    double = Double()
    simulated(tmp_path, Simulation(double, a_card(8 * GIB)))
    assert 1 < len(double.requests) <= 7


def test_an_unknown_job_is_a_note(tmp_path: Path) -> None:
    config = CONFIG.replace("per_device_train_batch_size: 2\n", "")
    double = Double()
    found = simulated(tmp_path, Simulation(double, a_card(8 * GIB)), config=config)
    assert double.requests == []
    assert any("the job was not simulated" in note for note in found.notes)


def test_the_formula_names_no_request(tmp_path: Path) -> None:
    assert simulated(tmp_path, Formula()).traced == ()
