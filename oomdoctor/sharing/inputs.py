"""The inputs of a bundle, one at a time: read as a diagnosis reads them, or noted as left out."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, OomdoctorError
from oomdoctor.evidence.source import read_source
from oomdoctor.inputs import items_of
from oomdoctor.reason.file_names import name_ranks, unpacked
from oomdoctor.record import dataclass
from oomdoctor.units import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from oomdoctor.evidence.source import Source

_LONGEST_NAME = 120
STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file of a bundle: where it is, and whether it was given as a config.

    `given` is how it was named; a pipe is read from the copy at `path`.
    """

    path: str
    given: str
    is_config: bool = False


class Inputs:
    """All inputs of a bundle; a text is read anew each time, so that one at a time is held.

    What can be read only once is copied to a folder of its own, which `close` removes.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        config: Sequence[str] = (),
        stdin: BinaryIO | None = None,
    ) -> None:
        """Find the files of directories as a diagnosis does; pipes are read here, once."""
        self.left_out: list[str] = []
        self._stdin = stdin
        self._copies: str | None = None
        try:
            self.items = self._found(files, config)
        except BaseException:
            self.close()
            raise

    def _found(self, files: Sequence[str], config: Sequence[str]) -> list[Input]:
        found = [self._input(path) for path in self._paths(files)]
        found += [self._input(path, is_config=True) for path in self._paths(config)]
        items = self._readable(found)
        if not items:
            raise InputError(
                "no input is a text that can be shared",
                hint="; ".join(self.left_out) or "give the log file itself",
            )
        return items

    def close(self) -> None:
        """Remove the copies."""
        if self._copies is not None:
            shutil.rmtree(self._copies, ignore_errors=True)

    def read(self, item: Input) -> Source:
        """Read an input as a diagnosis does."""
        return read_source(item.path)

    def _paths(self, given: Sequence[str]) -> list[str]:
        notes: list[str] = []
        found = [item.path for item in items_of(given, notes) if item.path is not None]
        self.left_out += [note for note in notes if not note.endswith("read once")]
        return found

    def _input(self, path: str, *, is_config: bool = False) -> Input:
        """Return an input; of a pipe, the copy that can be read again."""
        if path != STDIN and not _is_pipe(path):
            return Input(path=path, given=path, is_config=is_config)
        if self._copies is None:
            self._copies = tempfile.mkdtemp(prefix="oomdoctor-")
        handle, copy = tempfile.mkstemp(dir=self._copies, suffix=".txt")
        try:
            with os.fdopen(handle, "wb") as target:
                if path != STDIN:
                    with Path(path).open("rb") as source:
                        shutil.copyfileobj(source, target)
                elif self._stdin is not None:
                    shutil.copyfileobj(self._stdin, target)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        return Input(path=copy, given=path, is_config=is_config)

    def _readable(self, found: list[Input]) -> list[Input]:
        """Return those that are texts, each once."""
        kept: dict[str, Input] = {}
        for item in found:
            key = os.path.realpath(item.path)
            if key in kept:
                continue
            try:
                self.read(item)
            except OomdoctorError as fault:
                self.left_out.append(f"{item.given}: {getattr(fault, 'message', fault)}")
            else:
                kept[key] = item
        return list(kept.values())


def _is_pipe(path: str) -> bool:
    try:
        return Path(path).is_fifo()
    except (OSError, ValueError):
        return False


def shared_names(items: Sequence[Input]) -> Mapping[str, str]:
    """Return by path the name of each input without folders and the suffix of a compression.

    A rank that only its folders or its siblings tell goes into the name.
    """
    paths = [item.path for item in items]
    ranks = name_ranks(paths)
    nodes = sorted({one.node for one in ranks.values() if one.node is not None})
    names = {item.path: shared_name(item.given) for item in items}
    for path, name in names.items():
        found, own = ranks[path], name_ranks([name])[name]
        if found.rank is None or (found.node is None and own.sure and own.rank == found.rank):
            continue
        node = "" if found.node is None else f"node{nodes.index(found.node) + 1}-"
        names[path] = f"{node}rank{found.rank}-{name}"
    return names


def text_of(source: Source) -> str:
    """Return the lines that were kept; where some were skipped, a line says how many."""
    lines: list[str] = []
    last = 0
    for number, line in source.lines:
        if number > last + 1:
            lines.append(f"[{format_count(number - last - 1)} lines left out here]")
        lines.append(line)
        last = number
    return "\n".join(lines) + ("" if source.ends_open or not lines else "\n")


def shared_name(path: str) -> str:
    """Return the name of an input without folders and without the suffix of a compression."""
    name = "standard-input.txt" if path == STDIN else Path(path).name
    if path.startswith(("/dev/fd/", "/proc/self/fd/")):
        name = f"pipe-{name}.txt"
    name = unpacked(name)
    stem, dot, suffix = name.rpartition(".")
    if len(name) > _LONGEST_NAME:
        name = f"{stem[: _LONGEST_NAME - 12]}{dot}{suffix[:8]}"
    return name or "input.txt"
