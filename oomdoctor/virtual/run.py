"""Runs Python on virtual cards.

card = card_named("NVIDIA A100-SXM4-80GB")
done = run_python(["train.py"], card=card, python="/path/to/venv/bin/python")
done.exit_code, done.output, done.unmodelled
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.record import dataclass
from oomdoctor.virtual.build import build
from oomdoctor.virtual.environment import environment_of
from oomdoctor.virtual.unmodelled import read_log
from oomdoctor.virtual.wheels import FALL_BACK, SETUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.virtual.card import VirtualCard
    from oomdoctor.virtual.unmodelled import Unmodelled

_LONGEST_START_S = 60
_WHERE_TORCH_IS = """
import importlib.util, os
spec = importlib.util.find_spec("torch")
print(os.path.dirname(os.path.dirname(spec.origin)) if spec and spec.origin else "")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRun:
    """What came of a program; exit code None: it was stopped at the time limit."""

    exit_code: int | None
    output: str
    errors: str
    unmodelled: Unmodelled


def virtual_environment(
    card: VirtualCard,
    *,
    count: int = 1,
    python: str = sys.executable,
    log: Path | None = None,
    usage: Path | None = None,
    base: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return an environment in which `python` finds `count` cards; builds the libraries first."""
    libraries = build(site_packages_of(python), environment=base)
    cards = (card,) * count
    return environment_of(cards, libraries=libraries, log=log, usage=usage, base=base)


def site_packages_of(python: str) -> Path:
    """Return the folder from which an interpreter imports torch."""
    try:
        done = subprocess.run(
            [python, "-c", _WHERE_TORCH_IS],
            capture_output=True,
            text=True,
            timeout=_LONGEST_START_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"{python} does not start: {error}",
            hint=f"name an interpreter that has the CUDA build of torch; without one, {FALL_BACK}",
        ) from error
    folder = done.stdout.strip()
    if done.returncode or not folder:
        raise InputError(f"{python} has no torch", hint=SETUP)
    return Path(folder)


def run_python(
    arguments: Sequence[str],
    *,
    card: VirtualCard,
    count: int = 1,
    python: str = sys.executable,
    timeout_s: float | None = None,
    captures: bool = True,
    base: Mapping[str, str] = os.environ,
) -> VirtualRun:
    """Run an interpreter with arguments on virtual cards, and wait for its end.

    A loop that ends when a kernel says so never ends here; `timeout_s` is for such programs.
    What is not captured goes where our own output goes.
    """
    with tempfile.TemporaryDirectory(prefix="oomdoctor-virtual-") as folder:
        log = Path(folder) / "log"
        environment = virtual_environment(
            card, count=count, python=python, log=log, usage=Path(folder) / "usage", base=base
        )
        pipe = subprocess.PIPE if captures else None
        with subprocess.Popen(
            [python, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        ) as process:
            output, errors, code = _wait(process, timeout_s)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return VirtualRun(
        exit_code=code,
        output=(output or b"").decode("utf-8", "replace"),
        errors=(errors or b"").decode("utf-8", "replace"),
        unmodelled=read_log(text),
    )


def _wait(
    process: subprocess.Popen[bytes], timeout_s: float | None
) -> tuple[bytes | None, bytes | None, int | None]:
    """Return what a process wrote and its exit code, None if it and its children were stopped."""
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except BaseException as error:
        import signal

        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return output, errors, None
    return output, errors, process.returncode
