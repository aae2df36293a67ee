"""What several ranks hold is reduced as NCCL would, in every type that it has."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Load = Callable[..., ctypes.CDLL]

SUM, PRODUCT, LARGEST, SMALLEST, AVERAGE, OWN = range(6)
INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT, FP8 = range(11)


class Values(ctypes.Structure):
    """`struct vc_values`."""

    _fields_ = (("bytes", ctypes.c_size_t), ("data", ctypes.c_void_p), ("known", ctypes.c_void_p))


def reduced(
    core: ctypes.CDLL, kind: int, operation: int, parts: Sequence[bytes], unknown: int | None = None
) -> tuple[bytes, bytes]:
    """Return the result and which bytes are known, where one of the last part is unknown."""
    size = len(parts[0])
    keep: list[object] = []

    def values(data: bytes, known: bytes) -> Values:
        buffers = ctypes.create_string_buffer(data, size), ctypes.create_string_buffer(known, size)
        keep.extend(buffers)
        return Values(size, *(ctypes.addressof(one) for one in buffers))

    known = [b"\1" * size for _ in parts]
    if unknown is not None:
        known[-1] = bytes(at != unknown for at in range(size))
    given = (Values * len(parts))(*map(values, parts, known))
    into = values(bytes(size), bytes(size))
    core.vc_reduce(kind, operation, len(parts), given, ctypes.c_size_t(0), ctypes.byref(into))
    return ctypes.string_at(into.data, size), ctypes.string_at(into.known, size)


@pytest.mark.parametrize(
    ("kind", "code", "one", "other", "sum_"),
    [
        (INT8, "b", -5, 7, 2),
        (UINT8, "B", 100, 100, 200),
        (INT32, "i", -(2**31) + 1, 5, -(2**31) + 6),
        (UINT32, "I", 2**31, 5, 2**31 + 5),
        (INT64, "q", 2**62 + 1, 2, 2**62 + 3),
        (UINT64, "Q", 2**63, 3, 2**63 + 3),
        (HALF, "e", 1.5, 0.25, 1.75),
        (HALF, "e", 6e-8, 6e-8, 1.2e-7),
        (FLOAT, "f", 1.5, -0.25, 1.25),
        (DOUBLE, "d", 1e300, 1e300, 2e300),
    ],
)
def test_sums_are_right_in_every_type(
    core: Load, kind: int, code: str, one: float, other: float, sum_: float
) -> None:
    parts = [struct.pack(f"<{code}", value) for value in (one, other)]

    data, known = reduced(core(), kind, SUM, parts)

    assert data == struct.pack(f"<{code}", sum_)
    assert set(known) == {1}


def test_fractions_of_16_bits_round_to_even(core: Load) -> None:
    card = core()

    def bfloat(value: float) -> bytes:
        return struct.pack("<f", value)[2:]

    half = reduced(card, HALF, SUM, [struct.pack("<e", 2048.0), struct.pack("<e", 1.0)])[0]
    large = reduced(card, HALF, SUM, [struct.pack("<e", 65504.0)] * 2)[0]
    brain = reduced(card, BFLOAT, SUM, [bfloat(256.0), bfloat(1.0)])[0]

    assert struct.unpack("<e", half) == (2048.0,)
    assert struct.unpack("<e", large) == (float("inf"),)
    assert brain == bfloat(256.0)


@pytest.mark.parametrize(
    ("operation", "result"),
    [(SUM, 12), (PRODUCT, 42), (LARGEST, 7), (SMALLEST, 2), (AVERAGE, 4)],
)
def test_operations(core: Load, operation: int, result: int) -> None:
    parts = [struct.pack("<q", value) for value in (2, 3, 7)]

    assert reduced(core(), INT64, operation, parts)[0] == struct.pack("<q", result)


def test_an_element_is_known_where_it_is_known_of_all(core: Load) -> None:
    parts = [struct.pack("<2i", 1, 2)] * 2

    _, known = reduced(core(), INT32, SUM, parts, unknown=5)

    assert known == b"\1" * 4 + b"\0" * 4


@pytest.mark.parametrize(("kind", "operation"), [(FLOAT, OWN), (FP8, SUM)])
def test_what_nobody_can_reduce_is_unknown(core: Load, kind: int, operation: int) -> None:
    _, known = reduced(core(), kind, operation, [bytes(4)] * 2)

    assert known == bytes(4)
