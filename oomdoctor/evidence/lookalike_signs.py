"""Sizes, limits, indexes, addresses and collectives that fail while no memory is short.

    RuntimeError: Trying to create tensor with negative dimension -1853689905: [-1853689905]
    RuntimeError: CUDA error: too many resources requested for launch
    IndexError: index out of range in self
    RuntimeError: Detected mismatch between collectives on ranks.
    RuntimeError: CUDA error: misaligned address

The table is read by `torch_lookalikes`.
"""

from __future__ import annotations

from oomdoctor.evidence.device_signs import FAR, other
from oomdoctor.evidence.signs import Sign

IMPOSSIBLE = (
    r"(?:(?<![\w.,-])(?:1[0-8]\d{18}|[5-9]\d{18}|4[6-9]\d{17})(?![\w.])(?! ?[KMGTP]i?B)"
    r"|(?<![\w.])-\d+ bytes|(?<![\d.])(?:[4-9]|1[0-6])(?:\.\d+)? ?EiB"
    r"|1759218604\d{4}(?:\.\d+)? Mi?B"
    r"|called with negative number)"
)
"""A size from 2**62 bytes up, or below zero: a count of 64 bits that wrapped."""

NEGATIVE = Sign(
    ("negative dimension",),
    r"(?i)negative dimension -\d+",
    "size",
    (("fault.size_overflow", True),),
    "negative-size",
    FAR,
)
NEGATIVE_RESERVE = NEGATIVE._replace(
    kind="gpu-oom",
    states=(
        ("oom.seen", True),
        ("oom.backend", "cuda"),
        ("oom.form", "runtime"),
        ("fault.negative_reserve", True),
    ),
    family="negative-reserve",
)
"""The free part of a card, less a reserve, is negative: somebody else holds the card."""

SIZES = (
    NEGATIVE,
    Sign(
        (
            "storage size calculation overflowed",
            "multiplication overflow",
            "integer overflow",
            "32-bit index math",
            "canuse32bitindexmath",
            "more than int_max",
            "int_max elements",
            "array is too big",
            "maximum allowed dimension",
            "maximum supported dimension",
            "tensor is too large",
        ),
        r"(?i)Storage size calculation overflowed|integer multiplication overflow"
        r"|numel: integer|must fit into 32-bit index math|canUse32BitIndexMath.{0,80}FAILED"
        r"|more than INT_MAX|INT_MAX elements|array is too big; |maximum allowed dimension exceeded"
        r"|maximum supported dimension for an ndarray|tensor is too large for|integer overflow",
        "size",
        (("fault.size_overflow", True),),
        "size",
        FAR,
    ),
    Sign(
        (
            *("to allocate", "alloc_cpu()", "alloc of size", "buffer of size", "cudamalloc"),
            *("memory allocation of", "bad_array_new_length", "invalid memory size"),
        ),
        rf"(?i)(?:alloc|of size|cudaMalloc)[^\n]{{0,120}}?{IMPOSSIBLE}"
        r"|std::bad_array_new_length|invalid memory size -- maybe an overflow",
        "size",
        (("fault.size_overflow", True),),
        "size",
        FAR,
    ),
)
LIMITS = (
    other(
        (
            "out of resource: ",
            "too many resources requested for launch",
            "invalid configuration argument",
        ),
        r"out of resource: (?:registers|threads)|too many resources requested for launch"
        r"|(?i:cuda|hip).{0,60}invalid configuration argument",
        "fault.launch_resources",
        "launch",
    ),
    other(
        (
            "uses too much shared data",
            "no valid triton configs",
            "out of resource: triton",
            "shared memory per block",
            "allowed dynamic shared memory",
        ),
        r"uses too much shared data \(0x|No valid triton configs.{0,80}out of resource"
        r"|out of resource: \w+ ?,? ?Required: ?\d+|exceeds.{0,40}shared memory per block"
        r"|Failed to set the allowed dynamic shared memory size",
        "fault.kernel_shared_memory",
        "kernel",
    ),
    other(
        ("could not unlink the shared memory file", "'/dev/shm/"),
        r"could not unlink the shared memory file.*(?:No such file|\(2\))"
        r"|No such file or directory: '/dev/shm/",
        "host.shm_race",
        "race",
    ),
)
INDEXES = (
    other(
        ("index out of range in self", "out of range: tried to access", "is out of bounds."),
        r"IndexError: index out of range in self|index out of range: Tried to access index"
        r"|IndexError: Target -?\d+ is out of bounds",
        "assert.on_cpu",
        "cpu-index",
    ),
)
COLLECTIVES = (
    Sign(
        ("mismatch between collectives", "collective mismatch", "mismatched collective"),
        r"(?i)detected mismatch between collectives on ranks|collective mismatch error"
        r"|mismatched collective",
        "collective",
        (("collective.mismatch", True),),
        "mismatch",
        FAR,
    ),
    Sign(
        ("watchdog got stuck", "heartbeat monitor timed out"),
        r"watchdog got stuck for \d+ seconds|heartbeat monitor timed out",
        "collective",
        (("collective.hang", True),),
        "hang",
        FAR,
    ),
)
ADDRESSES = (
    Sign(
        (
            "unspecified launch failure",
            "misaligned address",
            "illegal instruction was",
            "nvrm: xid",
        ),
        r"(?i)cuda\b.{0,80}?(?:unspecified launch failure|misaligned address"
        r"|an illegal instruction was)|Xid \(PCI:[0-9a-f:.]+\): (?:13|31)\b",
        "illegal-access",
        (("fault.illegal_access", True),),
        "illegal",
        FAR,
    ),
)
SIGNS: tuple[Sign, ...] = (*SIZES, *LIMITS, *INDEXES, *COLLECTIVES, *ADDRESSES)
