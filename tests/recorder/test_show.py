"""Runs are listed, opened again in every format, shared, diagnosed anew, and deleted."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import jsonschema
import pytest

from tests.conftest import ROOT
from tests.recorder.running import environment
from tests.unit.recorder.made import GIB, MIB, bundle, event, refusal, sample

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
OLDER, NEWER = "20260101-120000-train", "20260102-120000-train"
FAILED = {"exit_code": 1, "kernel_kills": {"on_machine": 0, "in_group": 0}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two runs: one that succeeded, and a later one that ran out of memory."""
    runs = tmp_path / ".oomdoctor" / "runs"
    told = {"exit_code": 0, "outcome": "succeeded", "peak_bytes": 3 * GIB}
    phases = [
        event("phase", 4, phase="load", seconds=4.0, peak_allocated_bytes=GIB),
        event("phase", 9, phase="train step", seconds=5.0, peak_allocated_bytes=2 * GIB),
    ]
    bundle(runs / OLDER, told=told, events={"100-1": phases}, samples=[sample(1, {"pid": 100})])
    steps = [event("step", at, number=at, allocated_bytes=GIB, phase="train step") for at in (1, 2)]
    bundle(
        runs / NEWER,
        told={**FAILED, "outcome": "out-of-device-memory", "cause": "batch-or-seq-too-large"},
        events={"100-1": [*steps, refusal(5, step=2)]},
        output="Traceback (most recent call last):\nit is kept elsewhere for ada@example.org\n",
    )
    return tmp_path


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "oomdoctor", *arguments],
        cwd=folder,
        capture_output=True,
        env=environment(),
        timeout=120,
        check=False,
    )


def validated(text: bytes) -> dict[str, Any]:
    schema = json.loads((ROOT / "docs" / "run.schema.json").read_text(encoding="utf-8"))
    told: dict[str, Any] = json.loads(text)
    jsonschema.validate(told, schema)
    return told


def test_runs_are_listed_the_newest_first(folder: Path) -> None:
    told = validated(call(folder, "show", "-f", "json").stdout)

    assert [(one["id"], one["outcome"]) for one in told["runs"]] == [
        (NEWER, "out-of-device-memory"),
        (OLDER, "succeeded"),
    ]
    lines = call(folder, "show", "--width", "160").stdout.decode().splitlines()
    assert lines[0].startswith("2 runs, ")
    rows = [line for line in lines if "-train" in line]
    assert "batch-or-seq-too-large" in rows[0]
    assert "3.00 GiB" in rows[1]


def test_the_last_run_is_opened_with_what_its_process_told(folder: Path) -> None:
    told = validated(call(folder, "show", "last", "-f", "json").stdout)

    assert (told["id"], told["outcome"], told["steps"]) == (NEWER, "out-of-device-memory", 2)
    assert told["peaks"]["allocated"] == {"bytes": 15 * GIB, "rank": None, "limit_bytes": None}
    assert told["peaks"]["reserved"]["limit_bytes"] == 16 * GIB
    assert told["processes"][0]["out_of_memory"][0]["requested_bytes"] == 256 * MIB
    assert told["diagnosis"]["resource"] == "gpu"


def test_a_run_is_written_as_text_markdown_and_html(folder: Path) -> None:
    text = call(folder, "show", "last").stdout.decode()
    markdown = call(folder, "show", "last", "-f", "markdown").stdout.decode()
    html = call(folder, "show", "last", "-f", "html").stdout.decode()

    assert text.startswith("train: out of device memory\n")
    assert "after 2 steps, in phase 'train step'" in text
    assert "Causes, most probable first" in text
    assert "## train: out of device memory" in markdown
    assert "<html" in html
    assert "out of device memory" in html


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_what_is_shared_names_nobody(folder: Path, form: str) -> None:
    path = folder / ".oomdoctor" / "runs" / NEWER / "run.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    told["command"] = ["python", "/home/ada/work/train.py"]
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")

    page = call(folder, "show", "last", "-f", form).stdout.decode()

    assert "/home/USER1/work/train.py" in page
    assert "/ada/" not in page


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_what_is_shared_holds_no_secret_that_it_would_escape(folder: Path, form: str) -> None:
    path = folder / ".oomdoctor" / "runs" / NEWER / "run.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    told["command"] = ["python", "train.py", "--token", secret, "https://ada:pa55word@host/x"]
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")

    page = call(folder, "show", "last", "-f", form).stdout.decode()

    assert "--token SECRET" in page
    assert secret[3:] not in page
    assert "pa55word" not in page


def test_a_run_that_succeeded_gets_a_balance_and_no_promise(folder: Path) -> None:
    text = call(folder, "show", OLDER).stdout.decode()

    assert "Peaks by phase" in text
    assert "a longer row or a later phase may need more" in text
    assert "Causes" not in text


def test_a_bundle_is_diagnosed_as_an_input(folder: Path) -> None:
    path = f".oomdoctor/runs/{NEWER}"
    done = call(folder, "diagnose", path, "--fact", "gpu.name=RTX 4090", "-f", "json")

    told = json.loads(done.stdout)
    assert told["resource"] == "gpu"
    assert told["facts"]["gpu.name"]["value"] == "RTX 4090"
    assert told["facts"]["oom.requested"]["value"] == 256 * MIB


def test_two_bundles_are_two_runs(folder: Path) -> None:
    runs = folder / ".oomdoctor" / "runs"

    done = call(folder, "diagnose", str(runs / NEWER), str(runs / OLDER))

    assert done.returncode == 2
    assert b"these are bundles of 2 runs" in done.stderr


def test_a_bundle_is_collected_without_names(folder: Path) -> None:
    call(folder, "collect", f".oomdoctor/runs/{NEWER}", "-o", "shared.zip")

    with ZipFile(folder / "shared.zip") as archive:
        names = {name.partition("-")[2] for name in archive.namelist() if "inputs/" in name}
        texts = [archive.read(name).decode() for name in archive.namelist()]
        diagnosis = json.loads(archive.read("diagnosis.json"))
    assert {"output.log", "run.json", "events.jsonl"} <= names
    assert not any("ada@example.org" in text for text in texts)
    assert diagnosis["facts"]["oom.requested"]["value"] == 256 * MIB


def test_old_runs_are_deleted_with_a_word_on_their_size(folder: Path) -> None:
    done = call(folder, "show", "--keep", "1")

    assert done.stderr.startswith(b"deleted 1 run: ")
    assert [one.name for one in (folder / ".oomdoctor" / "runs").iterdir()] == [NEWER]
    done = call(folder, "show", "last", "--delete")
    assert (done.returncode, list((folder / ".oomdoctor" / "runs").iterdir())) == (0, [])


def test_a_damaged_run_is_deleted_with_the_old_ones(folder: Path) -> None:
    (folder / ".oomdoctor" / "runs" / OLDER / "run.json").write_text("{", encoding="utf-8")

    done = call(folder, "show", "--keep", "1")

    assert done.stderr.startswith(b"deleted 1 run: ")
    assert [one.name for one in (folder / ".oomdoctor" / "runs").iterdir()] == [NEWER]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], b"no run is called 'nothing'"),
        (["train"], b"names 2 runs"),
        (["--delete"], b"--delete needs the name of a run"),
        (["last", "--keep", "3"], b"--keep speaks of all runs"),
    ],
)
def test_what_names_no_run_is_refused(folder: Path, arguments: list[str], said: bytes) -> None:
    done = call(folder, "show", *arguments)

    assert done.returncode == 2
    assert said in done.stderr


def test_where_nothing_is_recorded_that_is_said(tmp_path: Path) -> None:
    done = call(tmp_path, "show")

    assert done.returncode == 0
    assert done.stdout.startswith(b"No run is recorded\n")


def test_a_damaged_bundle_does_not_hide_the_others(folder: Path) -> None:
    (folder / ".oomdoctor" / "runs" / OLDER / "run.json").write_text("{", encoding="utf-8")

    told = validated(call(folder, "show", "-f", "json").stdout)

    assert {one["id"]: one["outcome"] for one in told["runs"]} == {
        NEWER: "out-of-device-memory",
        OLDER: "end-unknown",
    }
