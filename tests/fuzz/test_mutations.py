"""A few hundred mutated logs of all fixtures: each has an answer, and healthy runs stay so.

`benchmarks/mutations.py` runs ten thousand of them and measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json
from oomdoctor.rules import loader
from tests.fuzz.corpus import corpus, healthy
from tests.fuzz.mutations import mutated
from tests.hang import no_hang

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.model.plan import Diagnosis

QUICK = 200
PART = 20
LARGE = (0, 100)
MOST_PROBABILITY = 0.6


@pytest.fixture(scope="module", autouse=True)
def rules_loaded_once() -> Iterator[None]:
    """Load the rules once; this is no test of loading them."""
    held = loader.load_rules()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load_rules", lambda *_given, **_named: held)
        yield


def answer_to(data: bytes, path: Path) -> Diagnosis | None:
    """Return the answer; None where the bytes are no text."""
    path.write_bytes(data)
    try:
        return diagnose(str(path))
    except InputError:
        return None


def faults_of(found: Diagnosis) -> list[str]:
    """Return the notes that tell of a part that failed."""
    to_json(found)
    return [note for note in found.notes if " failed: " in note or "were not derived" in note]


@pytest.mark.parametrize("first", range(0, QUICK, PART))
def test_each_mutated_log_has_an_answer(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + PART):
        if seed in LARGE:
            continue  # a megabyte, below
        made = mutated(seed)
        found = answer_to(made.data, tmp_path / "crash.log")
        if found is None:
            continue
        assert faults_of(found) == [], seed
        if made.healthy:
            ill = [one.cause for one in found.causes if one.probability >= MOST_PROBABILITY]
            assert ill == [], (seed, made.name)


@pytest.mark.parametrize("seed", LARGE)
def test_a_megabyte_that_is_hard_to_read_is_read(seed: int, tmp_path: Path) -> None:
    made = mutated(seed)

    with no_hang():
        found = answer_to(made.data, tmp_path / "crash.log")

    assert len(made.data) >= 990_000
    assert found is not None
    assert faults_of(found) == []


def test_a_seed_gives_the_same_bytes_again() -> None:
    assert mutated(17) == mutated(17)
    assert mutated(17).data != mutated(18).data


def test_most_mutations_differ_from_what_they_are_made_of() -> None:
    texts = {log.text for log in corpus()}
    changed = [seed for seed in range(1, 40) if mutated(seed).data.decode("latin-1") not in texts]

    assert len(changed) >= 30


def test_the_corpus_holds_all_kinds_of_fixtures() -> None:
    kinds = {log.kind for log in corpus()}

    assert {"raw", "cases", "healthy", "joined"} <= kinds
    assert len(healthy()) >= 70


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 200))
def test_very_many_mutated_logs_have_an_answer(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 200):
        made = mutated(seed)
        with no_hang():
            found = answer_to(made.data, tmp_path / "crash.log")
        if found is not None:
            assert faults_of(found) == [], (seed, made.name)
