"""Measure how near the estimates come to what others measured, beside rules of thumb and peers.

    python benchmarks/accuracy.py [--python PYTHON] [--only TEXT] [--peers FOLDER] [--write]
    python benchmarks/accuracy.py --stored [--check] [--page]

`--python` is an interpreter with torch, transformers and peft for the simulation; without it only
formulas speak. `--peers` is a folder of commands of other estimators. `--write` stores what was
said in `fixtures/measured/results.json`, of those records that were asked; `--stored` reads it
instead. `--check` fails where a bound is broken, `--page` lays the tables of `docs/accuracy.md` out
anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.accuracy_page import lay_out, table
from benchmarks.accuracy_summary import broken, summary
from benchmarks.measured import records
from benchmarks.naive import naive
from benchmarks.peers import peers
from benchmarks.predictions import Said, by_formula, simulated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.measured import Record

RESULTS = Path(__file__).resolve().parent.parent / "fixtures" / "measured" / "results.json"


def stored() -> dict[str, Any]:
    """Return what was said of each record, by its name."""
    if not RESULTS.exists():
        return {}
    loaded: dict[str, Any] = json.loads(RESULTS.read_text())
    return loaded["records"]


def store(results: dict[str, Any]) -> None:
    """Write what was said of each record that there is."""
    known = {one.id for one in records()}
    kept = {name: results[name] for name in sorted(results) if name in known}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in kept.items())
    RESULTS.write_text(f'{{"schema": 1, "records": {{\n{lines}\n}}}}\n')


def said(wanted: Sequence[Record], python: str | None, commands: Path | None) -> dict[str, Any]:
    """Ask everybody about records."""
    results: dict[str, Any] = {one.id: dict(_formulas(one, commands)) for one in wanted}
    if python is not None:
        for record, answer in simulated(wanted, python):
            results[record.id]["simulation"] = _plain(answer)
            print(f"{record.id}: {answer.error or _line(record, answer)}", file=sys.stderr)
    return results


def _formulas(record: Record, commands: Path | None) -> Iterator[tuple[str, Any]]:
    answer = by_formula(record)
    if answer is not None:
        yield "formula", _plain(answer)
    if record.job is None or record.point != "peak" or record.value is None:
        return
    if rules := naive(record.job):
        yield "naive", {name: round(value) for name, value in rules.items()}
    others = {} if commands is None else peers(record.job, commands)
    if others:
        yield "peers", {name: round(value) for name, value in others.items()}


def _plain(answer: Said) -> dict[str, Any]:
    return {name: value for name, value in vars(answer).items() if value is not None}


def _line(record: Record, answer: Said) -> str:
    if record.value is None or answer.bytes is None:
        return f"{record.outcome}: {answer.verdict}"
    return f"{record.value / 1e9:.2f} GB, said {answer.bytes / record.value - 1:+.2%}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", type=Path)
    for name in ("--write", "--stored", "--check", "--page"):
        parser.add_argument(name, action="store_true")
    return parser.parse_args()


def main() -> int:
    """Measure, store, print and check."""
    options = _options()
    wanted = [one for one in records() if options.only in one.id]
    found = {} if options.stored else said(wanted, options.python, options.peers)
    results = stored()
    if found:
        for name, answers in found.items():
            results[name] = {**results.get(name, {}), **answers}
        if options.write:
            store(results)
    shown = {one.id: results.get(one.id, {}) for one in wanted}
    print(table(wanted, shown))
    figures = summary(wanted, shown)
    print(json.dumps(figures, indent=1))
    if options.page:
        lay_out(records(), stored())
    faults = broken(figures)
    for fault in faults:
        print(f"BROKEN: {fault}")
    return 1 if options.check and faults else 0


if __name__ == "__main__":
    sys.exit(main())
