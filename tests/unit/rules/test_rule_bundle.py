"""The bundle holds what the YAML files say, and edits since then are noticed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from oomdoctor.errors import RuleError, UsageError
from oomdoctor.rules import bundle
from oomdoctor.rules.loader import load_rules
from oomdoctor.rules.source import read_rule_file

ROOT = Path(__file__).resolve().parents[3]
GOOD = ROOT / "fixtures" / "bad_rules" / "good.yaml"


def add_rule(home: Path, code: str = "ALC3900", **changes: str) -> Path:
    text = GOOD.read_text(encoding="utf-8").replace("ALC3900", code)
    for old, new in changes.items():
        text = text.replace(old, new)
    path = home / "ALC3" / f"{code}-cache-in-pieces.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A rules directory with one rule and the real vocabulary."""
    directory = tmp_path / "rules"
    directory.mkdir()
    for name in (bundle.CAUSES, bundle.PRIORS):
        shutil.copy(ROOT / "rules" / name, directory / name)
    add_rule(directory)
    return directory


def edit(path: Path, old: str, new: str) -> None:
    """Edit a file so that its time stamp is later than the bundle's."""
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    later = path.stat().st_mtime + 5
    os.utime(path, (later, later))


def test_a_rule_comes_out_of_the_bundle_as_it_went_in(home: Path) -> None:
    bundle.write(home)
    (path,) = bundle.rule_files(home)
    compiled = read_rule_file(path).rule
    assert compiled is not None

    (loaded,) = load_rules(directory=home).rules

    for name in type(compiled).__slots__:
        if name != "path":
            assert getattr(compiled, name) == getattr(loaded, name), name
    assert loaded.path == "ALC3/ALC3900-cache-in-pieces.yaml"


def test_fixes_of_the_bundle_behave_as_a_sequence(home: Path) -> None:
    bundle.write(home)
    (loaded,) = load_rules(directory=home).rules

    assert [fix.id for fix in loaded.fixes] == ["expandable-segments"]
    assert (1, loaded.fixes[0]) == (len(loaded.fixes), loaded.fixes[:1][0])


def test_the_vocabulary_comes_out_of_the_bundle_as_it_went_in(home: Path) -> None:
    bundle.write(home)

    assert bundle.read_causes(home) == load_rules(directory=home).causes


def test_equal_rules_give_equal_bundles(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(home, copy)

    assert bundle.bundle_text(home) == bundle.bundle_text(copy)


def test_a_bundle_is_current_until_a_rule_is_edited(home: Path) -> None:
    path = bundle.rule_files(home)[0]
    bundle.write(home)
    fresh = bundle.is_current(home)

    edit(path, "in pieces", "in shreds")

    assert (fresh, bundle.is_current(home)) == (True, False)


def test_a_broken_rule_cannot_be_bundled(home: Path) -> None:
    add_rule(home, "ALC3901", **{"severity: error": "severity: bad"})

    with pytest.raises(RuleError, match="unknown 'bad'"):
        bundle.build(home)


def test_rules_load_without_a_bundle(home: Path) -> None:
    assert [rule.code for rule in load_rules(directory=home).rules] == ["ALC3900"]


@pytest.mark.parametrize("new", ["in shreds", "in pieces!"])
def test_an_edited_rule_is_in_force_at_once(home: Path, new: str) -> None:
    bundle.write(home)

    edit(bundle.rule_files(home)[0], "in pieces", new)

    assert [f"The cache is {new}"] == [rule.title for rule in load_rules(directory=home).rules]


def test_new_and_deleted_rules_are_noticed(home: Path) -> None:
    bundle.write(home)
    bundle.rule_files(home)[0].unlink()
    add_rule(home, "ALC3901")

    assert [rule.code for rule in load_rules(directory=home).rules] == ["ALC3901"]


def test_a_vocabulary_that_was_edited_is_in_force_at_once(home: Path) -> None:
    bundle.write(home)

    edit(home / bundle.PRIORS, "fragmentation: {prior: ", "fragmentation: {prior: 0.77, was: ")

    assert load_rules(directory=home).causes["fragmentation"].prior == 0.77


def test_an_installed_bundle_needs_no_yaml(home: Path) -> None:
    bundle.write(home)
    shutil.rmtree(home / "ALC3")
    for name in (bundle.CAUSES, bundle.PRIORS):
        (home / name).unlink()

    assert [rule.code for rule in load_rules(directory=home).rules] == ["ALC3900"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 0}'])
def test_a_bundle_that_cannot_be_used_is_passed_over(home: Path, content: str) -> None:
    (home / bundle.BUNDLE).write_text(content, encoding="utf-8")

    assert [rule.code for rule in load_rules(directory=home).rules] == ["ALC3900"]


def test_a_broken_rule_is_a_fault_with_its_place_and_the_others_stay(home: Path) -> None:
    broken = add_rule(home, "ALC3901", **{"oom.backend in": "oom.backend on"})

    ruleset = load_rules(directory=home)

    assert [rule.code for rule in ruleset.rules] == ["ALC3900"]
    ((code, message),) = ruleset.faults
    assert code == "ALC3901"
    assert message.startswith(f"{broken}:13:19: syntax error")


def test_a_rule_for_an_unknown_cause_is_a_fault(home: Path) -> None:
    add_rule(home, "ALC3901", **{"cause: fragmentation": "cause: bad-luck"})

    ruleset = load_rules(directory=home)

    assert ruleset.faults[0][0] == "ALC3901"
    assert "'bad-luck' is not in causes.yaml" in ruleset.faults[0][1]


def test_a_users_rule_replaces_the_one_with_its_code(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    add_rule(own, **{"The cache is in pieces": "Mine"})

    assert [rule.title for rule in load_rules([str(own)], directory=home).rules] == ["Mine"]


def test_a_users_directory_that_is_not_there_is_said(home: Path) -> None:
    with pytest.raises(UsageError, match="no rules at"):
        load_rules(["/nowhere/at/all"], directory=home)


@pytest.mark.parametrize(
    ("maturity", "preview", "speaks"),
    [("sandbox", False, 0), ("sandbox", True, 1), ("stable", False, 1), ("deprecated", True, 0)],
)
def test_maturity_decides_who_speaks(home: Path, maturity: str, preview: bool, speaks: int) -> None:
    add_rule(home, **{"maturity: incubating": f"maturity: {maturity}"})

    assert speaks == len(load_rules(directory=home, preview=preview).rules)


def test_loading_a_bundle_reads_no_yaml(home: Path, run_python: object) -> None:
    bundle.write(home)
    code = (
        "import sys, pathlib; from oomdoctor.rules.loader import load_rules;"
        f"load_rules(directory=pathlib.Path({str(home)!r}));"
        "print(sorted({'yaml', 'regex', 'difflib', 'oomdoctor.rules.language'} & set(sys.modules)))"
    )

    result = run_python("-c", code)  # type: ignore[operator] - a fixture of conftest

    assert result.stdout.strip() == b"[]", result.stderr
