"""The functions that a shared library exports, read from its ELF file (64 bit, little endian)."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"
_DYNAMIC_SYMBOLS = 11
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTION = 2


def exported(path: Path) -> frozenset[str]:
    """Return the names of the functions a library defines for others; none if it is no ELF file."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return frozenset()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return frozenset(_functions(data)) if data[:6] == _MAGIC else frozenset()


def _functions(data: mmap.mmap) -> list[str]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    _, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, start + _SECTION.size * i) for i in range(count)]
    names = []
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        strings = sections[link][4]
        for name, info, _, section, _, _ in _SYMBOL.iter_unpack(data[offset : offset + size]):
            if section and info & 0xF == _FUNCTION:
                begin = strings + name
                names.append(data[begin : data.find(b"\0", begin)].decode("ascii", "replace"))
    return names
