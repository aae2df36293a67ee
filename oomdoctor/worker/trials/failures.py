"""Tells an error that means "no memory" from all others, and what it says."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

import torch

from oomdoctor.lab.protocol import OomTold

if TYPE_CHECKING:
    from types import TracebackType

_REQUEST = re.compile(r"[Tt]ried to allocate ([\d.]+) ?(bytes|KiB|MiB|GiB)")
_HOST_REQUEST = re.compile(r"tried to allocate (\d+) bytes", re.IGNORECASE)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_CARD = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory")
_HOST = ("DefaultCPUAllocator", "Cannot allocate memory", "std::bad_alloc")
_BETWEEN = (
    *("oomdoctor/inject/", "oomdoctor/worker/trials/", "oomdoctor/virtual/inside/"),
    *("torch/_compile.py", "torch/_dynamo/", "torch/utils/_python_dispatch.py", "torch/_ops.py"),
)
"""Files whose frames stand between an operator and whoever counts its memory."""


def told(error: BaseException, device: torch.device) -> OomTold | None:
    """Return what an error says of memory that is missing; None: it is about something else."""
    text = str(error)
    kind = torch.cuda.OutOfMemoryError
    if isinstance(error, kind) or any(one in text for one in _CARD):
        backend = device.type
    elif isinstance(error, MemoryError) or any(one in text for one in _HOST):
        backend = "host"
    else:
        return None
    return OomTold(
        backend=backend,
        exception=type(error).__name__,
        site=_site(error.__traceback__),
        requested_bytes=_requested(text),
        message=text.strip().partition("\n")[0][:2000],
    )


def _requested(text: str) -> int | None:
    found = _REQUEST.search(text)
    if found:
        return int(float(found[1]) * _UNITS[found[2]])
    found = _HOST_REQUEST.search(text)
    return int(found[1]) if found else None


def _site(trace: TracebackType | None) -> str | None:
    """Return file and function of the innermost frame that does not count memory itself."""
    site = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if not any(one in code.co_filename.replace("\\", "/") for one in _BETWEEN):
            site = f"{PurePath(code.co_filename).name}:{code.co_name}"
        trace = trace.tb_next
    return site
