"""Inputs as raw lines: a file, standard input or a given text, decoded and bounded."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.evidence import hearing
from oomdoctor.evidence.blocks import WHOLE_BYTES, keep, notes_of, numbered_lines, without_last
from oomdoctor.evidence.encoding import SAMPLE_BYTES, Encoding, encoding_of, transcode
from oomdoctor.evidence.long_lines import LINE_BYTES
from oomdoctor.evidence.sniff import kind_of
from oomdoctor.model.core import Artifact
from oomdoctor.record import NamedTuple, dataclass, replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from oomdoctor.evidence.blocks import Kept

    Progress = Callable[[int, int | None], None]

CHUNK_BYTES = 256 * 1024
UNPACKED_LIMIT_BYTES = 1024**3
HALVED_BYTES = 64 * 1024**2
"""From this size on a second process pays."""

STDIN_ID = "<stdin>"
_COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input as (physical line number, raw text) pairs; `notes` tells what was cut.

    `ends_open` is True where the last line lacks its line feed.
    """

    artifact: Artifact
    lines: tuple[tuple[int, str], ...]
    notes: tuple[str, ...] = ()
    ends_open: bool = False

    @property
    def text(self) -> str:
        """Return all lines joined by line feeds, with the last line feed if the input has it."""
        joined = "\n".join(line for _, line in self.lines)
        return joined if self.ends_open or not self.lines else joined + "\n"


def read_source(
    path: str,
    *,
    stdin: BinaryIO | None = None,
    whole_bytes: int = WHOLE_BYTES,
    progress: Progress | None = None,
) -> Source:
    """Read `path` (`-` is `stdin`) as text; InputError where it is missing, a directory or binary.

    Inputs of more than `whole_bytes` keep head, tail and what surrounds the literals of failures.
    `progress` is told now and then how many bytes of how many have been read.
    """
    if path == "-":
        if stdin is None:
            import sys

            if sys.stdin is None:
                raise InputError("standard input is closed", location=Location(path=STDIN_ID))
            stdin = sys.stdin.buffer
        reading = _Reading(name=STDIN_ID, path=None, whole_bytes=whole_bytes, progress=progress)
        return _read_stream(stdin, reading)
    _check(path)
    reading = _Reading(name=path, path=path, whole_bytes=whole_bytes, progress=progress)
    try:
        with open(path, "rb", opener=_opened) as file:
            return _read_stream(file, reading)
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise InputError(
            f"cannot read it: {reason}",
            location=Location(path=path),
            hint="check the permissions, or give the text on standard input: oomdoctor diagnose -",
        ) from error


def source_of_text(text: str, *, name: str = "<text>") -> Source:
    """Make a source of a text that is at hand already; bounded as a file is."""
    if len(text) > LINE_BYTES and (
        len(text) > WHOLE_BYTES or max(map(len, text.split("\n"))) > LINE_BYTES
    ):
        return _bounded(text.removeprefix("\ufeff"), name=name)
    lines = tuple(enumerate(text.removeprefix("\ufeff").split("\n"), start=1))
    return _named(
        Source(
            artifact=_artifact(name, None, len(text)),
            lines=without_last(lines),
            ends_open=not text.endswith("\n"),
        )
    )


def _bounded(text: str, *, name: str) -> Source:
    """Cut over-long lines of a text, and of one that is too large keep what matters."""
    data = text.encode("utf-8", errors="replace")
    pieces = (data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES))
    kept = keep(pieces, whole_bytes=WHOLE_BYTES)
    lines, decoding = numbered_lines(kept)
    notes = (*(f"{name}: {note}" for note in decoding), *notes_of(kept, name=name))
    artifact = _artifact(name, None, len(text))
    ends_open = not text.endswith("\n")
    return _named(Source(artifact=artifact, lines=lines, notes=notes, ends_open=ends_open))


def _check(path: str) -> None:
    """Refuse what cannot be a log before opening it (opening a device may hang)."""
    place = Location(path=path)
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - same
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"there is no such file ({reason})",
            location=place,
            hint="check the path; `-` reads standard input",
        ) from error
    if stat.S_ISDIR(mode):
        raise InputError(
            "this is a directory, a file is expected",
            location=place,
            hint=f"name the log in it: {os.path.join(path, '<file>.log')}",  # noqa: PTH118 - same
        )
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not path.startswith(_CHARACTER_DEVICES)):
        raise InputError("this is a device, a file is expected", location=place)


def _opened(path: str, flags: int) -> int:
    """Open a path; a regular file (such as /proc/kmsg) may not keep us waiting for its end."""
    regular = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - same
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) if regular else flags)


_CHARACTER_DEVICES = ("/dev/null", "/dev/stdin", "/dev/fd/", "/dev/tty", "/proc/self/fd/")


class _Reading(NamedTuple):
    """What is read, and how."""

    name: str
    path: str | None
    whole_bytes: int
    progress: Progress | None

    def counting(self, total: int | None) -> Callable[[int], None] | None:
        """Return what is told of each piece that was read."""
        progress = self.progress
        if progress is None:
            return None
        done = 0

        def count(size: int) -> None:
            nonlocal done
            done += size
            progress(done, total)

        return count


def _read_stream(file: BinaryIO, reading: _Reading) -> Source:
    name = reading.name
    chunks, unpacked = _unpack(_chunks(file), name=name)
    notes = [] if unpacked is None else [f"{name}: {unpacked} was decompressed"]
    sample, chunks = _peek(chunks)
    encoding = encoding_of(sample, name=name)
    if encoding.note is not None:
        notes.append(f"{name}: {encoding.note}")
    size = None if unpacked or reading.path is None else _regular_size(file)
    counting = reading.counting(size)
    kept = _in_halves(file, size, encoding, counting)
    if kept is None:
        text = _as_utf8(chunks, encoding)
        kept = keep(text, whole_bytes=reading.whole_bytes, progress=counting)
    lines, decoding = numbered_lines(kept)
    notes.extend(f"{name}: {note}" for note in decoding)
    notes.extend(notes_of(kept, name=name))
    if unpacked is not None and kept.total_bytes >= UNPACKED_LIMIT_BYTES:
        limit = format_size(UNPACKED_LIMIT_BYTES)
        notes.append(f"{name}: it unpacks to more than {limit}, of which only the first were read")
    artifact = _artifact(name, reading.path, kept.total_bytes)
    ends_open = bool(kept.blocks) and not kept.blocks[-1].data.endswith(b"\n")
    return _named(Source(artifact=artifact, lines=lines, notes=tuple(notes), ends_open=ends_open))


def _regular_size(file: BinaryIO) -> int | None:
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _in_halves(
    file: BinaryIO,
    size: int | None,
    encoding: Encoding,
    counting: Callable[[int], None] | None,
) -> Kept | None:
    """Keep what matters of a very large file of plain text with two processes, where that pays."""
    if size is None or size < HALVED_BYTES or encoding.skip or encoding.codec != "utf-8":
        return None
    from oomdoctor.evidence.halves import keep_halves, may_halve

    return keep_halves(file.fileno(), size=size, progress=counting) if may_halve() else None


def _artifact(name: str, path: str | None, size: int) -> Artifact:
    return Artifact(id=name, kind="log", path=path, size_bytes=size)


def _named(source: Source) -> Source:
    """Return the source with the kind that its content has; who listens hears of it."""
    named = replace(source, artifact=replace(source.artifact, kind=kind_of(source)))
    hearing.tell(named)
    return named


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes of a stream, and the stream with them still in it."""
    first: list[bytes] = []
    while sum(map(len, first)) < SAMPLE_BYTES:
        chunk = next(chunks, b"")
        if not chunk:
            break
        first.append(chunk)
    head = b"".join(first)

    def again() -> Iterator[bytes]:
        if head:
            yield head
        yield from chunks

    return head[:SAMPLE_BYTES], again()


def _unpack(chunks: Iterator[bytes], *, name: str) -> tuple[Iterator[bytes], str | None]:
    """Decompress gzip, bzip2, xz and zstd streams on the fly."""
    sample, chunks = _peek(chunks)
    for magic, format_name in _COMPRESSED:
        if sample.startswith(magic):
            return _decompressed(chunks, format_name, name=name), format_name
    return chunks, None


def is_compressed(head: bytes) -> bool:
    """Say whether a file that begins like this is decompressed to be read."""
    return head.startswith(tuple(magic for magic, _ in _COMPRESSED))


def _decompressed(chunks: Iterator[bytes], format_name: str, *, name: str) -> Iterator[bytes]:
    from oomdoctor.evidence.compressed import Damaged, UnsupportedError, decompress

    try:
        yield from decompress(chunks, format_name, limit_bytes=UNPACKED_LIMIT_BYTES)
    except Damaged as error:
        raise InputError(
            f"the {format_name} data is damaged: {error}",
            location=Location(path=name),
            hint="decompress what is left of it and give the text",
        ) from error
    except UnsupportedError as error:
        raise InputError(
            f"this is {format_name}-compressed data, which this Python does not read by itself",
            location=Location(path=name),
            hint=f"{error}, or decompress it first: zstd -d FILE",
        ) from error


def _as_utf8(chunks: Iterator[bytes], encoding: Encoding) -> Iterator[bytes]:
    head, chunks = _peek(chunks)
    del head
    trimmed = _skip(chunks, encoding.skip)
    return trimmed if encoding.codec == "utf-8" else transcode(trimmed, encoding.codec)


def _skip(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[count:]
        count = 0
