"""Hints leave searches out and never change what a search finds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.rules import patterns
from oomdoctor.rules.bundle import patterns_in
from oomdoctor.rules.evaluate import expressions_of
from oomdoctor.rules.hints import analysed, hints_of
from oomdoctor.rules.loader import load_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
OURS = sorted(
    {
        pattern
        for rule in load_rules(preview=True).rules
        for expression in expressions_of(rule)
        for pattern in patterns_in(expression.tree)
    }
)


@pytest.fixture(autouse=True)
def _own_hints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what a test teaches to the test."""
    monkeypatch.setattr(patterns, "_HINTS", {})
    patterns.search.cache_clear()
    yield
    patterns.search.cache_clear()


def searched(pattern: str, text: str) -> tuple[patterns.Hits, patterns.Hits]:
    """Return what a search finds without a hint and with one."""
    without = patterns._searched(pattern, text, 5.0)
    patterns.learn(hints_of([pattern]))
    return without, patterns.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("cross_entropy|log_softmax", (("cross_entropy", "log_softmax"),)),
        ("(?i)Loading (shard|weights)", (("loading shard", "loading weights"),)),
        (r"a\d+bc\.py", (("a",), ("bc.py",))),
        ("ab?c", (("abc", "ac"),)),
        (r"(foo\d|bar\d x)", (("foo", (("bar",), (" x",))),)),
        (r"(?:abc)?\d", ()),
        (r"\w+", ()),
        ("(?:xy)+z", (("xy",), ("z",))),
        (r"(?:NCCL|(?i:fsdp)\d)", (("nccl", "fsdp"),)),
    ],
)
def test_literals_that_a_match_contains_are_found(pattern: str, needs: patterns.Needs) -> None:
    hint = analysed(pattern)

    assert needs == (hint.needs if hint is not None else ())


@pytest.mark.parametrize(
    "pattern",
    ["(?:foo){e<=1}", r"\p{Lu}x", "(?P<a>x)(?&a)", "[[a-z]--[aeiou]]", "(?s:a.b)", "(?|a|b)"],
)
def test_what_only_regex_understands_has_no_hint(pattern: str) -> None:
    assert analysed(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        (r"abc", (1, 0, 0)),
        (r"a[^\n]*b", (1, 1, 0)),
        (r"a\s*b\w+", (1, 1, 1)),
        (r"a.{0,9}b", (10, 0, 0)),
        (r"(a|b|c)\d*", (1, 1, 0)),
        (r"(?![^\n]*x)[^\n]*y", (2, 1, 0)),
    ],
)
def test_steps_are_bounded(pattern: str, steps: tuple[int, ...]) -> None:
    hint = analysed(pattern)

    assert hint is not None
    assert steps == tuple(hint.steps)


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(\w+ )*x", r"(a)\1", r"(?:ab){2,9}c"])
def test_what_could_explode_has_no_bound(pattern: str) -> None:
    hint = analysed(pattern)

    assert hint is None or hint.steps[0] == 0


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?i)kernel", "the \u212aernel log"),  # the sign of kelvin
        ("(?i)loss", "lo\u017fs"),  # the long s
        ("(?i)kill", "K\u0131LL and k\u0130ll"),
        ("(?i)oom|killed", "x\nOOM\n\nKilled by oom\noom\noom"),
        (r"^\s+at", "x\n  \n  at y"),
        (r"a\s+b", "a\n\nb"),
        (r"^b$|c\Z", "a\nb\nc"),
        (r"\bx\b", "ax x-x\nx"),
        (r"a(?!\n)b?", "a\nab"),
    ],
)
def test_a_hint_changes_nothing(pattern: str, text: str) -> None:
    without, given = searched(pattern, text)

    assert without == given


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.rglob("*.log"))[::4], ids=lambda path: path.parent.name
)
def test_no_hint_of_ours_changes_what_is_found(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")[:20_000]
    without = {pattern: patterns._searched(pattern, text, 5.0) for pattern in OURS}

    patterns.learn(hints_of(OURS))

    assert without == {pattern: patterns.search(pattern, text) for pattern in OURS}


def test_a_pattern_whose_literals_are_absent_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patterns.learn(hints_of([r"foo\d+", "bar|baz"]))
    monkeypatch.setattr(patterns, "re", None)
    monkeypatch.setattr(patterns, "compiled", None)

    assert patterns.search(r"foo\d+", "nothing of the kind").lines == ()
    assert patterns.search("bar|baz", "x\na baz").lines == (1,)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(\w+\s?)+:x", "word " * 4000 + ":y"),  # no bound
        (r"\w+\s*=\s*\w+foo", "a" * 20_000 + "= fo foo"),  # a bound that is too high
    ],
)
def test_a_search_that_may_be_long_keeps_its_limit(pattern: str, text: str) -> None:
    patterns.learn(hints_of([pattern]))
    start = time.perf_counter()

    hits = patterns.search(pattern, text, timeout_s=0.05)

    assert hits.timed_out or time.perf_counter() - start < 2
    assert pattern in patterns._STOPPED or not hits.timed_out
