"""Where the bundles of runs lie, how they are named, and which one a name means.

.oomdoctor/runs/20260114-093012-train/
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = Any  # what json.loads returns

DEFAULT = Path(".oomdoctor") / "runs"
VARIABLE = "OOMDOCTOR_RUNS"
RUN_FILE = "run.json"
OUTPUT_FILE = "output.log"
SAMPLES_FILE = "samples.jsonl"
KERNEL_FILE = "kernel.log"
CONFIGS = "configs"
PROCESSES = "processes"
EVENTS_FILE = "events.jsonl"
LAST = "last"
_GIVEN = (("-c",), ("-lc",), ("-ec",), ("-ic",))
_SCRIPTS = (".py", ".sh")
_LAUNCHER_MODULES = ("torch.distributed.", "accelerate.commands.", "deepspeed.launcher.")
_LONGEST_WORD = 20
_MOST_TRIES = 1000
_STAMP = len("20260114-093012")
_LAUNCHERS = frozenset(
    (
        *("python", "python3", "torchrun", "accelerate", "deepspeed", "launch", "run", "env"),
        *("nohup", "nice", "time", "uv", "poetry", "srun", "mpirun", "bash", "sh", "sudo"),
    )
)


def runs_folder(given: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all bundles: as given, else of the environment, else below this one."""
    return Path(given or environ.get(VARIABLE) or DEFAULT).absolute()


def word_of(command: Sequence[str]) -> str:
    """Return the word of a command by which a person knows it: the script, not its launcher."""
    if tuple(command[1:2]) in _GIVEN:  # the words of a shell's line; code of Python has none
        is_python = Path(command[0]).name.startswith("python")
        spoken = command[0] if is_python else " ".join(command[2:3])
    else:
        spoken = " ".join(command)
    words = [one for one in spoken.split() if not one.startswith("-") and "=" not in one]
    named = [Path(one).name for one in words]
    scripts = [one for one in named if one.endswith(_SCRIPTS)]
    plain = [one for one in named if not _launches(one)]
    word = (scripts or plain or named or ["command"])[0]
    for suffix in _SCRIPTS:
        word = word.removesuffix(suffix)
    return re.sub(r"[^A-Za-z0-9_.]+", "-", word).strip("-.")[:_LONGEST_WORD] or "command"


def _launches(word: str) -> bool:
    return re.sub(r"[\d.]+$", "", word) in _LAUNCHERS or word.startswith(_LAUNCHER_MODULES)


def new_bundle(runs: Path, command: Sequence[str], *, now: float | None = None) -> Path:
    """Make the folder of a new bundle; OSError where that cannot be."""
    runs.mkdir(parents=True, exist_ok=True)
    _keep_out_of_git(runs)
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{word_of(command)}"
    for number in range(1, _MOST_TRIES):
        folder = runs / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{runs / name} and {_MOST_TRIES} more exist")


def bundles(runs: Path) -> list[Path]:
    """Return the bundles of a folder, the newest first; none where there is no folder."""
    try:
        found = [one for one in runs.iterdir() if is_bundle(one)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read {runs}: {error.strerror}") from error
    return sorted(found, key=_order, reverse=True)


def is_bundle(folder: Path) -> bool:
    """Say whether a folder is the bundle of a run."""
    return (folder / RUN_FILE).is_file()


def bundle_named(name: str, runs: Path) -> Path:
    """Return the bundle that a name means: `last`, a path, an id, or a part of just one."""
    if is_bundle(Path(name)):
        return Path(name)
    known = bundles(runs)
    if not known:
        raise UsageError(
            f"no run is recorded in {runs}", hint="oomdoctor run -- COMMAND records one"
        )
    if name == LAST:
        return known[0]
    exact = [one for one in known if one.name == name]
    near = exact or [one for one in known if name in one.name]
    if len(near) == 1:
        return near[0]
    if not near:
        raise UsageError(f"no run is called {name!r}", hint="oomdoctor show lists them")
    listed = ", ".join(one.name for one in near[:5])
    raise UsageError(f"{name!r} names {len(near)} runs: {listed}", hint="give more of the name")


def parsed(text: str | bytes) -> Json:
    """Return the value of a JSON text of a bundle; ValueError also where it is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def content_of(path: Path) -> bytes:
    """Return what a file of a bundle holds; nothing without one: a pipe would be waited for."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def finite(value: object) -> float | None:
    """Return a number of a bundle that can be reckoned with; None for any other value."""
    if not isinstance(value, (int, float)):
        return None
    with suppress(OverflowError):
        found = float(value)
        return found if math.isfinite(found) else None
    return None


def _order(folder: Path) -> tuple[str, str]:
    """Sort by the second in the name, then by the exact time that the run itself tells."""
    try:
        told = parsed((folder / RUN_FILE).read_text(encoding="utf-8"))
        return folder.name[:_STAMP], str(told.get("started"))
    except (OSError, ValueError, AttributeError):
        return folder.name[:_STAMP], ""


def _keep_out_of_git(runs: Path) -> None:
    """Let git ignore what runs leave behind, where the folder is ours alone."""
    if runs.parent.name == DEFAULT.parent.name:
        with suppress(OSError), (runs.parent / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
