"""The inputs of a bundle, one at a time: read as a diagnosis reads them, or noted as left out."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, OomdoctorError
from oomdoctor.evidence.source import read_source
from oomdoctor.record import dataclass
from oomdoctor.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from oomdoctor.evidence.source import Source

_DEEPEST = 4
_MOST_FILES = 1000
_PACKED = (".gz", ".bz2", ".xz")
STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file of a bundle: where it is, and whether it was given as a config."""

    path: str
    is_config: bool = False


class Inputs:
    """All inputs of a bundle; a text is read anew each time, so that one at a time is held."""

    def __init__(
        self,
        files: Sequence[str],
        *,
        config: Sequence[str] = (),
        stdin: BinaryIO | None = None,
    ) -> None:
        """Find the files of directories; standard input is read here, once."""
        self.left_out: list[str] = []
        self._stdin = stdin.read() if STDIN in (*files, *config) and stdin is not None else b""
        found = [Input(path=path) for item in files for path in self._files(item)]
        found += [Input(path=path, is_config=True) for path in config]
        self.items = self._readable(found)
        if not self.items:
            raise InputError(
                "no input is a text that can be shared",
                hint="; ".join(self.left_out) or "give the log file itself",
            )

    def stdin(self) -> BinaryIO:
        """Return standard input anew."""
        return io.BytesIO(self._stdin)

    def read(self, item: Input) -> Source:
        """Read an input as a diagnosis does."""
        return read_source(item.path, stdin=self.stdin())

    def _readable(self, found: list[Input]) -> list[Input]:
        """Return those that are texts, each once."""
        kept: dict[str, Input] = {}
        for item in found:
            key = item.path if item.path == STDIN else os.path.realpath(item.path)
            if key in kept:
                continue
            try:
                self.read(item)
            except OomdoctorError as fault:
                self.left_out.append(f"{item.path}: {getattr(fault, 'message', fault)}")
            else:
                kept[key] = item
        return list(kept.values())

    def _files(self, item: str) -> Iterator[str]:
        if item == STDIN or not Path(item).is_dir():
            yield item
            return
        given = 0
        for folder, names, files in os.walk(item):
            depth = len(Path(folder).relative_to(item).parts)
            names[:] = sorted(name for name in names if name[0] != "." and depth < _DEEPEST)
            for name in sorted(files):
                path = Path(folder) / name
                if name[0] == "." or not path.is_file() or path.stat().st_size == 0:
                    continue
                given += 1
                if given > _MOST_FILES:
                    self.left_out.append(f"{item}: files after the first {_MOST_FILES}")
                    return
                yield str(path)


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
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    return name or "input.txt"
