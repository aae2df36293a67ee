"""Bundles of runs that leak, or do not, for the tests of `oomdoctor watch`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
GIB = 1 << 30
START = 1_796_000_000.0
CARD = {"type": "cards", "cards": [{"index": 0, "name": "A card", "total_bytes": 16 * GIB}]}


def step(number: int, kept: int, *, peak: int | None = None, host: int = GIB) -> dict[str, Any]:
    return {
        "type": "step",
        "t": START + number / 2,
        "number": number,
        "phase": "train step",
        "allocated_bytes": kept,
        "peak_allocated_bytes": peak or kept + 2 * GIB,
        "reserved_bytes": 4 * GIB,
        "peak_reserved_bytes": 4 * GIB,
        "rss_bytes": host,
    }


def bundle(
    folder: Path, events: list[dict[str, Any]], *, running: bool = False, rank: int | None = None
) -> Path:
    """Write the bundle of a run with one process; the recorder of a running one is this test."""
    made = folder / "20261130-120000-train"
    process = made / "processes" / "4711-1"
    process.mkdir(parents=True)
    run: dict[str, Any] = {"schema": 1, "started": "2026-11-30T00:53:20+00:00"}
    run |= {"recorder": {"pid": os.getpid()}} if running else {"ended": "x", "outcome": "killed"}
    (made / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (made / "samples.jsonl").write_text("", encoding="utf-8")
    lines = [{"pid": 4711, "rank": rank, "t": START, **one} for one in [CARD, *events]]
    text = "".join(json.dumps(one) + "\n" for one in lines)
    (process / "events.jsonl").write_text(text, encoding="utf-8")
    return made


def leaking(count: int = 200) -> list[dict[str, Any]]:
    return [step(number, GIB + 40 * MIB * number) for number in range(1, count + 1)]


def steady(count: int = 200) -> list[dict[str, Any]]:
    return [step(number, GIB) for number in range(1, count + 1)]
