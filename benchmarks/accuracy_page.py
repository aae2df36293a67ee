"""The tables of accuracy: for the terminal, and those in `docs/accuracy.md` between their marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.accuracy_bands import spreads
from benchmarks.accuracy_summary import error_of, groups, summary
from benchmarks.measured import aside
from benchmarks.naive import NAMES as RULES
from benchmarks.peers import NAMES as PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.measured import Record

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
GIB = 1 << 30
NONE = "-"


def table(wanted: Sequence[Record], results: Mapping[str, Any]) -> str:
    """Return the records as lines of text."""
    return "\n".join(_rows(wanted, results))


def lay_out(wanted: Sequence[Record], results: Mapping[str, Any]) -> None:
    """Write the tables of the page anew; the prose around them stays."""
    text = PAGE.read_text()
    for name, lines in pieces(wanted, results).items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{lines}\n{end}{after}"
    PAGE.write_text(text)


def pieces(wanted: Sequence[Record], results: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each table of the page."""
    shown = {one.id: results.get(one.id, {}) for one in wanted}
    return {
        "summary": "\n".join(_summary(wanted, shown)),
        "sources": "\n".join(_sources(wanted, shown)),
        "bands": "\n".join(_bands(wanted, shown)),
        "edges": _edges(wanted, shown),
        "records": "\n".join(_rows(wanted, shown)),
        "verdicts": "\n".join(_verdicts(wanted, shown)),
        "not comparable": "\n".join(_others(wanted)),
        "set aside": "\n".join(_aside()),
    }


def _summary(wanted: Sequence[Record], results: Mapping[str, Any]) -> Iterator[str]:
    yield "| says | records | median | 90 % within | too low by more than 10 % |"
    yield "|---|---|---|---|---|"
    for name, one in summary(wanted, results).items():
        if one["records"]:
            yield (
                f"| {name} | {one['records']} | {one['median']:.1%} | {one['p90']:.1%} |"
                f" {one['too low']:.0%} |"
            )


def _sources(wanted: Sequence[Record], results: Mapping[str, Any]) -> Iterator[str]:
    yield "| source and quantity | traced | records | median | worst |"
    yield "|---|---|---|---|---|"
    for name, one in groups(wanted, results).items():
        yield f"| {name} | {one['records']} | {one['median']:.2%} | {one['worst']:+.1%} |"


def _edges(wanted: Sequence[Record], results: Mapping[str, Any]) -> str:
    one = summary(wanted, results)["simulation"]
    return (
        f"The simulation was right in {one.get('edges right', 0)} of these {one.get('edges', 0)};"
        f" with the measured runs, mostly far from the edge, in {one.get('right', 0):.0%} of"
        f" {one.get('thresholds', 0)}, and {one.get('tight', 0):.0%} of those were *tight*."
    )


def _bands(wanted: Sequence[Record], results: Mapping[str, Any]) -> Iterator[str]:
    said = {
        "off": "allocated, either side",
        "up": "reserved, more was needed",
        "down": "reserved, less was needed",
    }
    yield "| says | of what is | records | 95 % within | worst | share |"
    yield "|---|---|---|---|---|---|"
    for engine, found in spreads(wanted, results).items():
        for name, one in found.items():
            yield (
                f"| {engine} | {said[name]} | {one.records} | {one.covered:.1%} |"
                f" {one.worst:.1%} | {one.share:.0%} |"
            )


def _rows(wanted: Iterable[Record], results: Mapping[str, Any]) -> Iterator[str]:
    best = (*RULES, *PEERS)
    yield f"| record | measured (GiB) | of | simulation | formula | {' | '.join(best)} |"
    yield "|---|---|---|---|---|" + "---|" * len(best)
    for one in wanted:
        if one.value is None:
            continue
        answers = results[one.id]
        others = {**answers.get("naive", {}), **answers.get("peers", {})}
        cells = [
            _error(one, answers.get("simulation", {}).get("bytes"), "+.1%"),
            _error(one, answers.get("formula", {}).get("bytes"), "+.1%"),
            *(_error(one, others.get(name), "+.0%") for name in best),
        ]
        mark = "" if one.comparable else " *"
        what = one.quantity if one.point == "peak" else f"{one.quantity}, {one.point}"
        yield f"| {one.id}{mark} | {one.value / GIB:.2f} | {what} | {' | '.join(cells)} |"


def _error(record: Record, figure: float | None, form: str) -> str:
    off = error_of(record, figure)
    return NONE if off is None else format(off, form)


def _verdicts(wanted: Iterable[Record], results: Mapping[str, Any]) -> Iterator[str]:
    yield "| record | card | what happened | simulation | formula |"
    yield "|---|---|---|---|---|"
    for one in wanted:
        if one.value is not None:
            continue
        words = [_words(results[one.id].get(engine, {})) for engine in ("simulation", "formula")]
        happened = "the longest that fitted" if one.outcome == "max" else one.outcome
        yield f"| {one.id} | {one.card} | {happened} | {' | '.join(words)} |"


def _words(answer: Mapping[str, str]) -> str:
    word = answer.get("verdict", NONE)
    return f"{word}, {answer['longer']} where longer" if "longer" in answer else word


def _others(wanted: Iterable[Record]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in wanted:
        if one.why is not None:
            reasons.setdefault(one.why, []).append(one.id)
    for why, names in reasons.items():
        yield f"- {', '.join(names)}: {why}."


def _aside() -> Iterator[str]:
    reasons: dict[str, int] = {}
    for why in aside().values():
        reasons[why] = reasons.get(why, 0) + 1
    for why, count in reasons.items():
        yield f"- {count}: {why}."
