"""The bundle as a start reads it: one JSON file, and a look at which YAML files are newer."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CAUSES, PRIORS = "causes.yaml", "priors.yaml"
BUNDLE, LINT = "bundle.json", "lint.json"
LINT_FAMILIES = frozenset({"MEM1", "COR2", "KEY3", "SPD4", "QLT5"})
SHARED_FAMILIES = frozenset({"CFG9"})
FORMAT = 2
FIXES_MARK = b',\n"fixes":[\n'


class Stored(NamedTuple):
    """A bundle: its values without the fixes, those of each rule as JSON text, and its age."""

    values: dict[str, Any]
    fixes: list[bytes]
    written_ns: int


def home() -> str:
    """Return where the rules are: inside an installed package, else beside it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = f"{package}/_rules"
    return installed if os.path.isdir(installed) else f"{os.path.dirname(package)}/rules"


def belongs(name: str, bundle: str) -> bool:
    """Say whether a file of rules is part of a bundle; by the family that its name begins with."""
    base = name.rpartition("/")[2]
    family = base[:4]
    if bundle == LINT:
        return family in LINT_FAMILIES or family in SHARED_FAMILIES
    return family not in LINT_FAMILIES


def read(directory: str, bundle: str = BUNDLE) -> Stored | None:
    """Read a bundle of a directory; None where there is none, or one of another format."""
    try:
        with open(f"{directory}/{bundle}", "rb") as file:
            written = os.fstat(file.fileno()).st_mtime_ns
            head, found, tail = file.read().partition(FIXES_MARK)
        values = json.loads(head + b"}" if found else head)
    except (OSError, ValueError):
        return None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        return None
    rows = tail.split(b"\n")[:-2]
    return Stored(values, [row.removesuffix(b",") for row in rows], written)


def fingerprint(content: bytes) -> list[int]:
    """Return size and checksum of a file's content."""
    return [len(content), zlib.crc32(content)]


def changed(directory: str, stored: Stored | None, bundle: str = BUNDLE) -> frozenset[str]:
    """Return the YAML files that are new, edited or gone since the bundle was written.

    Size first; the content is read only where a file is younger than the bundle. An installed
    package may hold the bundle alone.
    """
    files = _files(directory, bundle)
    found = {path.removeprefix(f"{directory}/"): status for path, status in files}
    present = {name: status for name, status in found.items() if belongs(name, bundle)}
    if stored and not present.keys() - {CAUSES, PRIORS}:
        return frozenset()
    known: Mapping[str, list[int]] = stored.values["files"] if stored else {}
    names = {name for name in known if name not in present}
    for name, status in present.items():
        held = known.get(name)
        if held is None or status.st_size != held[0]:
            names.add(name)
        elif stored and status.st_mtime_ns > stored.written_ns:
            with open(f"{directory}/{name}", "rb") as file:
                if fingerprint(file.read()) != held:
                    names.add(name)
    return frozenset(names)


def _files(directory: str, bundle: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of the YAML files below a directory, not of the other bundle's."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".yaml"):
                yield entry.path, entry.stat()
            elif belongs(entry.name, bundle) and entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, bundle)
