"""A lint run from files to findings: places, unreadable files, keys, files that disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting.book import book_of
from oomdoctor.linting.files import read_file
from oomdoctor.linting.fixing import UNSAFE, fixed
from oomdoctor.linting.jobs import jobs_of
from oomdoctor.linting.run import Wanted, lint

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.lint import LintFinding

HEAD = "model_name_or_path: gpt2\noutput_dir: out\nper_device_train_batch_size: 2\n"
SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("gpt2")
# LoRA config (rank=32) went elsewhere; runs on an A100
args = TrainingArguments(output_dir="o", per_device_train_batch_size=1, num_train_epochs=1)
Trainer(model=model, args=args, train_dataset=rows).train()
"""
BOTH = f"{HEAD}bf16: true  # for speed\nfp16: true\n"


def found(tmp_path: Path, text: str, name: str = "train.yaml") -> list[LintFinding]:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return list(lint([str(path)], Wanted(search=False)).findings)


def test_a_finding_stands_at_the_later_of_two_settings_that_exclude_each_other(
    tmp_path: Path,
) -> None:
    (one,) = [one for one in found(tmp_path, BOTH) if one.rule == "fp16-and-bf16"]
    assert (one.line, one.column, one.key, one.source_line, one.severity.value) == (
        5,
        7,
        "fp16",
        "fp16: true",
        "error",
    )


def test_a_file_that_cannot_be_read_is_a_finding_at_its_place(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "a: [1\nb: 2\n")
    assert (one.rule, one.line, one.severity.value) == ("unreadable-file", 2, "error")


def test_a_file_that_is_nothing_we_know_has_no_dialect_and_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "shopping.yaml"
    path.write_text("milk: 2\nbread: 1\n", "utf-8")
    (file,) = lint([str(path)], Wanted(search=False)).files
    assert (file.dialect, file.findings) == (None, ())


def test_nothing_is_said_about_settings_that_no_framework_we_know_reads(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text("inference:\n  num_workers: 50\n  model: a\n", "utf-8")
    (file,) = lint([str(path)], Wanted(search=False)).files
    assert (file.dialect, file.findings) == (None, ())


def test_a_stated_card_takes_the_place_of_one_that_a_comment_names(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(f"# for a single T4 16GB\n{HEAD}", "utf-8")
    report = lint([str(path)], Wanted(search=False, gpu="RTX 4090"))
    assert [one for one in report.findings if one.rule == "ecc-or-mig-size"] == []


def test_a_card_of_which_only_the_name_is_known_reports_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(HEAD, "utf-8")
    report = lint([str(path)], Wanted(search=False, gpu="T4"))
    assert [one for one in report.findings if one.rule == "ecc-or-mig-size"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# takes 8x A100 40GB at work\ntorchrun t.py\n", "assumed"),
        ("torchrun t.py --lr 1  # for 8x A100 40GB\n", "assumed"),
        ("#SBATCH --gres=gpu:8\ntorchrun t.py\n", "stated"),
    ],
)
def test_what_only_a_comment_says_is_assumed(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "run.sh"
    path.write_text(text, "utf-8")
    (job,) = jobs_of([read_file(str(path))], together=False)
    fact = book_of(job).get("gpu.count")
    assert fact is not None
    assert fact.origin.value == expected


def test_a_comment_adds_no_adapter_to_a_script(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, "utf-8")
    (job,) = jobs_of([read_file(str(path))], together=False)
    book = book_of(job)
    assert book.get("lora.rank") is None
    assert book.value("gpu.name") == "A100"


def test_files_keep_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml"):
        (tmp_path / name).write_text(HEAD, "utf-8")
    paths = [str(tmp_path / "b.yaml"), str(tmp_path / "a.yaml")]
    assert [file.path for file in lint(paths, Wanted(search=False)).files] == paths


def test_two_files_of_a_job_that_disagree_are_told_with_both_places(tmp_path: Path) -> None:
    train, launcher = tmp_path / "train.yaml", tmp_path / "accelerate.yaml"
    train.write_text(f"{HEAD}bf16: true\n", "utf-8")
    launcher.write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: fp16\n",
        "utf-8",
    )
    report = lint([str(train), str(launcher)], Wanted(search=False, together=True))
    (one,) = [one for one in report.findings if one.rule == "settings-disagree"]
    assert (one.path, one.line) == (str(launcher), 3)
    assert one.message == f"The files disagree: train.amp is fp16 here, but bf16 in {train}:4."


def test_a_place_that_a_rule_calls_an_error_is_told_once(tmp_path: Path) -> None:
    train, zero = tmp_path / "train.yaml", tmp_path / "ds.json"
    train.write_text(HEAD, "utf-8")
    zero.write_text(
        '{"train_micro_batch_size_per_gpu": 4,\n "zero_optimization": {"stage": 2}}\n', "utf-8"
    )
    report = lint([str(train), str(zero)], Wanted(search=False, together=True))
    rules = [one.rule for one in report.findings]
    assert "deepspeed-batch-mismatch" in rules
    assert "settings-disagree" not in rules


@pytest.mark.parametrize("name", ["fp16-and-bf16", "COR2001", "cor2"])
def test_rules_are_selected_by_code_start_of_code_or_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(f"{BOTH}lr_scheduler_type: constant\nwarmup_steps: 5\n", "utf-8")
    chosen = lint([str(path)], Wanted(search=False, select=(name,))).findings
    left = lint([str(path)], Wanted(search=False, ignore=(name,))).findings
    assert "fp16-and-bf16" in {one.rule for one in chosen}
    assert "constant-scheduler-ignores-warmup" not in {one.rule for one in chosen}
    assert "fp16-and-bf16" not in {one.rule for one in left}
    assert "constant-scheduler-ignores-warmup" in {one.rule for one in left}


def test_a_rule_without_its_facts_is_named_with_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(HEAD, "utf-8")
    (job,) = lint([str(path)], Wanted(search=False)).jobs
    assert any("gpu.compute_capability" in one.needs for one in job.not_evaluated)


def test_a_fix_changes_the_line_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(BOTH, "utf-8")
    wanted = Wanted(search=False, gpu="A100-80GB", select=("fp16-and-bf16",))
    outcome = fixed([read_file(str(path))], wanted, allowed=UNSAFE)
    assert outcome.after[str(path)] == BOTH.replace("fp16: true\n", "fp16: false\n").replace(
        "bf16: false", "bf16: true"
    )
    assert outcome.report.findings == ()
    assert [one.rule for one in outcome.applied] == ["fp16-and-bf16"]


def test_a_safe_run_leaves_what_changes_the_maths(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(BOTH, "utf-8")
    wanted = Wanted(search=False, gpu="A100-80GB", select=("fp16-and-bf16",))
    outcome = fixed([read_file(str(path))], wanted)
    assert (outcome.changed, outcome.applied) == ((), ())
