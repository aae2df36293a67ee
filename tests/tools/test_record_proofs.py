"""The record of what the real libraries prove: what a test needs, what is kept, what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tools import record_proofs
from tools.record_proofs import Module, Proving, merged

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = '''
"""A file of proofs."""
import pytest
from tests.proofs.proving import proves

torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")
datasets = pytest.importorskip("datasets")


def adapted(model):
    return peft.get_peft_model(model)


@proves("a-rule", "another-rule")
def test_one() -> None:
    """It holds,
    as claimed."""
    adapted(None)
    datasets.load()


@proves("a-rule")
def test_two() -> None:
    """It holds."""
    torch.ones(1)


def test_no_proof() -> None:
    torch.ones(1)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    monkeypatch.setattr(record_proofs, "ROOT", tmp_path)
    file = tmp_path / "test_sample.py"
    file.write_text(SOURCE, encoding="utf-8")
    return Module(file)


def test_a_test_needs_the_libraries_that_it_and_its_helpers_use(module: Module) -> None:
    one, two = module.tests()

    assert (frozenset({"peft"}), frozenset({"torch"})) == (one.libraries, two.libraries)


def test_the_docstring_is_the_claim_and_the_decorator_names_the_rules(module: Module) -> None:
    one, _ = module.tests()

    assert (one.name, one.rules) == ("test_sample.py::test_one", ("a-rule", "another-rule"))
    assert one.claim == "It holds, as claimed."


def row(test: str, claim: str = "old") -> dict[str, object]:
    return {"test": test, "versions": {"torch": "1.0"}, "claim": claim}


def proof(name: str) -> Proving:
    return Proving(name, ("a-rule",), "new", frozenset())


def test_a_test_that_did_not_run_keeps_its_record_and_one_that_is_gone_loses_it() -> None:
    old = {"a-rule": [row("stays"), row("gone")], "other": [row("gone")]}

    table = merged(old, [proof("stays")], {})

    assert table == {"a-rule": [row("stays")]}


def test_a_test_that_fails_loses_its_record_and_one_that_passes_gets_a_new_one() -> None:
    old = {"a-rule": [row("fails"), row("passes")]}

    table = merged(old, [proof("fails"), proof("passes")], {"fails": False, "passes": True})

    assert table == {"a-rule": [{"test": "passes", "versions": {}, "claim": "new"}]}


def test_every_recorded_proof_is_a_test_of_that_rule() -> None:
    table = json.loads(record_proofs.TABLE.read_text(encoding="utf-8"))
    there = {(rule, test.name) for test in record_proofs.all_tests() for rule in test.rules}

    recorded = {(rule, str(entry["test"])) for rule, rows in table.items() for entry in rows}

    assert recorded - there == set()


def test_every_proof_is_recorded_with_its_claim_and_versions() -> None:
    table = json.loads(record_proofs.TABLE.read_text(encoding="utf-8"))
    rows = {(rule, str(entry["test"])): entry for rule in table for entry in table[rule]}

    for test in record_proofs.all_tests():
        for rule in test.rules:
            assert (rule, test.name) in rows, "python tools/record_proofs.py records it"
            assert test.claim == rows[rule, test.name]["claim"]
            assert test.libraries == set(rows[rule, test.name]["versions"])


def test_a_claim_is_one_sentence() -> None:
    bad = [test.name for test in record_proofs.all_tests() if not test.claim.endswith(".")]

    assert bad == []
