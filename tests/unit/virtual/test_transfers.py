"""Messages between ranks are waited for when somebody needs them, and unknown bytes stay so."""

from __future__ import annotations

import ctypes
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Load = Callable[..., ctypes.CDLL]

SHARED = Path("/dev") / "shm"
SIZE = ctypes.c_size_t
TO_ALL, NO_REDUCTION, INT64, SUM = -1, -1, 4, 0
NUMBERS = itertools.count()


class Values(ctypes.Structure):
    """`struct vc_values`."""

    _fields_ = (("bytes", SIZE), ("data", ctypes.c_void_p), ("known", ctypes.c_void_p))


class Ranks(ctypes.Structure):
    """`struct vc_ranks`."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("count", "rank", "card")),
        ("name", ctypes.c_char * 64),
        ("used", ctypes.c_int),
        *((name, ctypes.c_ulong) for name in ("messages", "deleted")),
        *((name, ctypes.c_void_p) for name in ("sent", "received", "members", "next")),
        ("buffers", SIZE),
    )


class Work(ctypes.Structure):
    """`struct vc_work`."""

    _fields_ = (("stream", ctypes.c_int), ("number", ctypes.c_ulong))


class Transfer(ctypes.Structure):
    """`struct vc_transfer`."""

    _fields_ = (
        ("ranks", ctypes.POINTER(Ranks)),
        ("work", Work),
        *((name, ctypes.c_int) for name in ("to", "first", "end")),
        ("number", ctypes.c_ulong),
        *((name, SIZE) for name in ("offset", "taken")),
        *((name, ctypes.c_int) for name in ("type", "operation")),
        ("target", SIZE),
        ("own", Values),
    )


class Rank:
    """One of two ranks, with a card of its own."""

    def __init__(self, core: ctypes.CDLL, name: str, rank: int) -> None:
        """Join the other one."""
        core.vc_room_for.restype = Values
        self.core = core
        self.ranks = Ranks(count=2, rank=rank, name=name.encode())
        core.vc_join(ctypes.byref(self.ranks))
        address = SIZE()
        core.vc_allocate(0, SIZE(1 << 20), ctypes.byref(address))
        self.address = address.value

    def values(self, data: bytes, known: bytes = b"") -> Values:
        made: Values = self.core.vc_room_for(SIZE(len(data)))
        ctypes.memmove(made.data, data, len(data))
        ctypes.memmove(made.known, known or b"\1" * len(data), len(data))
        return made

    def send(self, data: bytes, to: int, number: int = 0, known: bytes = b"") -> None:
        values = self.values(data, known)
        self.core.vc_post(
            ctypes.byref(self.ranks), to, ctypes.c_ulong(number), ctypes.byref(values)
        )

    def expect(self, size: int, number: int = 0) -> None:
        """Expect a message of the other rank to this one."""
        other = 1 - self.ranks.rank
        transfer = Transfer(
            ranks=ctypes.pointer(self.ranks),
            work=Work(stream=0, number=1),
            to=self.ranks.rank,
            first=other,
            end=other + 1,
            number=number,
            taken=size,
            operation=NO_REDUCTION,
            target=self.address,
            own=Values(bytes=size),
        )
        self.core.vc_expect(ctypes.byref(transfer))

    def reduce(self, value: int) -> None:
        """Expect the sum of what both ranks say."""
        data = value.to_bytes(8, "little")
        self.send(data, TO_ALL)
        transfer = Transfer(
            ranks=ctypes.pointer(self.ranks),
            to=TO_ALL,
            end=2,
            taken=8,
            type=INT64,
            operation=SUM,
            target=self.address,
            own=self.values(data),
        )
        self.core.vc_expect(ctypes.byref(transfer))
        self.ranks.messages += 1

    def read(self, size: int) -> bytes | None:
        buffer = ctypes.create_string_buffer(size)
        known = self.core.vc_known(SIZE(self.address), buffer, SIZE(size))
        return buffer.raw if known else None

    @property
    def waiting(self) -> int:
        return ctypes.c_int.in_dll(self.core, "vc_transfers").value


@pytest.fixture
def pair(core: Load) -> Iterator[tuple[Rank, Rank]]:
    """Two ranks, which leave no file behind."""
    if not SHARED.is_dir():
        pytest.skip("there is no shared memory")
    name = f"test-{os.getpid()}-{next(NUMBERS)}"
    ranks = Rank(core(), name, 0), Rank(core(), name, 1)
    yield ranks
    for one in ranks:
        one.core.vc_leave(ctypes.byref(one.ranks))
    assert list(SHARED.glob(f"oomdoctor-*-{name}-*")) == []


def test_two_ranks_that_first_receive_do_not_wait_for_each_other(pair: tuple[Rank, Rank]) -> None:
    for one in pair:
        one.expect(5)
    for one in pair:
        one.send(b"from%d" % one.ranks.rank, 1 - one.ranks.rank)

    assert [one.read(5) for one in pair] == [b"from1", b"from0"]
    assert [one.waiting for one in pair] == [0, 0]


def test_unknown_bytes_stay_unknown(pair: tuple[Rank, Rank]) -> None:
    pair[0].expect(4)
    pair[1].send(b"1234", 0, known=b"\1\1\0\0")

    assert pair[0].read(4) is None
    assert pair[0].read(2) == b"12"


def test_what_is_written_later_stays(pair: tuple[Rank, Rank]) -> None:
    pair[0].expect(4)
    pair[0].core.vc_written(SIZE(pair[0].address), b"ours", SIZE(4))
    pair[1].send(b"sent", 0)
    pair[0].core.vc_settle_what_came()

    assert (pair[0].read(4), pair[0].waiting) == (b"ours", 0)


def test_messages_come_in_the_order_in_which_they_were_sent(pair: tuple[Rank, Rank]) -> None:
    for number in range(2):
        pair[0].expect(1, number)
    for number in range(2):
        pair[1].send(b"%d" % number, 0, number)

    assert pair[0].read(1) == b"1"


def test_waiting_for_the_work_is_waiting_for_the_message(pair: tuple[Rank, Rank]) -> None:
    stream, before = ctypes.c_void_p(0x10040), pair[0].waiting
    pair[0].core.vc_launch(stream)
    pair[0].expect(2)
    pair[1].send(b"ok", 0)

    pair[0].core.vc_finish_stream(stream)

    assert (before, pair[0].waiting) == (0, 0)


def test_sums_are_those_of_all_ranks(pair: tuple[Rank, Rank]) -> None:
    for one in pair:
        one.reduce(20 + one.ranks.rank)

    assert [one.read(8) for one in pair] == [(41).to_bytes(8, "little")] * 2


def test_a_rank_that_left_is_not_waited_for_and_that_is_said(core: Load, tmp_path: Path) -> None:
    name, log = f"test-{os.getpid()}-{next(NUMBERS)}", tmp_path / "log"
    one, other = Rank(core(LOG=log), name, 0), Rank(core(LOG=log), name, 1)
    one.reduce(20)
    other.core.vc_leave(ctypes.byref(other.ranks))

    seen = one.read(8)
    one.core.vc_leave(ctypes.byref(one.ranks))

    assert seen == (40).to_bytes(8, "little"), "as if the other held the same"
    assert log.read_text() == "assumed a rank did not send in time what another waited for\n"


def test_a_rank_may_run_alone(core: Load) -> None:
    one = Rank(core(PEER_WAIT_S=0), f"test-{os.getpid()}-{next(NUMBERS)}", 0)

    one.reduce(21)

    assert one.read(8) == (42).to_bytes(8, "little")
