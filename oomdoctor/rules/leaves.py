"""Evaluate one compiled leaf: comparisons that know about rounding, patterns, presence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.model.core import Verdict
from oomdoctor.model.enums import Origin, Truth
from oomdoctor.rules.numbers import Rounded, calculate
from oomdoctor.rules.patterns import MAX_HITS, search
from oomdoctor.rules.truth import combine, negate, truth_of
from oomdoctor.rules.versions import COMPARE, in_range, version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Quote
    from oomdoctor.rules.shape import Tree
    from oomdoctor.rules.versions import VersionKey

Node: TypeAlias = "Tree | str | int | float | bool"


def leaf_verdict(tree: Node, book: FactBook) -> Verdict:
    """Evaluate a compiled boolean expression."""
    if not isinstance(tree, list):
        return Verdict(truth=truth_of(tree))
    head = str(tree[0])
    if head in COMPARE:
        return _compare(head, tree, book)
    evaluate = _FORMS.get(head)
    return _words(head, tree, book) if evaluate is None else evaluate(tree, book)


def _value(tree: list[Node], _book: FactBook) -> Verdict:
    return Verdict(truth=truth_of(tree[1]))


def _not(tree: list[Node], book: FactBook) -> Verdict:
    return negate(leaf_verdict(tree[1], book))


def _all_or_any(tree: list[Node], book: FactBook) -> Verdict:
    absorbing = Truth.FALSE if tree[0] == "and" else Truth.TRUE
    verdicts = []
    for part in tree[1:]:
        verdict = leaf_verdict(part, book)
        verdicts.append(verdict)
        if verdict.truth is absorbing:
            break
    return combine(verdicts, absorbing=absorbing)


def _iff(tree: list[Node], book: FactBook) -> Verdict:
    one, other = leaf_verdict(tree[1], book), leaf_verdict(tree[2], book)
    same = combine((one, other), absorbing=Truth.FALSE)
    if Truth.UNKNOWN in (one.truth, other.truth):
        missing = one.missing | other.missing
        return Verdict(truth=Truth.UNKNOWN, read=same.read, missing=missing)
    truth = truth_of(one.truth is other.truth)
    quotes = tuple(dict.fromkeys((*one.quotes, *other.quotes)))
    return Verdict(truth=truth, read=same.read, quotes=quotes)


def _key(node: Node) -> str:
    return str(node[1]) if isinstance(node, list) else str(node)


def _unknown(*keys: str, read: frozenset[str] | None = None) -> Verdict:
    missing = frozenset(keys)
    return Verdict(truth=Truth.UNKNOWN, read=missing if read is None else read, missing=missing)


def _bool_fact(tree: list[Node], book: FactBook) -> Verdict:
    key = str(tree[1])
    fact = book.get(key)
    if fact is None or not isinstance(fact.value, bool):
        return _unknown(key)
    return Verdict(truth=truth_of(fact.value), read=frozenset((key,)), quotes=fact.quotes)


def _present(tree: list[Node], book: FactBook) -> Verdict:
    """Say whether an input states a fact; only an input read to its end can say no.

    A default that was assumed is no statement.
    """
    from oomdoctor.facts.registry import spec_of

    key = _key(tree[1])
    fact = book.get(key)
    if fact is not None and fact.origin is not Origin.ASSUMED:
        return Verdict(truth=Truth.TRUE, read=frozenset((key,)), quotes=fact.quotes)
    if book.closed.intersection(spec_of(key).closed_by):
        return Verdict(truth=Truth.FALSE, read=frozenset((key,)))
    return _unknown(key)


def _matches(tree: list[Node], book: FactBook) -> Verdict:
    """Search a pattern in a text fact; the verdict quotes the lines that it hits."""
    key, pattern = _key(tree[1]), str(tree[2])
    fact = book.get(key)
    if fact is None or not isinstance(fact.value, str):
        return _unknown(key)
    hits = search(pattern, fact.value)
    if hits.timed_out:
        return _unknown(key)
    read = frozenset((key,))
    if not hits.lines:
        return Verdict(truth=Truth.FALSE, read=read)
    quotes = fact.quotes
    if len(quotes) > 1 and len(quotes) == fact.value.count("\n") + 1:
        quotes = tuple(quotes[line] for line in hits.lines)
    return Verdict(truth=Truth.TRUE, read=read, quotes=quotes[:MAX_HITS])


def timed_out_patterns(tree: Node, book: FactBook) -> Iterator[tuple[str, str]]:
    """Yield (fact key, pattern) of each `matches` whose search on this book was stopped."""
    if not isinstance(tree, list):
        return
    if tree and tree[0] == "matches":
        key, pattern = _key(tree[1]), str(tree[2])
        text = book.value(key)
        if isinstance(text, str) and search(pattern, text).timed_out:
            yield key, pattern
    else:
        for part in tree:
            yield from timed_out_patterns(part, book)


def amount(tree: Node, book: FactBook, missing: set[str]) -> Rounded | None:
    """Evaluate a numeric expression; None adds what it lacks to `missing`."""
    if not isinstance(tree, list):
        return Rounded(tree) if isinstance(tree, (int, float)) else None
    head = str(tree[0])
    if head == "fact":
        return _number_fact(str(tree[1]), book, missing)
    if head == "value":
        return amount(tree[1], book, missing)
    if head == "count":
        return _line_count(_key(tree[1]), book, missing)
    parts = [amount(part, book, missing) for part in tree[1:]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    result = calculate(head, known)
    if result is None:
        missing.update(_keys(tree))
    return result


def _number_fact(key: str, book: FactBook, missing: set[str]) -> Rounded | None:
    fact = book.get(key)
    value = None if fact is None else fact.value
    if fact is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        missing.add(key)
        return None
    if isinstance(value, float) and not math.isfinite(value):
        missing.add(key)
        return None
    return Rounded(value, fact.slack)


def _line_count(key: str, book: FactBook, missing: set[str]) -> Rounded | None:
    text = book.value(key)
    if not isinstance(text, str):
        missing.add(key)
        return None
    return Rounded(len(text.splitlines()))


def _keys(tree: Node) -> list[str]:
    if not isinstance(tree, list):
        return []
    if tree and tree[0] == "fact":
        return [str(tree[1])]
    return [key for part in tree if isinstance(part, list) for key in _keys(part)]


def _quotes(keys: tuple[str, ...], book: FactBook) -> tuple[Quote, ...]:
    facts = (book.get(key) for key in keys)
    return tuple(dict.fromkeys(quote for fact in facts if fact for quote in fact.quotes[:MAX_HITS]))


def _compare(op: str, tree: list[Node], book: FactBook) -> Verdict:
    """Compare two numbers; a difference within their rounding decides nothing."""
    keys = tuple(_keys(tree))
    read = frozenset(keys)
    missing: set[str] = set()
    left, right = amount(tree[1], book, missing), amount(tree[2], book, missing)
    if left is None or right is None:
        return _unknown(*missing, read=read)
    slack = left.slack + right.slack
    try:
        within = slack > 0 and abs(left.value - right.value) <= slack
    except OverflowError:
        return _unknown(*keys, read=read)
    if within:
        rounded = [key for key in keys if (fact := book.get(key)) and fact.slack]
        return Verdict(
            truth=Truth.UNKNOWN,
            read=read,
            missing=frozenset(rounded or keys),
            quotes=_quotes(keys, book),
        )
    truth = truth_of(COMPARE[op](left.value, right.value))
    return Verdict(truth=truth, read=read, quotes=_quotes(keys, book))


def _words(head: str, tree: list[Node], book: FactBook) -> Verdict:
    """Compare texts, choices and versions."""
    keys = tuple(_keys(tree))
    read = frozenset(keys)
    words = [_word(part, book) for part in tree[1:]]
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        absent = [key for key in keys if not isinstance(book.value(key), str)]
        return _unknown(*absent, read=read)
    if head == "same":
        truth = truth_of(known[0] == known[1])
    elif head == "one_of":
        truth = truth_of(known[0] in known[1:])
    else:
        held = _version_truth(head, known)
        if held is None:
            return _unknown(*keys, read=read)
        truth = truth_of(held)
    return Verdict(truth=truth, read=read, quotes=_quotes(keys, book))


def _word(node: Node, book: FactBook) -> str | None:
    if isinstance(node, list):
        value = book.value(_key(node))
        return value if isinstance(value, str) else None
    return str(node)


def _version_truth(head: str, words: list[str]) -> bool | None:
    """Decide a version comparison or range; None where a fact's text is no version."""
    version = version_key(words[0])
    if version is None:
        return None
    if head == "in_range":
        return in_range(version, words[1])
    other: VersionKey | None = version_key(words[1])
    return None if other is None else COMPARE[head.removeprefix("version")](version, other)


_FORMS: Mapping[str, Callable[[list[Node], FactBook], Verdict]] = {
    "fact": _bool_fact,
    "value": _value,
    "not": _not,
    "and": _all_or_any,
    "or": _all_or_any,
    "iff": _iff,
    "matches": _matches,
    "present": _present,
}
