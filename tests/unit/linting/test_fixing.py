"""Fixes are applied until nothing more changes; a second run finds nothing to do."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting.files import read_file
from oomdoctor.linting.fixing import UNSAFE, Fixed, fixed
from oomdoctor.linting.run import Wanted

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "model_name_or_path: gpt2\noutput_dir: out\nper_device_train_batch_size: 64\nbf16: true\n"
RULE = """\
schema: 1
code: QLT5999
name: {name}
title: The batch is large
severity: warning
maturity: stable
since: 0.1.0
category: quality
basis: arithmetic
source: Made for a test.
says: "{{train.micro_batch}} rows are many"
when: {when}
fixes:
  - id: smaller
    title: Take fewer
    safety: changes-math
    advice: Take fewer rows.
    patch:
      hf_trainer:
        per_device_train_batch_size: {value}
why: It is a test.
references: [https://example.org]
known_problems: None.
tests:
  - {{name: a, expect: match, facts: {{train.micro_batch: 64}}}}
"""
DOES_NOT_END = RULE.format(
    name="batch-never-small",
    when="train.micro_batch > 1",
    value="'= max(1, train.micro_batch // 2)'",
)
CURES = RULE.format(name="batch-large", when="train.micro_batch > 8", value="8")


def run(tmp_path: Path, rule: str, text: str = TEXT) -> Fixed:
    rules = tmp_path / "rules"
    rules.mkdir(exist_ok=True)
    (rules / "QLT5999-x.yaml").write_text(rule, "utf-8")
    path = tmp_path / "train.yaml"
    path.write_text(text, "utf-8")
    wanted = Wanted(search=False, rules=(str(rules),), select=("QLT5999",))
    return fixed([read_file(str(path))], wanted, allowed=UNSAFE)


def test_a_fix_that_cures_is_applied_once(tmp_path: Path) -> None:
    outcome = run(tmp_path, CURES)

    assert [one.title for one in outcome.applied] == ["Take fewer"]
    assert list(outcome.after.values()) == [TEXT.replace(": 64", ": 8")]


def test_a_fix_that_would_go_on_for_ever_is_not_applied(tmp_path: Path) -> None:
    outcome = run(tmp_path, DOES_NOT_END)

    assert (outcome.changed, outcome.applied) == ((), ())
    assert [one.code for one in outcome.report.findings] == ["QLT5999"]


def test_a_patch_starts_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(tmp_path, CURES).diff.startswith("--- a/train.yaml\n+++ b/train.yaml\n")


@pytest.mark.parametrize(
    "name",
    ["a b.yaml", "-a.yaml", "a\nb.yaml", 'a"b\\c.yaml', "é.yaml", "a\udcff.yaml", "\x1b[31m.yaml"],
)
def test_a_patch_applies_to_files_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("needs patch")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes((TEXT + "fp16: true\n").replace("\n", "\r\n").encode())
    wanted = Wanted(search=False, select=("fp16-and-bf16",))
    outcome = fixed([read_file(name)], wanted, allowed=UNSAFE)
    diff = outcome.diff.encode("utf-8", errors="surrogateescape")

    subprocess.run([patch, "-p1", "-s"], input=diff, check=True)

    assert path.read_bytes() == outcome.after[name].encode()
    assert b"fp16: false" in path.read_bytes()
