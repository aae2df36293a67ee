"""What is given, taken apart: texts as they stand, files, folders with the files in them.

```
runs/7/attempt_0/3/stderr.log   runs/7/dmesg.txt.gz   runs/7/train.yaml   crash.log.1
runs/7/checkpoint-500/model.safetensors, runs/7/.git, runs/7/events.out.tfevents.1: left out
```
"""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEEPEST = 8
MOST_FILES = 4096
MOST_ENTRIES = 100_000
"""Names of a folder and of those below that are looked at."""
_BUNDLE = frozenset(("manifest.json", "diagnosis.json", "inputs"))
"""What `collect` writes: only the inputs in it are logs and settings."""
_LONGEST_PATH = 4096
_MOST_LISTED = 20
_SKIPPED_FOLDERS = frozenset(
    ("__pycache__", "node_modules", "site-packages", "cache", "caches", "venv", "env", "blobs")
)
_SKIPPED_SUFFIXES = frozenset(
    (
        *("safetensors", "pt", "pth", "bin", "pkl", "pickle", "ckpt", "gguf", "onnx", "engine"),
        *("distcp", "npy", "npz", "h5", "hdf5", "parquet", "arrow", "tfrecord", "idx", "index"),
        *("so", "o", "a", "pyc", "whl", "zip", "tar", "tgz", "7z", "rar", "model", "spm", "lock"),
        *("png", "jpg", "jpeg", "gif", "webp", "svg", "pdf", "mp4", "wav", "mp3", "ico", "ttf"),
        *("prof", "nsys-rep", "sqlite", "db", "wandb", "swp"),
    )
)
_SKIPPED_NAMES = frozenset(
    (
        *("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json"),
        *("special_tokens_map.json", "tokenizer_config.json", "trainer_state.json"),
        *("model.safetensors.index.json", "pytorch_model.bin.index.json", "generation_config.json"),
    )
)
_CODE_SUFFIXES = frozenset(("py", "ipynb", "sh", "c", "cc", "cpp", "cu", "h", "js", "ts", "rs"))


class Item(NamedTuple):
    """A text that is at hand, or the path of one to read; `size` is 0 where nobody knows it."""

    path: str | None = None
    text: str = ""
    size: int = 0


def items_of(given: str | Sequence[str], notes: list[str]) -> list[Item]:
    """Take every item apart; a file that is named twice is read once."""
    found: list[Item] = []
    known: set[str] = set()
    for one in [given] if isinstance(given, str) else given:
        if is_text(one):
            found.append(Item(text=one))
            continue
        for item in _files(one, notes):
            path = item.path or ""
            real = path if path == "-" else os.path.realpath(path)
            if path != "-" and real in known:
                notes.append(f"{path}: given twice, read once")
                continue
            known.add(real)
            found.append(item)
    return found


def is_text(item: str) -> bool:
    """Say whether a string is the text itself: longer than a path, line feeds, or words; no file.

    A name with a line feed in it is a path where such a file is.
    """
    if item == "-" or not item.strip():
        return item != "-"
    if len(item) > _LONGEST_PATH:
        return True
    try:
        if os.path.lexists(item):
            return False
    except (OSError, ValueError):
        return True
    return "\n" in item or item.count(" ") >= 3 or ": " in item


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts names as people do: rank 2 before rank 10."""
    pieces = re.split(r"(\d{1,18})", name)
    return tuple((int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces)


def _files(item: str, notes: list[str]) -> list[Item]:
    """Return a path as it is, or the files of a folder that have something in them."""
    if item == "-" or not os.path.isdir(item):
        return [Item(path=item, size=_size(item))]
    try:
        os.scandir(item).close()
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror}", location=Location(path=item)
        ) from None
    skipped: Counter[str] = Counter()
    entries = islice(_walk(item, 0, skipped), MOST_ENTRIES)
    found = sorted((one for one in entries if one.path), key=lambda one: natural(one.path or ""))
    listed = ", ".join(f"{count} {what}" for what, count in sorted(skipped.items())[:_MOST_LISTED])
    if skipped:
        notes.append(f"{item}: not read, since they hold no log and no settings: {listed}")
    if not found:
        left = f" (left out: {listed})" if skipped else ""
        raise InputError(f"no readable file in {item}{left}", hint="give the log file itself")
    if len(found) > MOST_FILES:
        notes.append(f"{item}: of {len(found)} files only the first {MOST_FILES} were read")
    return found[:MOST_FILES]


def _walk(folder: str, depth: int, skipped: Counter[str]) -> Iterator[Item]:
    """Yield the files that are read, and before each entry that is looked at an item of nothing."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted(islice(entries, MOST_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        skipped["unreadable folders"] += 1
        return
    if {entry.name for entry in listed} >= _BUNDLE:
        if depth:
            skipped["bundles for sharing"] += 1
            return
        listed = [entry for entry in listed if entry.name == "inputs"]
    for entry in listed:
        if entry.name.startswith("."):
            continue
        yield Item()
        if _is_folder(entry):
            if entry.name.lower() in _SKIPPED_FOLDERS or depth >= DEEPEST:
                skipped[f"{entry.name}/"] += 1
            else:
                yield from _walk(entry.path, depth + 1, skipped)
            continue
        size = _size_of(entry)
        kind = _skipped_kind(entry.name, depth)
        if kind is not None:
            skipped[kind] += 1
        elif size:
            yield Item(path=entry.path, size=size)


def _skipped_kind(name: str, depth: int) -> str | None:
    """Return in words why a file of a folder is not read, None where it is."""
    lowered = name.lower()
    if lowered in _SKIPPED_NAMES:
        return name
    if "tfevents" in lowered:
        return "tfevents"
    suffix = lowered.rpartition(".")[2] if "." in lowered else ""
    if suffix in _SKIPPED_SUFFIXES or (depth and suffix in _CODE_SUFFIXES):
        return f".{suffix}"
    return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _size_of(entry: os.DirEntry[str]) -> int:
    """Return the size of a file; those of size 0 are empty, or may never end."""
    try:
        return entry.stat().st_size if entry.is_file() else 0
    except OSError:
        return 0


def _size(path: str) -> int:
    try:
        return os.path.getsize(path) if path != "-" else 0
    except (OSError, ValueError):
        return 0
