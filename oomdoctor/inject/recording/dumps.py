"""Writes down what only the dying process knows, in a folder `oom-<n>` of its own.

event.json comes first and the snapshot last: it is the largest, and takes the longest. A program
that runs out of memory by design (it looks for the largest batch) pays for a few of them only: the
first is kept, and of the later ones the newest, as long as they take a small share of its time.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from .line import count, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from ..agent import Agent
    from .line import FileLine

Library: TypeAlias = Any
_DUMPS = 3
_LATER_SHARE = 0.05  # of the process's time that dumps after the first ones may take
_LEAST_FREE_BYTES = 1 << 30  # on the disk, for a snapshot to be written
_LIBRARIES = (
    "torch", "transformers", "peft", "trl", "accelerate", "deepspeed", "bitsandbytes", "lightning",
    "pytorch_lightning", "flash_attn", "xformers", "liger_kernel", "unsloth", "triton", "datasets",
    "tokenizers", "safetensors", "numpy", "torchvision", "diffusers", "vllm", "timm", "axolotl",
    "llamafactory", "optimum", "apex", "transformer_engine", "torchao", "ray",
)  # fmt: skip


class Dumps:
    """The dumps of one process."""

    def __init__(self, agent: Agent, line: FileLine, given: Mapping[str, object]) -> None:
        """Write nothing yet; `given` are the settings of the run."""
        self._agent = agent
        self._line = line
        self._snapshots = given.get("snapshots") is not False
        self._most = max(1, count(given.get("dumps"), _DUMPS))
        self._pid = os.getpid()
        self._count = 0
        self._kept: list[str] = []
        self._spent = 0.0
        self._began = time.monotonic()

    def write(self, event: dict[str, object]) -> None:
        """Write the files of one out-of-memory error, if it is to be written."""
        if self._pid != os.getpid():
            self._pid, self._count, self._kept = os.getpid(), 0, []
        self._count += 1
        began = time.monotonic()
        if self._count > self._most and self._spent > _LATER_SHARE * (began - self._began):
            return
        folder = os.path.join(self._line.folder(), f"oom-{self._count}")
        os.makedirs(folder, exist_ok=True)
        self._make_room(folder)
        device = event.get("device")
        for name, make in (
            ("event.json", lambda: _json(event)),
            ("versions.json", lambda: _json(versions())),
            ("arguments.json", self._arguments),
            ("memory_stats.json", lambda: _json(self._stats())),
            ("memory_summary.txt", lambda: self._summary(device)),
        ):
            self._agent.guarded(_write)(os.path.join(folder, name), make)
        self._agent.guarded(self._snapshot)(folder)
        self._spent += time.monotonic() - began

    def _make_room(self, folder: str) -> None:
        """Keep the first and the newest ones."""
        self._kept.append(folder)
        if len(self._kept) > self._most:
            shutil.rmtree(self._kept.pop(1 if self._most > 1 else 0), ignore_errors=True)

    def _arguments(self) -> str | None:
        try:
            path = os.path.join(self._line.folder(), "arguments.json")
            with open(path, encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def _uses_card(self) -> bool:
        torch = self._agent.torch
        return torch is not None and torch.cuda.is_initialized()

    def _stats(self) -> dict[str, object] | None:
        if not self._uses_card():
            return None
        cuda = self._agent.torch.cuda
        found = {str(index): cuda.memory_stats(index) for index in range(cuda.device_count())}
        return {key: dict(stats) for key, stats in found.items() if stats}

    def _summary(self, device: object) -> str | None:
        if not self._uses_card():
            return None
        cuda = self._agent.torch.cuda
        wanted = device if isinstance(device, int) else cuda.current_device()
        return str(cuda.memory_summary(wanted))

    def _snapshot(self, folder: str) -> None:
        if not self._snapshots or not self._uses_card():
            return
        room = shutil.disk_usage(folder).free
        if room < _LEAST_FREE_BYTES:
            self._agent.note("snapshot", f"not written: {room} bytes are free on the disk")
            return
        path = os.path.join(folder, "snapshot.pickle")
        self._agent.torch.cuda.memory._dump_snapshot(f"{path}.part")
        os.replace(f"{path}.part", path)


def versions() -> dict[str, str]:
    """Return the versions of what the process has imported by now."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in _LIBRARIES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    torch = sys.modules.get("torch")
    for name in ("cuda", "hip"):
        version = getattr(getattr(torch, "version", None), name, None)
        if version is not None:
            found[name] = str(version)
    return found


def _write(path: str, make: Callable[[], str | None]) -> None:
    text = make()
    if text is not None:
        write_whole(path, text)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, indent=1, default=str)
