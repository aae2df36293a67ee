"""Where a block of bytes may tell of a failure: few short literals first, a closer look behind.

A log of a gigabyte is looked through for a dozen short literals, each one scan in C over a block
that fits a core's cache. What a short literal finds is `strong` where one of the failure literals
around it is there too, else `weak` (any exception, any `Killed`). Where a literal stands on every
line (`killed workers: 0`) a block costs a few more scans, and not one look per line.

With the extra `fast` one scan by hyperscan says which of the short literals a block has at all.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STRONG: dict[bytes, tuple[bytes, ...]] = {
    b"out of ": (
        *(b"out of memory", b"out of gpu", b"out of device", b"out of video", b"out of cuda"),
        *(b"out of vram", b"out of resource", b"out of shared", b"out of hbm", b"out of host"),
    ),
    b"error": (
        *(b"memoryerror", b"resourceexhaustederror", b"erroroutof", b"error_out_of"),
        *(b"outofmemory", b"outofresource", b"outofdevicememory"),
        *(b"cuda error", b"hip error", b"cuda runtime error", b"cuda driver error", b"cuda_error"),
        *(
            b"cudaerror",
            b"hiperror",
            b"bus error",
            b"error 1455",
            b"error: dataloader",
        ),
        *(b"error: received 0 items", b"error: mps", b"error: xpu", b"error: npu", b"nccl error"),
        *(b"cudnn error", b"cublas error", b"error: not enough", b"error: no available"),
        *(b"error: unable to", b"error: one of the subproc", b"error: free memory on device"),
        *(b"error: could not alloc", b"error: [enforce", b"error_device_lost", b"nvml error"),
        *(b"error: invalid buffer", b"distbackenderror", b"slurmstepd: error"),
    ),
    b"kill": (
        *(b"oom-kill", b"oom_kill", b"oomkill", b"oom kill", b"killed process", b"signal: kill"),
        *(b"sigkill", b"killing container", b"killed due", b"being killed", b"was killed"),
        *(b"code=kill", b"killing subprocess", b"been killed", b"killed by", b"\nkilled\n"),
        *(b"killed   ", b"(killed)"),
    ),
    b"fail": (
        *(b"alloc_fail", b"failed to alloc", b"allocation fail", b"allocation_fail", b"alloc fail"),
        *(b"malloc fail", b"cuda failure", b"enforce fail", b"failed to cuda", b"malloc() fail"),
        *(b"fallocate fail", b"failed to extend", b"` failed", b"assertion fail", b"alloc() fail"),
        *(
            b"failed with error out of",
            b"failed or timed out",
            b"failed: out",
            b"failed (exitcode: -",
            b"mmap fail",
        ),
    ),
    b"allocate ": (b"to allocate ", b"not allocate ", b"t allocate "),
    b"exhausted": (b"resource_exhausted", b"resource exhausted", b"resourceexhausted"),
    b"exit": (
        *(b"exitcode: -", b"exit code: 137", b"exit code 137", b"exited with code 137"),
        *(
            b"exit status 137",
            b"exits with return code = -",
            b"exited unexpectedly",
            b"exited (137",
        ),
        *(b"exit code: -", b"exit code -", b"exitcode=-"),
    ),
    b"watchdog": (b"watchdog caught",),
    b"bad_alloc": (b"bad_alloc",),
}
"""Each short literal, in lower case, with the failure literals around it that make it strong.

A failure whose own words have none of them stands beside one that has: an exception is an error.
"""

ANCHORS = tuple(STRONG)
LOOKS = 16
"""So often a short literal is looked at in one block; beyond, the failure literals are scanned."""

REACH = 48
"""A failure literal stands within so many bytes before and after its short one."""


class Hit(NamedTuple):
    """A place that may tell of a failure, the literal found there, and how plainly it says so."""

    at: int
    literal: bytes
    strong: bool


def hits_in(data: bytes) -> list[Hit]:
    """Return of each literal in `data` the first and the last place, in order."""
    present = _filter()(data)
    if not present:
        return []
    lowered = data.lower()
    firsts: dict[bytes, Hit] = {}
    lasts: dict[bytes, Hit] = {}
    for anchor in present:
        for hit in _hits_of(lowered, anchor):
            held = firsts.setdefault(hit.literal, hit)
            if hit.at < held.at:
                firsts[hit.literal] = hit
            last = lasts.get(hit.literal)
            if last is None or hit.at > last.at:
                lasts[hit.literal] = hit
    return sorted({*firsts.values(), *lasts.values()})


def strong_in(text: bytes) -> int | None:
    """Return the first place in `text` where a failure literal stands."""
    return next((hit.at for hit in hits_in(text) if hit.strong), None)


def _hits_of(lowered: bytes, anchor: bytes) -> Iterator[Hit]:
    """Yield what one short literal finds; of very many places those that matter."""
    at = lowered.find(anchor)
    for _ in range(LOOKS):
        if at < 0:
            return
        yield _judged(lowered, anchor, at)
        at = lowered.find(anchor, at + len(anchor))
    if at < 0:
        return
    for literal in STRONG[anchor]:
        first = lowered.find(literal)
        if first >= 0:
            yield Hit(first, literal, strong=True)
            yield Hit(lowered.rfind(literal), literal, strong=True)
    yield _judged(lowered, anchor, lowered.rfind(anchor))


def _judged(lowered: bytes, anchor: bytes, at: int) -> Hit:
    window = lowered[max(0, at - REACH) : at + REACH]
    for literal in STRONG[anchor]:
        if literal in window:
            return Hit(at, literal, strong=True)
    return Hit(at, anchor, strong=False)


@cache
def _filter() -> Callable[[bytes], Iterable[bytes]]:
    """Return what says which short literals a block has: hyperscan's scan, or our own."""
    with suppress(Exception):  # an extra that is absent or broken is done without
        return scanner()
    return present_in


def present_in(data: bytes) -> Iterable[bytes]:
    """Return the short literals that `data` has, found without the extra."""
    lowered = data.lower()
    search = _memmem()
    if search is None:
        return [anchor for anchor in ANCHORS if anchor in lowered]
    size = len(lowered)
    return [anchor for anchor in ANCHORS if search(lowered, size, anchor, len(anchor))]


@cache
def _memmem() -> Callable[[bytes, int, bytes, int], int | None] | None:
    """Return the C library's search, which takes half the time of `in`, where there is one."""
    try:
        import ctypes

        search = ctypes.CDLL(None).memmem
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    search.restype = ctypes.c_void_p
    search.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    found: Callable[[bytes, int, bytes, int], int | None] = search
    return found


def scanner() -> Callable[[bytes], Iterable[bytes]]:
    """Return what finds the same with hyperscan; ImportError without the extra `fast`."""
    hyperscan: Any = import_module("hyperscan")
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    flags = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH
    database.compile(
        expressions=list(ANCHORS),
        ids=list(range(len(ANCHORS))),
        flags=[flags] * len(ANCHORS),
        literal=True,
    )

    def scan(data: bytes) -> Iterable[bytes]:
        found: list[int] = []

        def take(number: int, *_place: object) -> None:
            found.append(number)

        database.scan(data, match_event_handler=take)
        return [ANCHORS[number] for number in found]

    return scan
