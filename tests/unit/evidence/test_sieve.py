"""The few literals that a large log is looked through for find what the readers can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.evidence import sieve
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.source import read_source
from tests.unit.evidence.torch_oom_table import CASES

FIXTURES = Path(__file__).parents[3] / "fixtures"
NEAR = 8
"""What stands so many lines from a sign is kept with it, whatever its words."""

BESIDE = frozenset({b"outofmemory", b"outofresource", b"outofdevicememory"})
"""Names that an `Error` follows, or the module `errors` comes before."""

SMALL_TABLES = frozenset({"sacct_parsable.txt", "sacct.txt", "evicted.txt"})
"""Answers of a job manager to a question: nobody gets megabytes of them."""


def logs() -> list[Path]:
    found = [*FIXTURES.glob("raw/**/*.txt"), *FIXTURES.glob("cases/*/*.log")]
    return sorted(path for path in found if path.name not in SMALL_TABLES)


def test_there_are_fixtures_to_look_through() -> None:
    assert len(logs()) > 50


@pytest.mark.parametrize("path", logs(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_failure_that_a_reader_knows_stands_beside_a_sign(path: Path) -> None:
    source = read_source(str(path))
    lines = dict(source.lines)

    unseen = [
        lines[failure.order]
        for failure in read_all(clean(source)).failures
        if failure.kind != "other"
        # a counter and a table of trials stand at the end of a log, which is read anyway
        and not failure.indirect
        and not sieve.hits_in(_around(lines, failure.order))
    ]

    assert unseen == []


def _around(lines: dict[int, str], number: int) -> bytes:
    near = range(number - NEAR, number + NEAR + 1)
    return "".join(lines.get(at, "") + "\n" for at in near).encode("utf-8", "replace")


@pytest.mark.parametrize("name", CASES)
def test_every_message_of_the_allocators_is_a_plain_sign(name: str) -> None:
    path = FIXTURES / "raw" / "torch_oom" / f"{name}.txt"
    source = read_source(str(path))
    failures = read_all(clean(source)).failures

    assert failures == () or any(hit.strong for hit in sieve.hits_in(source.text.encode()))


def test_a_failure_literal_holds_the_short_one_that_finds_it_within_reach() -> None:
    for anchor, literals in sieve.STRONG.items():
        for literal in literals:
            assert anchor.strip() in literal or literal in BESIDE
            assert len(literal) < sieve.REACH


@pytest.mark.parametrize(
    ("text", "literal", "strong"),
    [
        (b"CUDA OUT OF MEMORY", b"out of memory", True),
        (b"RESOURCE_EXHAUSTED: 4G", b"resource_exhausted", True),
        (b"a.sh: line 3:  77 Killed       python a.py", b"killed   ", True),
        (b"\nKilled\n", b"\nkilled\n", True),
        (b"3 processes killed", b"kill", False),
        (b"ValueError: bad shape", b"error", False),
    ],
)
def test_a_sign_is_found_in_any_case_and_weighed(text: bytes, literal: bytes, strong: bool) -> None:
    assert (literal, strong) in [(hit.literal, hit.strong) for hit in sieve.hits_in(text)]


def test_ordinary_lines_have_no_sign() -> None:
    assert sieve.hits_in(b"{'loss': 0.1} memory/max_mem_active: 3.2 step 5 of 10\n" * 99) == []


def test_a_literal_on_every_line_hides_no_failure_and_yields_few_places() -> None:
    noise = b"killed workers: 0, mean error 0.5, failures 0\n" * 500
    hits = sieve.hits_in(noise + b"Out of memory: Killed process 7 (python)\n" + noise)

    strong = {hit.literal for hit in hits if hit.strong}
    assert {b"killed process", b"out of memory"} == strong
    assert len(hits) < 20


def test_the_c_library_finds_what_python_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [path.read_bytes() for path in logs()] + [b"a\x00 ERROR", b"err\x00or", b""]
    found = [sieve.present_in(text) for text in texts]
    monkeypatch.setattr(sieve, "_memmem", lambda: None)

    assert [sieve.present_in(text) for text in texts] == found


def test_hyperscan_finds_what_the_standard_library_finds() -> None:
    pytest.importorskip("hyperscan")
    scan = sieve.scanner()
    for path in logs():
        data = path.read_bytes()
        assert sorted(scan(data)) == sorted(sieve.present_in(data))
