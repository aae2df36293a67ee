"""Streams of gzip, bzip2, xz and zstd data, decompressed chunk by chunk and bounded.

Python reads zstd by itself from 3.14 on; before, one of two packages must be there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_STEP_BYTES = 256 * 1024
_ZSTD_STEP_BYTES = 128
"""Small enough that what it unpacks to at most, some thousand times as much, is soon held."""

_ZSTD_WINDOW_BYTES = 128 * 1024**2


class Damaged(Exception):  # noqa: N818 - it is a state of the data, and never reaches the user
    """The compressed data breaks off or does not decode, before any text came out of it."""


class UnsupportedError(Exception):
    """This Python cannot decompress the format; the message says what to install."""


class _Decompressor(Protocol):
    """What the decompressors of bz2, lzma and zstd share, and `_Gzip` imitates."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes: ...


def decompress(chunks: Iterable[bytes], format_name: str, *, limit_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed pieces of `chunks`, at most `limit_bytes` of them.

    Data that breaks off after some text came out ends the stream quietly: a log that is being
    written is no error.
    """
    make, errors = _maker(format_name)
    given = 0
    machine = make()
    try:
        for chunk in chunks:
            rest = chunk
            while rest or not (machine.needs_input or machine.eof):
                if machine.eof:
                    machine = make()
                piece = machine.decompress(rest, _STEP_BYTES)
                rest = machine.unused_data if machine.eof else b""
                if not rest.strip(b"\x00"):
                    rest = b""
                given += len(piece)
                if piece:
                    yield piece
                if given >= limit_bytes:
                    return
    except errors as error:
        if given == 0:
            raise Damaged(str(error)) from error


def _maker(format_name: str) -> tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]:
    if format_name == "gzip":
        import zlib

        return _Gzip, (zlib.error,)
    if format_name == "bz2":
        import bz2

        return bz2.BZ2Decompressor, (OSError, EOFError)
    if format_name == "zstd":
        return _zstd_maker()
    import lzma

    return lzma.LZMADecompressor, (lzma.LZMAError, EOFError)


def _zstd_maker() -> tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        return module.ZstdDecompressor, (module.ZstdError, EOFError)
    try:
        zstandard: Any = import_module("zstandard")
    except ImportError as error:
        raise UnsupportedError(
            "install the package that does: pip install 'oomdoctor[zstd]'"
        ) from error
    make = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj
    return lambda: _Zstandard(make), (zstandard.ZstdError, EOFError)


class _Zstandard:
    """A frame read by the package `zstandard`, with the interface that bz2 and lzma have.

    That package gives all text of its input at once, so the input goes in small pieces.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._machine = make()
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return bool(self._machine.eof)

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return bytes(self._machine.unused_data) + self._waiting

    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes:
        del max_length
        joined = self._waiting + data
        self._waiting = joined[_ZSTD_STEP_BYTES:]
        return bytes(self._machine.decompress(joined[:_ZSTD_STEP_BYTES]))


class _Gzip:
    """A gzip member with the interface that bz2 and lzma have."""

    def __init__(self) -> None:
        import zlib

        self._machine = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._machine.eof

    @property
    def needs_input(self) -> bool:
        return not self._machine.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._machine.unused_data

    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes:
        return self._machine.decompress(self._machine.unconsumed_tail + data, max(0, max_length))
