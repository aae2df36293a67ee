"""Whether a job fits once a fix is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.memory import bands
from oomdoctor.model.enums import Safety
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.plan import Patch, Prescription
from oomdoctor.pipeline import assemble, diagnose, gather
from oomdoctor.reason.after import Changed, changed_jobs, judged
from oomdoctor.record import replace

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
JOB = Job(model=ModelSpec(name="m", config={}, source=""), batch=8)
LOG = """\
  File "/x/torch/optim/adamw.py", line 243, in step
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity
 of 23.64 GiB of which 38.00 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB
 memory in use. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 250.00 MiB is
 reserved by PyTorch but unallocated.
""".replace("\n ", " ")
CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-1.5B
torch_dtype: float32
max_seq_length: 512
output_dir: out/full
per_device_train_batch_size: 1
gradient_checkpointing: true
bf16: true
optim: adamw_torch
learning_rate: 1.0e-5
gradient_accumulation_steps: 32
num_train_epochs: 1
"""


def fix(name: str, settings: dict[str, object]) -> Prescription:
    return Prescription(
        fix_id=name,
        cause="c",
        code="ACT2001",
        title=name,
        safety=Safety.SAFE,
        patches=(Patch(dialect="hf_trainer", settings=settings),),
    )


def verdicts(peaks: dict[int, float], *, least: float = 0.0) -> dict[str, bool | None]:
    """Judge fixes that change the batch; `peaks` are GiB by batch, 24 GiB are to be had."""
    after = {str(batch): replace(JOB, batch=batch) for batch in peaks if batch != JOB.batch}
    changed = Changed(JOB, 24 * GIB, int(least * GIB), after)
    fixes = [fix(name, {}) for name in after]
    found = judged(fixes, changed, lambda job: int(peaks[job.batch] * GIB), bands.FORMULA)
    return {one.fix_id: one.sufficient for one in found}


def test_a_fix_suffices_fails_or_stays_open_by_the_peak_after_it() -> None:
    assert verdicts({8: 40, 4: 10, 2: 24, 1: 30}) == {"4": True, "2": None, "1": False}


def test_nothing_is_said_where_the_formula_lets_the_job_fit() -> None:
    assert verdicts({8: 12, 4: 6}) == {"4": None}


def test_a_formula_below_what_the_failure_proves_is_raised_to_it() -> None:
    assert verdicts({8: 12, 4: 8}, least=23) == {"4": True}
    assert verdicts({8: 12, 4: 11.5}, least=26) == {"4": None}


def a_log(folder: Path, *, config: str = CONFIG) -> tuple[str, str]:
    (folder / "crash.log").write_text(LOG, encoding="utf-8")
    (folder / "train.yaml").write_text(config, encoding="utf-8")
    return str(folder / "crash.log"), str(folder / "train.yaml")


def test_fixes_of_a_known_job_say_whether_they_suffice(tmp_path: Path) -> None:
    log, config = a_log(tmp_path)
    found = diagnose(log, config=[config])
    said = {one.fix_id: one.sufficient for one in found.prescriptions}
    assert said["train-an-adapter"] is True
    assert not any("no peak" in note for note in found.notes)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG.replace("per_device_train_batch_size: 1\n", ""),
        CONFIG.replace("Qwen/Qwen2.5-1.5B", "/models/ours"),
        CONFIG + "torch_compile: true\n",
    ],
    ids=["no batch", "no model", "compiled"],
)
def test_a_job_that_is_not_known_says_nothing(tmp_path: Path, config: str) -> None:
    log, path = a_log(tmp_path, config=config)
    found = diagnose(log, config=[path])
    assert {one.sufficient for one in found.prescriptions} <= {None, False}


def test_a_fix_that_a_job_is_not_described_by_stays_open(tmp_path: Path) -> None:
    log, path = a_log(tmp_path)
    book = assemble(gather(log, config=[path]))
    fixes = [fix("same", {"logging_steps": 5}), fix("other", {"optim": "adamw_8bit"})]
    changed = changed_jobs(fixes, book)
    assert changed is not None
    assert list(changed.after) == ["other"]
    assert changed.after["other"].optimizer != changed.job.optimizer
    assert changed.least == round(22.9 * GIB) + 100 * (1 << 20)


def test_a_request_of_whole_logits_tells_the_loss(tmp_path: Path) -> None:
    message = LOG.partition("\n")[2].replace("100.00 MiB", "1.16 GiB")
    frame = '  File "/x/transformers/loss/loss_utils.py", line 40, in ForCausalLMLoss\n'
    head = f"Traceback (most recent call last):\n{frame}    logits = logits.float()\n"
    log = head + message
    config = CONFIG.replace("max_seq_length: 512", "max_seq_length: 1024").replace(
        "per_device_train_batch_size: 1", "per_device_train_batch_size: 2"
    )
    (tmp_path / "crash.log").write_text(log, encoding="utf-8")
    (tmp_path / "train.yaml").write_text(config, encoding="utf-8")
    book = assemble(gather(str(tmp_path / "crash.log"), config=[str(tmp_path / "train.yaml")]))
    changed = changed_jobs([fix("fused", {"use_liger_kernel": True})], book)
    assert changed is not None
    assert changed.job.loss == "full-logits"
    assert changed.after["fused"].loss == "fused"
