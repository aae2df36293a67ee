"""Compressed logs are read as they are, in bounded memory, and zstd says what it needs."""

from __future__ import annotations

import io
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.evidence import compressed
from oomdoctor.evidence.source import Source, read_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

TEXT = b"first line\nCUDA out of memory. Tried to allocate 2.00 MiB\nlast line\n"
SKIPPABLE = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
MODULES = ("compression.zstd", "backports.zstd", "zstandard")


def module_of(name: str) -> ModuleType:
    return pytest.importorskip(name, exc_type=ImportError)


def packed(data: bytes) -> bytes:
    for name in MODULES:
        try:
            done: bytes = import_module(name).compress(data)
        except ImportError:
            continue
        return done
    pytest.skip("nothing here makes zstd data")


@pytest.fixture(params=MODULES)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let one of the modules that read zstd be the only one."""
    name: str = request.param
    module = module_of(name)

    def only(asked: str) -> Any:
        if asked != name:
            raise ImportError(asked)
        return module

    monkeypatch.setattr(compressed, "import_module", only)
    return name


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read(data: bytes) -> Source:
    return read_source("-", stdin=io.BytesIO(data))


@pytest.mark.usefixtures("reader")
def test_zstd_is_seen_through() -> None:
    source = read(packed(TEXT))

    assert source.text == TEXT.decode()
    assert source.notes == ("<stdin>: zstd was decompressed",)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_zstd_frames_follow_one_another(size: int) -> None:
    data = packed(TEXT) + packed(TEXT) + SKIPPABLE + packed(TEXT)

    text = b"".join(compressed.decompress(pieces(data, size), "zstd", limit_bytes=10**6))

    assert text == 3 * TEXT


@pytest.mark.usefixtures("reader")
def test_zstd_that_breaks_off_gives_what_is_there() -> None:
    lines = b"".join(b"step %d loss 0.%d\n" % (at, at * 7919 % 9973) for at in range(400_000))
    data = packed(lines)

    source = read(data[: len(data) // 2])

    assert source.lines[0] == (1, "step 0 loss 0.0")


@pytest.mark.usefixtures("reader")
def test_zstd_that_unpacks_without_end_is_read_to_a_limit_in_small_pieces() -> None:
    data = packed(b"all is well\n" * 2_000_000)

    taken = [len(one) for one in compressed.decompress([data], "zstd", limit_bytes=10**6)]

    assert 10**6 <= sum(taken) < 3 * 10**6


@pytest.mark.usefixtures("reader")
def test_damaged_zstd_is_refused() -> None:
    with pytest.raises(InputError, match="the zstd data is damaged"):
        read(b"\x28\xb5\x2f\xfd" + b"no zstd at all")


def test_without_a_module_that_reads_zstd_the_error_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(asked: str) -> Any:
        raise ImportError(asked)

    monkeypatch.setattr(compressed, "import_module", nothing)

    with pytest.raises(InputError) as caught:
        read(b"\x28\xb5\x2f\xfd" + bytes(50))

    assert "zstd-compressed" in caught.value.message
    assert "pip install 'oomdoctor[zstd]'" in str(caught.value.hint)
