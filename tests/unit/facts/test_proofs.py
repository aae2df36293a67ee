"""What is said of a rule that the real libraries prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts import proofs, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {
    "one-rule": [
        {"test": "a", "claim": "It is so.", "versions": {"torch": "2.13.0", "trl": "1.16.0"}},
        {"test": "b", "claim": "Also so.", "versions": {"torch": "2.13.0", "zeta": "1"}},
    ],
    "two-versions": [
        {"test": "a", "claim": "New.", "versions": {"transformers": "5.24.0"}},
        {"test": "b", "claim": "Old.", "versions": {"transformers": "4.57.1"}},
    ],
}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(proofs, "table", lambda _: ROWS)
    proofs._recorded.cache_clear()
    yield
    proofs._recorded.cache_clear()


@pytest.mark.usefixtures("recorded")
def test_the_line_names_each_library_once_and_what_is_special_first() -> None:
    assert proofs.proof_line("one-rule") == "proven with trl 1.16.0, torch 2.13.0, zeta 1"


@pytest.mark.usefixtures("recorded")
def test_two_versions_of_a_library_are_named_oldest_first() -> None:
    assert proofs.proof_line("two-versions") == "proven with transformers 4.57.1 and 5.24.0"


@pytest.mark.usefixtures("recorded")
def test_a_rule_without_proof_has_no_line() -> None:
    assert proofs.proof_line("no-such-rule") is None
    assert proofs.proofs("no-such-rule") == ()


@pytest.mark.usefixtures("recorded")
def test_proofs_come_with_their_claims_and_tests() -> None:
    found = [(proof.test, proof.claim) for proof in proofs.proofs("one-rule")]

    assert found == [("a", "It is so."), ("b", "Also so.")]


def test_at_least_forty_five_rules_are_proven() -> None:
    assert len(tables.table("proofs")) >= 45
