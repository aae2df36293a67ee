"""Copies of the config files and scripts that a command names: they may change after the run."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIXES = frozenset(
    (".yaml", ".yml", ".json", ".jsonc", ".toml", ".ini", ".cfg", ".conf", ".py", ".sh", ".slurm")
)
_LARGEST_BYTES = 1 << 20
_MOST = 64


def copy_configs(command: Sequence[str], folder: Path) -> list[dict[str, str]]:
    """Copy them, and return where each stood and what its copy is called."""
    copied: list[dict[str, str]] = []
    names: set[str] = set()
    for path in _named(command):
        if len(copied) >= _MOST:
            break
        name = path.name
        number = 2
        while name in names:
            name = f"{path.stem}-{number}{path.suffix}"
            number += 1
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / name)
            names.add(name)
            copied.append({"path": str(path), "name": name})
    return copied


def _named(command: Sequence[str]) -> Iterator[Path]:
    """Yield the files that the words of a command name: `train.yaml`, `--config=train.yaml`."""
    seen: set[Path] = set()
    for word in command:
        for text in dict.fromkeys((word, word.partition("=")[2], word.partition("@")[2])):
            path = Path(text)
            if path.suffix.lower() not in _SUFFIXES:
                continue
            with suppress(OSError, ValueError):
                known = path.resolve() in seen
                if not known and path.is_file() and path.stat().st_size <= _LARGEST_BYTES:
                    seen.add(path.resolve())
                    yield path
