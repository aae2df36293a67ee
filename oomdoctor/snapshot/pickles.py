r"""Reads the pickle of a snapshot without running anything of it.

    \x80\x04\x95...}\x94(\x8c\x08segments\x94]\x94(}\x94(\x8c\x06device\x94K\x00...

Before it is loaded, every instruction is looked at: only those that make numbers, text, lists,
dictionaries and tuples of numbers are let through. So no class is looked up, no integer has
millions of digits, no table is made for objects that are not there, and no key takes for ever to
hash. Memory stays within some dozen times the size of the file.
"""

from __future__ import annotations

import io
import pickle
import re
from functools import cache

from oomdoctor.errors import InputError

RUN = 400
CONTAINERS_PER_BYTE = 1 / 12
CONTAINERS_ANYWAY = 10_000
MEMO_ANYWAY = 256
MEMO_BYTES = 6
MOST_DIGITS = 20
PREFIXES = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x55: 1, 0x54: 4, 0x43: 1, 0x42: 4}
NAMES = {
    0x63: "GLOBAL",
    0x93: "STACK_GLOBAL",
    0x52: "REDUCE",
    0x62: "BUILD",
    0x69: "INST",
    0x6F: "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    0x50: "PERSID",
    0x51: "BINPERSID",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x8F: "EMPTY_SET",
    0x91: "FROZENSET",
    0x8B: "LONG4",
}


@cache
def _run() -> re.Pattern[bytes]:
    """Match instructions that need no look at their operands."""
    longs = rb"|".join(b"%b.{%d}" % (re.escape(bytes([n])), n) for n in range(10))
    number = rb"(?:K.|M..|J.{4}|\x8a(?:" + longs + rb"))(?:\x95.{8})?"  # a frame may begin here
    several = rb"".join(
        b"|" + b"(?:" + number + b"){%d}" % n + sign
        for n, sign in ((1, rb"\x85"), (2, rb"\x86"), (3, rb"\x87"))
    )
    one = rb"[\]}()NueasMEMO]".replace(b"MEMO", rb"\x88\x89\x94dl")
    run = rb"(?:" + one + rb"|h.|q.|j.{4}|G.{8}" + several + rb"|" + number + rb"){1,%d}" % RUN
    return re.compile(run, re.DOTALL)


@cache
def _line() -> re.Pattern[bytes]:
    """Match the instructions of protocol 0, whose operand is a line of text."""
    return re.compile(rb"(?:[IL]-?\d{1,20}L?|F[-+.\de]{1,40}|[pg]\d{1,9}|[VS][^\n]*)\n")


def load_pickle(data: bytes) -> object:
    """Return what a pickle of plain values holds; InputError for any other one."""
    check_pickle(data)
    try:
        return _Plain(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError) as error:
        raise InputError(f"the pickle is damaged: {error}") from error
    except (UnicodeDecodeError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(f"the pickle is damaged: {error}") from error


class _Plain(pickle.Unpickler):
    """Loads plain values; it finds no class."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")

    def persistent_load(self, pid: object, /) -> object:
        raise pickle.UnpicklingError(f"it asks for the object {pid!r}")


def check_pickle(data: bytes) -> None:
    """Look at every instruction; InputError at the first one that a snapshot does not have."""
    containers = sum(data.count(sign) for sign in (b"}", b"]", b"(d", b"(l"))
    if containers > len(data) * CONTAINERS_PER_BYTE + CONTAINERS_ANYWAY:
        raise InputError(
            f"the pickle is no snapshot: its {len(data):,} bytes begin {containers:,} lists and"
            " dictionaries, which hold nothing"
        )
    run, at, end = _run(), 0, len(data)
    while at < end:
        found = run.match(data, at)
        if found is not None:
            at = found.end()
            continue
        if data[at] == 0x2E:  # STOP
            return
        at = _next(data, at)
    raise _cut_off(data, end)


def _next(data: bytes, at: int) -> int:
    """Return where the next instruction begins."""
    sign = data[at]
    width = PREFIXES.get(sign)
    if width is not None:
        after = at + 1 + width
        after += int.from_bytes(data[at + 1 : after], "little")
    elif sign == 0x80:  # PROTO
        after = at + 2
    elif sign == 0x95:  # FRAME
        after = at + 9
    elif sign == 0x72:  # LONG_BINPUT
        after = at + 5
        if int.from_bytes(data[at + 1 : after], "little") > MEMO_ANYWAY + at // MEMO_BYTES:
            raise _refused(data, at, "it numbers objects that are not there")
    elif sign == 0x74:  # TUPLE
        after = at + 1
        _check_tuple(data, at)
    else:
        after = _line_end(data, at)
    if after > len(data):
        raise _cut_off(data, at)
    return after


def _line_end(data: bytes, at: int) -> int:
    found = _line().match(data, at)
    if found is None:
        name = NAMES.get(data[at])
        raise _refused(data, at, f"instruction {name}" if name else "an unknown instruction")
    if data[at : at + 1] == b"p" and int(found[0][1:]) > MEMO_ANYWAY + at // MEMO_BYTES:
        raise _refused(data, at, "it numbers objects that are not there")
    return found.end()


def _check_tuple(data: bytes, at: int) -> None:
    """Let a tuple of protocol 0 or 1 through if it is made of small numbers."""
    start = data.rfind(b"(", max(0, at - 3 * MOST_DIGITS), at)
    part = data[start + 1 : at]
    if start < 0 or not re.fullmatch(rb"(?:K.|M..|J.{4}|[IL]-?\d{1,20}L?\n)*", part, re.DOTALL):
        raise _refused(data, at, "a tuple of other things than numbers")


def _cut_off(data: bytes, at: int) -> InputError:
    """Say where the last instruction stands that a file has only in part, or none behind it."""
    return InputError(
        f"the pickle ends before its end, at byte {at:,} of {len(data):,}: the file was cut off"
    )


def _refused(data: bytes, at: int, what: str) -> InputError:
    return InputError(
        f"the pickle is no snapshot: {what} at byte {at:,} (0x{data[at]:02x}); nothing of it was"
        " run",
        hint="a snapshot is what torch.cuda.memory._dump_snapshot writes",
    )
