"""Which operators make their results and then do what another one does that writes into them.

torch's list of functions calls that a structured delegate. A build for the CPU runs the second one
on the fake card; a CUDA build has a kernel for the first, which does both.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

from oomdoctor.worker.errors import ShimFailedError

FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"
_DELEGATE = re.compile(r"\s+structured_delegate:\s*([\w.]+)")


def delegates() -> dict[str, str]:
    """Return the second by the first, `mm` -> `mm.out`; none in a build for the CPU."""
    if torch.version.cuda is None:
        return {}
    found: dict[str, str] = {}
    name = ""
    for line in functions():
        if line.startswith("- func: "):
            name = line[8 : line.index("(")]
        elif match := _DELEGATE.match(line):
            found[name] = match[1]
    return found


def functions() -> list[str]:
    """Return the lines of torch's list of functions."""
    path = Path(torch.__file__).parents[1] / FUNCTIONS
    if not path.exists():
        raise ShimFailedError(f"this torch comes without {FUNCTIONS}")
    return path.read_text(encoding="utf-8").splitlines()
