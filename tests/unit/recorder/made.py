"""Bundles that are made up: run.json, messages of processes, samples."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor.recorder.bundle import read_bundle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oomdoctor.recorder.bundle import Run

STARTED = 1_790_000_000.0
MIB, GIB = 1 << 20, 1 << 30


def event(kind: str, at: float, **fields: Any) -> dict[str, Any]:
    """Return a message of a process, so many seconds after the start."""
    return {"t": STARTED + at, "type": kind, "pid": 100, "rank": None, "world": 1, **fields}


def refusal(at: float, **fields: Any) -> dict[str, Any]:
    """Return the message of an allocator that refuses."""
    figures = {
        "device": 0,
        "requested_bytes": 256 * MIB,
        "free_bytes": 100 * MIB,
        "card_bytes": 16 * GIB,
        "allocated_bytes": 15 * GIB,
        "reserved_bytes": 15 * GIB + 4 * MIB,
        "exception": "OutOfMemoryError",
        "frames": [["/work/train.py", "main", 12]],
        "phase": "train step",
        "step": 4,
    }
    return event("oom", at, **{**figures, **fields})


def sample(seconds: float, *processes: dict[str, Any], **host: int) -> dict[str, Any]:
    """Return a look from outside."""
    whole = {"total_bytes": 64 * GIB, "available_bytes": 60 * GIB, **host}
    return {"t": seconds, "host": whole, "processes": list(processes)}


def bundle(
    folder: Path,
    *,
    told: dict[str, Any] | None = None,
    events: dict[str, Sequence[dict[str, Any]]] | None = None,
    samples: Sequence[dict[str, Any]] = (),
    output: str = "",
    kernel: str = "",
) -> Path:
    """Write a bundle and return its folder."""
    folder.mkdir(parents=True)
    said = {
        "schema": 1,
        "id": folder.name,
        "command": ["python", "train.py"],
        "folder": str(folder),
        "started": "2026-09-21T14:13:20.000+00:00",
        **({"ended": "2026-09-21T14:14:20.000+00:00", "seconds": 60.0} if told else {}),
        **(told or {}),
    }
    (folder / "run.json").write_text(json.dumps(said, indent=1), encoding="utf-8")
    (folder / "output.log").write_text(output, encoding="utf-8")
    if kernel:
        (folder / "kernel.log").write_text(kernel, encoding="utf-8")
    (folder / "samples.jsonl").write_text(lines(samples), encoding="utf-8")
    for key, messages in (events or {}).items():
        place = folder / "processes" / key
        place.mkdir(parents=True)
        (place / "events.jsonl").write_text(lines(messages), encoding="utf-8")
    return folder


def lines(messages: Sequence[dict[str, Any]]) -> str:
    """Return messages as a process writes them."""
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in messages)


def run(folder: Path, **given: Any) -> Run:
    """Write a bundle, and read it."""
    return read_bundle(bundle(folder, **given))
