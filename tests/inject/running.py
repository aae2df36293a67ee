"""Runs programs of these tests as trials on the CPU back end, with the interpreter of the tests."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.cli.bisect_command import CommandTemplate
from oomdoctor.lab.command_trial import CommandBackend
from oomdoctor.model.trial import PhasePeak, TrialResult, TrialSpec
from oomdoctor.record import replace

MIB = 1 << 20


def needs(*modules: str) -> pytest.MarkDecorator:
    """Mark a test that starts programs with these libraries, which takes seconds."""
    missing = [one for one in modules if find_spec(one) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def run(
    folder: Path,
    program: str,
    *arguments: str,
    launcher: tuple[str, ...] = (),
    backend: str = "cpu",
    **given: Any,
) -> TrialResult:
    """Run a program to the end of its trial; what is given goes into the spec, hooks included."""
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    values = given.pop("values", {})
    words = (*(launcher or (sys.executable,)), str(script), *arguments)
    command = replace(
        CommandTemplate(words, (), str(folder)).at(values),
        hooks=given.pop("hooks", {}),
        environment={"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    spec = TrialSpec(values=values, command=command, seconds=240.0, **given)
    return CommandBackend(backend, folder=folder / "run").run(spec, lambda _: None)


def output_of(result: TrialResult) -> str:
    """Return what the program printed."""
    assert result.output_path is not None
    return Path(result.output_path).read_text(encoding="utf-8")


def phase(result: TrialResult, name: str) -> PhasePeak:
    """Return the peaks of a phase."""
    return next(one for one in result.phases if one.name == name)
