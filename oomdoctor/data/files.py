"""Which files a data set consists of, and what each is, by its content.

train.jsonl  train.json  train.parquet  data-00000-of-00002.arrow  corpus.txt  train.jsonl.gz
a folder of save_to_disk    dataset_info.json, state.json, *.arrow; or dataset_dict.json
a folder of such files      read in the order of their names
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.inputs import natural
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STDIN = "-"
SUFFIXES = ("jsonl", "ndjson", "json", "parquet", "arrow", "txt", "text")
PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
HEAD_BYTES = 64 * 1024
_STREAM = b"\xff\xff\xff\xff"
_LINES = (".jsonl", ".ndjson")


class DataFile(NamedTuple):
    """A file with its kind: lines, text, json, parquet, arrow; `packed` is its compression."""

    path: str
    kind: str
    size: int
    packed: str | None = None


def files_of(given: Sequence[str], notes: list[str], *, split: str | None = None) -> list[DataFile]:
    """Return the files of all paths; of a data set with splits `split`, or else `train`."""
    found: list[DataFile] = []
    for one in given:
        if one == STDIN:
            found.append(DataFile(STDIN, "lines", 0))
            continue
        path = Path(one)
        if not path.exists():
            raise InputError("no such file or folder", location=Location(path=one))
        inside = _of_folder(path, notes, split=split) if path.is_dir() else [path]
        found += (_sniffed(file) for file in inside)
    return found


def _of_folder(folder: Path, notes: list[str], *, split: str | None) -> Iterable[Path]:
    splits = _json(folder / "dataset_dict.json").get("splits")
    if isinstance(splits, list) and splits:
        chosen = split or ("train" if "train" in splits else str(splits[0]))
        if chosen not in splits:
            raise InputError(
                f"no split {chosen!r}",
                location=Location(path=str(folder)),
                hint=f"it has: {', '.join(map(str, splits))}",
            )
        others = [str(one) for one in splits if one != chosen]
        if others:
            notes.append(f"{folder}: split {chosen} was read, not {', '.join(others)}")
        return _of_folder(folder / chosen, notes, split=None)
    saved = _json(folder / "state.json").get("_data_files")
    if isinstance(saved, list):
        return [folder / Path(str(one["filename"])).name for one in saved if isinstance(one, dict)]
    return _listed(folder, split)


def _listed(folder: Path, split: str | None) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file() and _is_data(path)]
    found.sort(key=lambda path: natural(str(path)))
    if split is not None:
        found = [path for path in found if split in str(path.relative_to(folder))]
    if not found:
        raise InputError(
            "no data in this folder",
            location=Location(path=str(folder)),
            hint=f"looked for {', '.join(SUFFIXES)}, and for what save_to_disk writes",
        )
    return found


def _is_data(path: Path) -> bool:
    if path.name.startswith((".", "cache-")) or path.name in _DESCRIPTIONS:
        return False
    return any(f".{suffix}" in path.name.lower() for suffix in SUFFIXES)


_DESCRIPTIONS = frozenset(
    (
        *("dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json"),
        *("config.json", "tokenizer.json", "tokenizer_config.json", "README.txt"),
        *("requirements.txt", "LICENSE.txt", "special_tokens_map.json", "metadata.json"),
    )
)


def _json(path: Path) -> dict[str, object]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _sniffed(path: Path) -> DataFile:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror}", location=Location(path=str(path))
        ) from None
    packed = next((name for magic, name in PACKED.items() if head.startswith(magic)), None)
    if packed is not None:
        is_text = ".txt" in path.name.lower() or ".text" in path.name.lower()
        return DataFile(str(path), "text" if is_text else "lines", size, packed)
    return DataFile(str(path), kind_of(path.name.lower(), head, size=size), size)


def kind_of(name: str, head: bytes, *, size: int) -> str:
    """Tell by the first bytes, and by the name where these leave it open."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", _STREAM)):
        return "arrow"
    if name.endswith(_LINES):
        return "lines"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return "json"
    if start.startswith(b"{"):
        return _of_objects(start, whole=size <= len(head), single=name.endswith(".json"))
    return "text"


def _of_objects(start: bytes, *, whole: bool, single: bool) -> str:
    """Tell lines of objects from one object; `single` where the name speaks for one."""
    line, newline, rest = start.partition(b"\n")
    if single and not rest.strip() and (whole or not newline):
        return "json"
    if not newline:
        return "lines"
    try:
        json.loads(line)
    except ValueError:
        broken = line.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")
        return "lines" if broken else "json"
    return "lines"
