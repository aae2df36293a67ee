"""All logs under fixtures/, which the mutations begin with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
_SUFFIXES = frozenset((".txt", ".log", ".out", ".err", ".jsonl", ".json", ".yaml", ".py", ".md"))
_OURS = frozenset(("case.yaml", "expected.json", "scorecard.json"))


class Log(NamedTuple):
    """The text of a fixture, and the folder of fixtures/ that it stands in."""

    text: str
    kind: str
    name: str


@cache
def corpus() -> tuple[Log, ...]:
    """Return all logs, tables and configs of raw, cases, healthy, joined and siblings."""
    found = []
    for kind in ("raw", "cases", "healthy", "joined", "siblings"):
        for path in sorted((FIXTURES / kind).rglob("*")):
            if path.is_file() and path.suffix in _SUFFIXES and path.name not in _OURS:
                text = path.read_bytes().decode("utf-8", errors="replace")
                found.append(Log(text, kind, str(path.relative_to(FIXTURES))))
    return tuple(found)


@cache
def healthy() -> tuple[Log, ...]:
    """Return the logs of runs without a failure."""
    return tuple(log for log in corpus() if log.kind == "healthy" and log.text.strip())
