"""run.json: what a run was asked to be, on which machine, and how it ended; whole at any time."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.probe import processes
from oomdoctor.recorder.places import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.probe.gpu import Device

SCHEMA = 1
_RESERVE = ".run.json.end"
_RESERVED_BYTES = 256 << 10
_TOLD = re.compile(
    r"(?:PYTORCH|CUDA|NCCL|OMP|MKL|TORCH|TORCHINDUCTOR|TRITON|ACCELERATE|DEEPSPEED|DS|FSDP|VLLM"
    r"|HIP|ROCR|HSA|MALLOC|XLA|BNB|UNSLOTH|SLURM)_[A-Z0-9_]+"
    r"|HF_(?:HUB_OFFLINE|HOME|DATASETS_\w+)|TRANSFORMERS_OFFLINE|TOKENIZERS_PARALLELISM"
    r"|RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_PORT|CONDA_DEFAULT_ENV|LD_PRELOAD"
)
_NEVER = re.compile(r"TOKEN|KEY|SECRET|PASS|CRED|AUTH", re.IGNORECASE)


def environment_told(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that decide about memory; never what could be a secret."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if _TOLD.fullmatch(name) and not _NEVER.search(name)
    }


def machine_told(devices: Sequence[Device] = ()) -> dict[str, object]:
    """Return the machine: its memory, its processors, and its cards as far as they are known."""
    info = processes.memory_info()
    found: dict[str, object | None] = {
        "host_bytes": info.get("MemTotal"),
        "swap_bytes": info.get("SwapTotal"),
        "processors": os.cpu_count(),
        "overcommit_mode": processes.overcommit_mode(),
        "system": f"{os.uname().sysname} {os.uname().release}",
        "cards": [
            {"index": one.index, "name": one.name, "uuid": one.uuid, "total_bytes": one.total_bytes}
            for one in devices
        ],
    }
    return {name: value for name, value in found.items() if value is not None}


def at_start(
    folder: Path, command: Sequence[str], *, environ: Mapping[str, str], virtual: str | None
) -> dict[str, object]:
    """Return what is known when a run begins."""
    own = processes.stat(os.getpid())
    told: dict[str, object] = {
        "schema": SCHEMA,
        "id": folder.name,
        "command": list(command),
        "folder": str(Path.cwd()),
        "started": stamp(time.time()),
        "python": sys.executable,
        "oomdoctor": __version__,
        "environment": environment_told(environ),
        "machine": machine_told(),
        "recorder": {"pid": os.getpid(), "start": own.start_ticks if own else None},
    }
    if virtual is not None:
        told["virtual"] = virtual
    return told


def write(folder: Path, told: Mapping[str, object]) -> None:
    """Write the file in one go: whoever reads it meanwhile sees the one before."""
    write_whole(folder / RUN_FILE, _text(told))


def reserve(folder: Path) -> None:
    """Take the room that the end of the run will need: the disk may be full by then."""
    (folder / _RESERVE).write_bytes(bytes(_RESERVED_BYTES))


def write_end(folder: Path, told: Mapping[str, object]) -> None:
    """Write the file with the end of the run, on a full disk into the room that was taken."""
    reserved = folder / _RESERVE
    try:
        write(folder, told)
    except OSError:
        if not reserved.exists():
            raise
        with reserved.open("r+b") as file:
            file.write(_text(told).encode("utf-8", errors="replace"))
            file.truncate()
        reserved.replace(folder / RUN_FILE)
    reserved.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name, then give it its own."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _text(told: Mapping[str, object]) -> str:
    return json.dumps(told, indent=1) + "\n"


def stamp(seconds: float) -> str:
    """Return a time of the Unix clock as text, with the offset of this place."""
    when = datetime.fromtimestamp(seconds, tz=timezone.utc).astimezone()
    return when.isoformat(timespec="milliseconds")
