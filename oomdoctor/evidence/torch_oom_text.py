"""The grammar of the allocators' messages, as clauses over text without white space.

All of these are read clause by clause, so that a message cut anywhere keeps what is there:

    CUDA out of memory. Tried to allocate 60.00 MiB (GPU 0; 5.93 GiB total capacity; 4.11 GiB
        already allocated; 21.50 MiB free; [1.00 GiB allowed; ]612.00 KiB cached | 4.20 GiB
        reserved in total by PyTorch) [If reserved memory is >> allocated memory try ...]
    CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 23.64 GiB of
        which 420.00 MiB is free. [Process 77 has 3.00 GiB memory in use. ]*[Including non-PyTorch
        memory, this process has 20.00 GiB memory in use. ][10.00 GiB allowed; ]Of the allocated
        memory 18.00 GiB is allocated by PyTorch, [with 2.00 GiB allocated in private pools (e.g.,
        CUDA Graphs), ]and 1.00 GiB is reserved by PyTorch but unallocated. If reserved but ...
    MPS backend out of memory (MPS allocated: 1.45 GB, other allocations: 7.42 GB, max allowed:
        9.07 GB). Tried to allocate 563.62 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_...
    NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 26.13 GiB
        already allocated; 26.13 GiB current active; 1.81 GiB free; 26.61 GiB reserved in total
        by PyTorch)
    Allocation on device 0 would exceed allowed memory. (out of memory)     <- cudaMallocAsync
    Currently allocated     : 20.00 GiB
    Requested               : 2.00 GiB
    Device limit            : 23.64 GiB
    Free (according to CUDA): 1.00 GiB
    PyTorch limit (set by user-supplied memory fraction)
                            : 17179869184.00 GiB
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.evidence.squeeze import Run

SIZE = r"\d+(?:\.\d+)?(?:bytes|[KMGTPE]i?B)"

_HEADS = (
    r"(?P<device>CUDA|HIP|XPU|NPU|MUSA|MLU|GCU|HPU|PPU|SDAA|MACA|SUPA|DIPU|IPU|TPU)outofmemory",
    r"(?P<mps>MPSbackendoutofmemory)",
    r"(?P<limit4g>CurrentplatformcanNOTallocatememoryblockwithsizelargerthan4GB!?)",
    r"(?P<pool>Allocationondevice(?=\d*wouldexceed)|(?<=OutOfMemoryError:)Allocationondevice)",
)
_DEVICE_WORDS = r"(?:[GNXH]PU|MUSA|MLU|GCU|PPU|SDAA|MACA)"
_BARE = (
    rf"(?<=OutOfMemoryError:)(?=Triedtoallocate{SIZE})",
    rf"(?=Triedtoallocate{SIZE}\.?\(?{_DEVICE_WORDS}\d*(?:;|hasatotalcapac))",
    rf"(?=Triedtoallocate{SIZE}on(?:private|shared)pool)",
    rf"(?<=OutOfMemoryError:)(?={_DEVICE_WORDS}\d*hasatotalcapac)",
    rf"(?={_DEVICE_WORDS}\d*hasatotalcapacit?yof{SIZE}ofwhich{SIZE}isfree)",
)
"""What only the allocators of devices say, where the words `CUDA out of memory` were left out."""

CLAUSES = {
    "exabyte": r"Triedtoallocate(?P<exabyte>morethan1EB)",
    "requested": rf"Triedtoallocate(?P<requested>{SIZE})(?:on(?:private|shared)pool)?",
    "preempted": r"(?P<preempted>Allocationwaspreemptivelyrejected)"
    r"(?:becauseitwouldexceedper_process_memory_fractionlimit)?",
    "asked": rf"Requestedsize:(?P<asked>{SIZE})",
    "index": r"(?:[GNX]PU|MUSA|MLU|GCU|HPU|PPU|SDAA|MACA)(?P<index>\d*)(?:;|(?=hasatotalcapac))",
    "typo": rf"hasatotalcapactyof(?P<typo>{SIZE})",
    "capacity": rf"hasatotalcapacityof(?P<capacity>{SIZE})",
    "free": rf"ofwhich(?P<free>{SIZE})isfree",
    "process": rf"Process\d+has(?P<process>{SIZE})memoryinuse",
    "this_process": r"Includingnon-PyTorchmemory,"
    rf"thisprocesshas(?P<this_process>{SIZE})memoryinuse",
    "allocated": rf"Oftheallocatedmemory(?P<allocated>{SIZE})isallocatedbyPyTorch",
    "private": rf"(?:with)?(?P<private>{SIZE})allocatedinprivatepools(?:\(e\.g\.,\w+Graphs\))?",
    "unallocated": rf"(?:and)?(?P<unallocated>{SIZE})isreservedbyPyTorchbutunallocated",
    "old_capacity": rf"(?P<old_capacity>{SIZE})totalcapacity",
    "old_allocated": rf"(?P<old_allocated>{SIZE})alreadyallocated",
    "active": rf"(?P<active>{SIZE})currentactive",
    "old_free": rf"(?P<old_free>{SIZE})free",
    "allowed": rf"(?P<allowed>{SIZE})allowed",
    "cached": rf"(?P<cached>{SIZE})cached",
    "reserved": rf"(?P<reserved>{SIZE})reservedintotalbyPyTorch",
    "mps_allocated": rf"MPSallocated:(?P<mps_allocated>{SIZE})",
    "other": rf"otherallocations:(?P<other>{SIZE})",
    "mps_allowed": rf"maxallowed:(?P<mps_allowed>{SIZE})",
    "pool_index": r"(?P<pool_index>\d*)wouldexceedallowedmemory",
    "pool_reason": r"(?P<pool_reason>\(outofmemory\))",
    "pool_allocated": rf"Currentlyallocated:(?P<pool_allocated>{SIZE})",
    "pool_requested": rf"Requested:(?P<pool_requested>{SIZE})",
    "pool_capacity": rf"Devicelimit:(?P<pool_capacity>{SIZE})",
    "pool_free": rf"Free\(accordingtoCUDA\):(?P<pool_free>{SIZE})",
    "pool_allowed": r"PyTorchlimit\(setbyuser-suppliedmemoryfraction\):"
    rf"(?P<pool_allowed>{SIZE})",
    "hint": r"(?P<hint>Ifreserved(?:butunallocated)?memoryis(?:large|>>))",
    "empty_cache": r"(?P<empty_cache>Pleaseuse`?empty_cache)",
    "mps_hint": r"(?P<mps_hint>UsePYTORCH_MPS_HIGH_WATERMARK_RATIO)",
}

MARKS = {
    "exabyte": "morethan1EB",
    "requested": "Triedtoallocate",
    "preempted": "preemptivelyrejected",
    "asked": "Requestedsize:",
    "index": "",
    "typo": "capactyof",
    "capacity": "capacityof",
    "free": "ofwhich",
    "process": "Process",
    "this_process": "thisprocesshas",
    "allocated": "isallocatedbyPyTorch",
    "private": "allocatedinprivatepools",
    "unallocated": "isreservedbyPyTorchbutunallocated",
    "old_capacity": "totalcapacity",
    "old_allocated": "alreadyallocated",
    "active": "currentactive",
    "old_free": "free",
    "allowed": "allowed",
    "cached": "cached",
    "reserved": "reservedintotalbyPyTorch",
    "mps_allocated": "MPSallocated:",
    "other": "otherallocations:",
    "mps_allowed": "maxallowed:",
    "pool_index": "wouldexceedallowedmemory",
    "pool_reason": "(outofmemory)",
    "pool_allocated": "Currentlyallocated:",
    "pool_requested": "Requested:",
    "pool_capacity": "Devicelimit:",
    "pool_free": "accordingtoCUDA",
    "pool_allowed": "PyTorchlimit",
    "hint": "Ifreserved",
    "empty_cache": "empty_cache",
    "mps_hint": "UsePYTORCH_MPS_HIGH_WATERMARK_RATIO",
}
"""A literal of each clause: one whose literal a text lacks need not be compiled."""

CLOSING = frozenset({"hint", "empty_cache", "mps_hint"})
GAP = 200
"""A clause that nobody has seen yet may be this long; what follows on its line is still read."""


class Clause(NamedTuple):
    """A clause that was found: what it says, where that stands in the run, where it stops."""

    name: str
    value: str
    start: int
    end: int
    stop: int


@cache
def head_pattern() -> re.Pattern[str]:
    """Return the pattern of how a message begins."""
    return re.compile("|".join((*_HEADS, rf"(?P<bare>{'|'.join(_BARE)})")))


def bare_backend(text: str) -> str:
    """Return the back end of a message without its first words; `text` is what it says."""
    found = re.search(rf"({_DEVICE_WORDS})\d*(?:;|hasatotal)", text)
    if found is None:
        return "mps" if re.search(r"on(?:private|shared)pool", text) else "cuda"
    known = {"GPU": "cuda", "XPU": "xpu", "NPU": "npu", "MUSA": "musa"}
    return known.get(found[1], "other")


@cache
def _clause_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    forms = "|".join(CLAUSES[name] for name in names)
    return re.compile(rf"[.,;:()'\"\\]*(?:{forms})")


@lru_cache(maxsize=4)
def _named_in(text: str) -> tuple[str, ...]:
    """Return the clauses whose literal a run holds; asked for each of its thousands of messages."""
    return tuple(name for name, mark in MARKS.items() if mark in text)


def clauses(run: Run, start: int, limit: int) -> Iterator[Clause]:
    """Yield the clauses that follow each other from `start` on, up to `limit`.

    Between two of them an unknown clause may stand, but only on the same line.
    """
    pattern = _clause_pattern(_named_in(run.text))
    at = start
    while at < limit:
        found = pattern.match(run.text, at, limit)
        if found is None:
            stop = min(limit, run.end_of_line(at), at + GAP)
            found = pattern.search(run.text, at, stop)
        if found is None or found.lastgroup is None:
            return
        name = found.lastgroup
        begin, end = found.span(name)
        yield Clause(name, found[name], begin, end, found.end())
        if name in CLOSING:
            return
        at = max(found.end(), at + 1)
