"""How the bytes of an input are encoded, or what they are if they are no text at all.

A log may come as UTF-8 with or without BOM, UTF-16 or UTF-32 (PowerShell redirection), cp1252
(Windows consoles), or with NUL bytes sprinkled in (a file that was truncated while it was open).
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_BYTES = 64 * 1024
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_AS_TEXT = "give a text log, a table as text or a config file"
_SNAPSHOT = "give the log of the run; this version reads text, no memory snapshots"
_MAGICS = (
    (b"\x80\x02", "a pickle (memory snapshot or checkpoint)", _SNAPSHOT),
    (b"\x80\x03", "a pickle (memory snapshot or checkpoint)", _SNAPSHOT),
    (b"\x80\x04", "a pickle (memory snapshot or checkpoint)", _SNAPSHOT),
    (b"\x80\x05", "a pickle (memory snapshot or checkpoint)", _SNAPSHOT),
    (b"PK\x03\x04", "a zip archive (PyTorch checkpoints are such)", "unpack it, " + _AS_TEXT),
    (b"\x04\x22\x4d\x18", "lz4-compressed data", "decompress it first: lz4 -d FILE"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"\x7fELF", "an ELF program or a core dump", _AS_TEXT),
    (b"MZ\x90", "a Windows program", _AS_TEXT),
    (b"\x89PNG", "a PNG picture", "copy the text instead of a screenshot"),
    (b"\xff\xd8\xff", "a JPEG picture", "copy the text instead of a screenshot"),
    (b"%PDF-", "a PDF file", "copy the text out of it"),
    (b"GGUF", "GGUF model weights", _AS_TEXT),
    (b"SQLite format 3\x00", "an SQLite database (a profile of nsys?)", _AS_TEXT),
    (b"\x89HDF", "an HDF5 file", _AS_TEXT),
)
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\x07\x08\x1b")
_CONTROLS = bytes(code for code in range(32) if code not in _TEXT_CONTROLS and code != 0)
_MANY_CONTROLS = 0.02
_MANY_NULS = 0.30
_TWO_NULS = b"\x00\x00"


class Encoding(NamedTuple):
    """How to decode an input: codec, bytes of the BOM to skip, and what to tell the user."""

    codec: str
    skip: int = 0
    note: str | None = None


def encoding_of(sample: bytes, *, name: str) -> Encoding:
    """Tell how `sample`, the first bytes of the input `name`, is encoded; InputError if binary."""
    for bom, codec in _BOMS:
        if sample.startswith(bom):
            return Encoding(codec, len(bom), None if codec == "utf-8" else f"read as {codec}")
    _refuse_known_binary(sample, name=name)
    wide = _wide_codec(sample)
    if wide is not None:
        return Encoding(wide, 0, f"read as {wide} (no byte order mark)")
    _refuse_binary(sample, name=name)
    nuls = sample.count(0)
    note = f"{nuls} NUL bytes in the first {len(sample)} bytes were dropped" if nuls else None
    return Encoding("utf-8", 0, note)


def decode(data: bytes) -> tuple[str, str | None]:
    """Decode UTF-8 bytes, or what is nearly so; also return a note where something was replaced."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    high = sum(1 for byte in data[:SAMPLE_BYTES] if byte >= 0x80)
    if broken * 3 > high:
        legacy = data.decode("cp1252", errors="replace")
        return legacy, "not UTF-8: read as cp1252 (Western European)"
    return text, f"{broken} bytes that are not UTF-8 were replaced"


def transcode(chunks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """Turn chunks of a wide encoding into UTF-8 chunks."""
    decoder = codecs.getincrementaldecoder(codec)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", errors="replace")
    yield decoder.decode(b"", final=True).encode("utf-8", errors="replace")


def _wide_codec(sample: bytes) -> str | None:
    """Recognise UTF-16 and UTF-32 without BOM by where the NUL bytes of ASCII text stand."""
    body = sample[: len(sample) // 4 * 4]
    nuls = body.count(0)
    if len(body) < 8 or nuls < len(body) * _MANY_NULS:
        return None
    quarter = len(body) // 4
    by_place = [body[place::4].count(0) for place in range(4)]
    few, most = quarter * 0.2, quarter * 0.8
    if by_place[0] < few and min(by_place[1:]) > most:
        return "utf-32-le"
    if by_place[3] < few and min(by_place[:3]) > most:
        return "utf-32-be"
    if by_place[0] + by_place[2] < 2 * few and by_place[1] + by_place[3] > quarter:
        return "utf-16-le"
    if by_place[1] + by_place[3] < 2 * few and by_place[0] + by_place[2] > quarter:
        return "utf-16-be"
    return None


def _refuse_known_binary(sample: bytes, *, name: str) -> None:
    for magic, what, hint in _MAGICS:
        if sample.startswith(magic):
            raise InputError(f"this is {what}, no text", location=Location(path=name), hint=hint)
    if sample[257:262] == b"ustar":
        raise InputError(
            "this is a tar archive, no text",
            location=Location(path=name),
            hint="unpack it and give the log inside",
        )
    if len(sample) > 10 and sample[5:8] == b"\x00\x00\x00" and sample[8:10] == b'{"':
        raise InputError(
            "this is a safetensors file (weights), no text",
            location=Location(path=name),
            hint=_AS_TEXT,
        )


def _refuse_binary(sample: bytes, *, name: str) -> None:
    if not sample:
        return
    controls = len(sample) - len(sample.translate(None, delete=_CONTROLS))
    nuls = sample.count(0)
    runs = sum(len(run) for run in sample.split(b"\n") if run.startswith(_TWO_NULS))
    scattered = max(0, nuls - runs)
    if controls > len(sample) * _MANY_CONTROLS or scattered > len(sample) * _MANY_NULS:
        share = round(100 * (controls + nuls) / len(sample))
        raise InputError(
            f"this looks like binary data ({share} % control bytes at its start)",
            location=Location(path=name),
            hint=_AS_TEXT,
        )
