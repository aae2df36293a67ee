"""A scratch repository with training configs, and what runs the steps of action.yml in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
model_name_or_path: some/model
bf16: true
output_dir: out
per_device_train_batch_size: 1
"""
BAD = GOOD.replace("bf16: true", "bf16: true\nfp16: true")
GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.org")


def environment(**more: str) -> dict[str, str]:
    """Return an environment without what this test run itself brought."""
    noise = ("GITHUB_", "RUNNER_", "OOMDOCTOR", "COV_", "GIT_", "PYTEST", "PYTHON")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(noise)}
    return kept | more


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    done = subprocess.run(
        [*GIT, *arguments], cwd=folder, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def repository(folder: Path, files: dict[str, str]) -> Path:
    """Make a repository of these files, all of them committed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=start")
    return folder


class Runner:
    """Runs the shell steps of action.yml as a workflow would, word for word."""

    def __init__(self, workspace: Path, temp: Path, **inputs: str) -> None:
        """Take the checkout, the runner's own folder, and what the workflow gives."""
        self.action: Any = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
        defaults = {name: one["default"] for name, one in self.action["inputs"].items()}
        assert inputs.keys() <= defaults.keys()
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        self.values["steps.python.outputs.python-path"] = sys.executable
        self.workspace, self.temp = workspace, temp

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run the step of this name; keep what it puts out for the later ones."""
        one = next(step for step in self.action["runs"]["steps"] if step["name"] == name)
        script, outputs = self.temp / "step.sh", self.temp / "outputs"
        script.write_text(one["run"], encoding="utf-8")
        outputs.write_text("", encoding="utf-8")
        own = {key: self._filled(value) for key, value in one.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env=environment(
                GITHUB_ACTIONS="true",
                GITHUB_ACTION_PATH=str(ROOT),
                GITHUB_OUTPUT=str(outputs),
                GITHUB_STEP_SUMMARY=str(self.temp / "summary.md"),
                RUNNER_TEMP=str(self.temp),
                PYTHONUTF8="1",
                **own,
            ),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for line in outputs.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{one.get('id')}.outputs.{key}"] = value
        return done

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda hit: self.values[hit[1]], text)
