"""Findings and reports made by hand, for tests of what is done with them."""

from __future__ import annotations

from typing import Any

from oomdoctor.model.core import Conflict, Fact, Quote, RuleFault
from oomdoctor.model.enums import Maturity, Origin, Safety, Severity
from oomdoctor.model.lint import (
    FileReport,
    JobReport,
    LintFinding,
    LintReport,
    Suppressed,
    UnderstoodRow,
)
from oomdoctor.model.plan import NotEvaluated, Patch, Prescription, Saving

GIB = 2**30
DIFF = """\
--- a/conf/train.yaml
+++ b/conf/train.yaml
@@ -2,5 +2,4 @@
 base_model: big-model
-fp16: true
 bf16: true
-micro_batch_size: 8
+micro_batch_size: 4
 sequence_len: 4096
"""

FP16 = Quote(artifact="conf/train.yaml", line=3, text="fp16: true", column=1, end_column=11)
BF16 = Quote(artifact="conf/train.yaml", line=4, text="bf16: true", column=1, end_column=11)


def finding(code: str = "COR2001", rule: str = "fp16-and-bf16", **more: Any) -> LintFinding:
    """Return a finding with what tests do not care about filled in."""
    values: dict[str, Any] = {
        "code": code,
        "rule": rule,
        "severity": Severity.ERROR,
        "title": "fp16 and bf16 are both on",
        "message": "fp16 and bf16 are both on, and the Trainer takes only one of them",
        "category": "correctness",
        "maturity": Maturity.STABLE,
        "path": "conf/train.yaml",
        "line": 3,
        "column": 1,
        "end_column": 11,
        "key": "fp16",
    }
    return LintFinding(**(values | more))


def report(*findings: LintFinding, path: str = "conf/train.yaml", **more: Any) -> LintReport:
    """Return a report of one job that is one file."""
    file = FileReport(path=path, dialect="axolotl", findings=findings)
    return LintReport(jobs=(JobReport(files=(file,)),), **more)


def fix() -> Prescription:
    """Return a fix with a patch of a file."""
    patch = Patch(
        dialect="axolotl",
        settings={"fp16": None, "micro_batch_size": 4},
        file="conf/train.yaml",
        diff=DIFF,
    )
    return Prescription(
        fix_id="bf16-alone",
        cause="",
        code="COR2001",
        title="Keep bf16 alone",
        safety=Safety.SAFE,
        patches=(patch,),
        saving=Saving(low_bytes=GIB, likely_bytes=2 * GIB, high_bytes=3 * GIB, formula="batch/2"),
        time_factor=1.05,
        cautions=("Cards before Ampere have no bf16",),
    )


def full() -> LintReport:
    """Return a report in which everything that can be said is said."""
    zero = FileReport(path="conf/ds.json", dialect="deepspeed")
    other = FileReport(path="conf/notes.txt", dialect=None)
    job = JobReport(
        files=(_train(), zero),
        understood=understood(),
        not_evaluated=(
            NotEvaluated(code="MEM1001", needs=("gpu.total",)),
            NotEvaluated(code="MEM1002", needs=("gpu.total", "model.params")),
            NotEvaluated(code="SPD4002", needs=("model.params",)),
            NotEvaluated(code="SPD4003", needs=("gpu.total",)),
        ),
        conflicts=(
            Conflict(
                key="train.micro_batch",
                kept=Fact(key="train.micro_batch", value=8, quotes=(FP16,)),
                dropped=Fact(key="train.micro_batch", value=4, source="ds.json"),
            ),
        ),
    )
    hf = JobReport(files=(other, FileReport(path="hf.yaml", dialect="hf_trainer")))
    return LintReport(
        jobs=(job, hf),
        faults=(RuleFault(code="KEY3999", message="pattern took too long"),),
        notes=("versions: newest known ones were assumed",),
    )


def _train() -> FileReport:
    both = finding(
        quotes=(FP16, BF16),
        fixes=(fix(),),
        source_line="fp16: true  # as before",
        basis="source",
        url="https://example.org/rules/COR2001",
    )
    smoke = finding("QLT5001", "no-eval", line=9, key="eval_steps")
    slow = finding("SPD4001", "slow", line=10, key="x")
    return FileReport(
        path="conf/train.yaml",
        dialect="axolotl",
        findings=(both, _renamed(), _missing()),
        suppressed=(
            Suppressed(finding=smoke, how="comment", reason="a smoke test"),
            Suppressed(finding=slow, how="baseline"),
        ),
        notes=("conf/train.yaml:9: `ignore[QLT9]` holds nothing back: take it away",),
    )


def _renamed() -> LintFinding:
    return finding(
        "KEY3001",
        "evaluation-strategy-renamed",
        severity=Severity.WARNING,
        title="evaluation_strategy was renamed",
        message="`evaluation_strategy` is `eval_strategy` now; 50% of examples still have it",
        category="config",
        line=12,
        column=3,
        end_column=22,
        key="evaluation_strategy",
        source_line="  evaluation_strategy: steps",
        assumed=("transformers 5.24.0 (newest known)",),
        breaks="refused from transformers 4.46",
    )


def _missing() -> LintFinding:
    return finding(
        "QLT5002",
        "no-seed",
        severity=Severity.INFO,
        title="No seed",
        message="no seed is given, so the run cannot be repeated",
        category="quality",
        path=None,
        line=None,
        column=None,
        end_column=None,
        key="seed",
    )


def understood() -> tuple[UnderstoodRow, ...]:
    """Return a job as understood, with one part of its memory unknown."""
    rows = (
        ("job", "model", "big-model: 7,000,000,000 parameters", Origin.STATED, None, None),
        ("job", "effective batch", "16 rows = 8 per device x 2", Origin.DERIVED, None, None),
        ("memory", "weights", "13.04 GiB", Origin.DERIVED, "formula: parameters x 2", 14 * GIB),
        ("memory", "adapters", "0.50 GiB", Origin.DERIVED, "formula: rank x sides x 2", GIB // 2),
        ("memory", "activations", "unknown: needs train.seq_len", Origin.ASSUMED, None, None),
        ("memory", "sum on one card", "at least 14.5 GiB", Origin.DERIVED, None, 14 * GIB + 1),
    )
    return tuple(
        UnderstoodRow(group=group, name=name, text=text, origin=origin, source=source, bytes=size)
        for group, name, text, origin, source, size in rows
    )
