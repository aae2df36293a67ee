"""Streams recorded from torch's CUDA code replay to the peaks that torch itself counted."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.memory.stream_json import from_json
from oomdoctor.memory.stream_replay import replay
from tools.stream_jobs import jobs

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "streams"
FILES = sorted(FOLDER.glob("*.json.xz"))
MOST_BYTES = 10 << 20


def name_of(path: Path) -> str:
    return path.name.removesuffix(".json.xz")


def values_of(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return loaded


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_peaks_of_each_phase_are_those_that_torch_counted(path: Path) -> None:
    stream = from_json(values_of(path))
    facts: Any = stream.facts

    played = replay(stream, settings=facts["settings"], capacity_bytes=facts["card"]["total_bytes"])

    peaks = {
        one.name: {"allocated_bytes": one.allocated_bytes, "reserved_bytes": one.reserved_bytes}
        for one in played.phases
    }
    assert facts["peaks"] == peaks
    assert played.failed is None


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_was_refused_while_it_was_recorded(path: Path) -> None:
    said = values_of(path)["facts"]["unmodelled"]

    assert [one for one in said if one.startswith(("calls that failed", "functions"))] == []


def test_there_is_a_recording_of_every_job() -> None:
    assert sorted(jobs()) == sorted(map(name_of, FILES))


def test_a_recorded_job_is_the_one_that_is_described() -> None:
    described = jobs()

    for path in FILES:
        facts = values_of(path)["facts"]
        wanted = described[name_of(path)]
        assert facts["settings"] == wanted.settings
        assert facts["card"]["name"] == wanted.card
        assert facts["job"]["model"]["name"] == wanted.job.model.name
        assert facts["job"]["batch"] == wanted.job.batch


def test_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES


def test_an_allocator_of_other_settings_gives_other_peaks() -> None:
    """So that equal figures mean something."""
    stream = from_json(values_of(FOLDER / "half-bf16.json.xz"))
    facts: Any = stream.facts

    other = replay(stream, settings="roundup_power2_divisions:2")

    peaks = {one.name: one.allocated_bytes for one in other.phases}
    assert peaks != {name: one["allocated_bytes"] for name, one in facts["peaks"].items()}
