"""Runs programs under the recorder's inside alone, and reads what they left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HOOKS = Path(__file__).resolve().parents[2] / "oomdoctor" / "inject" / "hooks"


class Recorded:
    """What a program printed, how it ended, and what its processes told."""

    def __init__(self, done: subprocess.CompletedProcess[bytes], run: Path) -> None:
        """Read the folder of a run."""
        self.code = done.returncode
        self.stdout, self.stderr = done.stdout.decode(), done.stderr.decode()
        self.processes = {
            path.parent.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            for path in sorted(run.glob("processes/*/events.jsonl"))
        }
        self.run = run

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the messages of some types, of all processes."""
        return [one for told in self.processes.values() for one in told if one["type"] in kinds]


def command(program: Path, *arguments: str, launcher: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs a program."""
    return [*(launcher or (sys.executable,)), str(program), *arguments]


def environment(run: Path | None, *paths: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program, recorded or, without a folder, not."""
    found = {
        **{key: one for key, one in os.environ.items() if not key.startswith("OOMDOCTOR_")},
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": ":".join(map(str, paths)),
        **more,
    }
    if run is not None:
        found["PYTHONPATH"] = ":".join(map(str, (HOOKS, *paths)))
        found["OOMDOCTOR_RUN"] = str(run)
    return found


def start(
    folder: Path, program: str, *arguments: str, recorded: bool = True, **given: Any
) -> Recorded:
    """Run a program to its end in a folder."""
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    run = folder / "bundle"
    done = subprocess.run(
        command(script, *arguments, launcher=given.pop("launcher", ())),
        cwd=folder,
        env=environment(run if recorded else None, *given.pop("paths", ()), **given),
        capture_output=True,
        timeout=240,
        check=False,
    )
    return Recorded(done, run)
