"""Runs planted causes: the failing log, its diagnosis, and the trials of `confirm`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from oomdoctor.lab.command_trial import CommandBackend
from oomdoctor.model.trial import CommandSpec, TrialResult, TrialSpec
from tests.conftest import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

Plant: TypeAlias = dict[str, Any]

FOLDER = ROOT / "fixtures" / "planted"
PLANTS: list[Plant] = yaml.safe_load((FOLDER / "plants.yaml").read_text(encoding="utf-8"))
SCRIPTS = [one for one in PLANTS if "script" in one]
JOBS = [one for one in PLANTS if "job" in one]
_ENDLESS = 1000
# one thread each: plants run side by side
_ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def cause_of(plant: Plant) -> str:
    """Return what is planted."""
    return str(plant.get("cause") or plant.get("script") or plant["job"])


def command_of(plant: Plant, folder: Path, script: str) -> list[str]:
    """Return the command of a plant; a checkpoint that it needs is made in the folder."""
    home = FOLDER / plant["script"]
    command = [sys.executable, str(home / script)]
    if plant.get("needs") == "checkpoint":
        path = folder / "checkpoint.pt"
        if not path.exists():
            maker = [sys.executable, str(home / "make_checkpoint.py"), str(path)]
            subprocess.run(maker, check=True, env={**os.environ, **_ALONE})
        command.append(str(path))
    return command


def failing(plant: Plant, folder: Path) -> TrialResult:
    """Run a planted script to its failure."""
    command = CommandSpec(
        arguments=tuple(command_of(plant, folder, "train.py")),
        folder=str(folder),
        environment=_ALONE,
    )
    spec = TrialSpec(values={}, command=command, steps=_ENDLESS, cap_bytes=plant["cap_mib"] << 20)
    return CommandBackend("cpu", folder=folder / "failing").run(spec, lambda _: None)


def diagnosed(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what `diagnose` says of a log with its script or config."""
    found: dict[str, Any] = json.loads(
        ran(folder, "diagnose", *arguments, "-f", "json", codes=(0, 4))
    )
    return found


def confirmed(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the confirmations of `confirm` by their causes."""
    answer = json.loads(ran(folder, "confirm", "-f", "json", *arguments, codes=(0, 4)))
    return {one["cause"]: one for one in answer["confirmations"]}


def log_of(plant: Plant, failure: dict[str, Any], folder: Path) -> Path:
    """Write what a run of a job prints that fails as a trial did; return where it is."""
    text = (FOLDER / "jobs" / plant["job"] / "crash.log").read_text(encoding="utf-8")
    capacity, held = plant["cap_mib"] << 20, failure["allocated_bytes"]
    figures = {
        "requested": failure["requested_bytes"],
        "capacity": capacity,
        "allocated": held,
        "free": capacity - held,
    }
    for name, figure in figures.items():
        text = text.replace(f"{{{name}}}", f"{figure / (1 << 20):.2f} MiB")
    path = folder / "crash.log"
    path.write_text(text, encoding="utf-8")
    return path


def ran(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run oomdoctor in a folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *arguments],
        cwd=folder,
        env={**clean_environment(), **_ALONE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in codes, done.stderr[-2000:]
    return done.stdout


def suspected(folder: Path, *causes: str) -> Path:
    """Write a diagnosis that names causes as equally likely; return where it is."""
    listed = [{"cause": cause, "probability": 1 / len(causes)} for cause in causes]
    path = folder / "diagnosis.json"
    path.write_text(json.dumps({"schema_version": 1, "causes": listed}), encoding="utf-8")
    return path
