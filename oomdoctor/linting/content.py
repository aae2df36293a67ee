"""What a file holds, to the byte: a config that is to be fixed must be written as it was.

Line ends, a byte order mark, UTF-16 and a missing last line end stay as they are. What can only
be read with loss (NUL bytes, cp1252, many megabytes) is read as a log is, and never written.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.evidence.encoding import SAMPLE_BYTES, encoding_of
from oomdoctor.evidence.source import is_compressed, read_source
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from typing import BinaryIO

MOST_BYTES = 16 * 1024**2
MOST_BYTES_NOTEBOOK = 256 * 1024**2
"""Pictures stand in it; they are not looked at."""


class Stored(NamedTuple):
    """How a text stands in its file: the bytes before it, and its codec."""

    codec: str
    mark: bytes = b""

    def bytes_of(self, text: str) -> bytes:
        """Return the bytes of a file with such a text."""
        return self.mark + text.encode(self.codec)


class Content(NamedTuple):
    """The text of an input; `stored` is None where writing it would lose something."""

    text: str
    notes: tuple[str, ...] = ()
    stored: Stored | None = None


def content_of(path: str, *, stdin: BinaryIO | None = None) -> Content:
    """Read a path, `-` is `stdin`; InputError where it is missing, a directory or binary."""
    exact = None if path == "-" else _exactly(path)
    if exact is not None:
        return exact
    source = read_source(path, stdin=stdin)
    return Content(source.text, source.notes)


def _exactly(path: str) -> Content | None:
    """Read a file that its text says all of; None for any other."""
    most = MOST_BYTES_NOTEBOOK if path.lower().endswith(".ipynb") else MOST_BYTES
    try:
        seen = os.stat(path)
        if not stat.S_ISREG(seen.st_mode) or not 0 < seen.st_size <= most:
            return None
        with open(path, "rb") as file:
            data = file.read(most)
    except (OSError, ValueError):
        return None  # the other reader says why
    if is_compressed(data[:8]):
        return None
    encoding = encoding_of(data[:SAMPLE_BYTES], name=path)
    stored = Stored(encoding.codec, data[: encoding.skip])
    try:
        text = data[encoding.skip :].decode(stored.codec)
        same = stored.bytes_of(text) == data
    except UnicodeError:
        return None
    if not same or "\0" in text or text.startswith("\ufeff"):
        return None
    note = () if encoding.note is None else (f"{path}: {encoding.note}",)
    return Content(text, note, stored)


def rewrite(path: str, stored: Stored, *, before: str, after: str) -> None:
    """Put `after` in the place of `before`; links, permissions and owner of the file stay.

    InputError where it cannot be written, or holds something else by now: then it is left alone.
    """
    old, new = stored.bytes_of(before), stored.bytes_of(after)
    try:
        with open(path, "r+b") as file:
            if file.read(len(old) + 1) != old:
                raise InputError(
                    "it has changed since it was read: it is left as it is",
                    location=Location(path=path),
                    hint="run the command again",
                )
            try:
                _put(file, new)
            except OSError:
                with suppress(OSError):  # its old bytes had room
                    _put(file, old)
                raise
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", location=Location(path=path)) from error


def _put(file: BinaryIO, data: bytes) -> None:
    file.seek(0)
    file.write(data)
    file.flush()
    file.truncate()
