"""Runs the scripts of `fixtures/virtual` on cards of a size that a test chooses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.record import dataclass
from oomdoctor.virtual.card import VirtualCard
from oomdoctor.virtual.run import virtual_environment
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = ROOT / "fixtures" / "virtual"
MEASURING = Path(__file__).with_name("measuring.py")
LONGEST_S = 600
# a virtual card says who it is
IS_VIRTUAL = "OOMDOCTOR_VIRTUAL_NAME" in os.environ
_QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a script: the peaks are the highest of its ranks."""

    outcome: str
    allocated_bytes: int
    reserved_bytes: int
    output: str


def skip_without(*libraries: str) -> None:
    """Skip a test whose script needs what is not installed."""
    missing = [one for one in libraries if find_spec(one) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def run_script(
    torch: Any,
    folder: Path,
    name: str,
    arguments: Sequence[str] = (),
    *,
    ranks: int = 1,
    card_bytes: int | None = None,
    card: VirtualCard | None = None,
) -> Ran:
    """Run a script to its end on cards of so many bytes, or on those that are there.

    Or on a virtual `card`, wherever the test runs.
    """
    if card is None and not IS_VIRTUAL and torch.cuda.device_count() < ranks:
        pytest.skip(f"{ranks} devices are needed, {torch.cuda.device_count()} are there")
    folder.mkdir(exist_ok=True)
    limit = 0 if IS_VIRTUAL or card_bytes is None else card_bytes
    words = [str(MEASURING), str(folder), str(limit), str(FOLDER / name), *arguments]
    if ranks > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        words = [*launcher, *words]
    with (folder / "output.log").open("w+", encoding="utf-8", errors="replace") as output:
        subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=_environment(torch, ranks, card_bytes, card),
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_S,
            check=False,
        )
        output.seek(0)
        said = output.read()
    told = [json.loads(one.read_text(encoding="utf-8")) for one in folder.glob("*.json")]
    outcomes = {one["outcome"] for one in told}
    return Ran(
        # where one rank fails, the launcher ends the others
        outcome="oom" if "oom" in outcomes else ",".join(sorted(outcomes)) or "crash",
        allocated_bytes=max((one.get("allocated_bytes", 0) for one in told), default=0),
        reserved_bytes=max((one.get("reserved_bytes", 0) for one in told), default=0),
        output=said[-8000:],
    )


def _environment(
    torch: Any, ranks: int, card_bytes: int | None, card: VirtualCard | None
) -> dict[str, str]:
    base = {**os.environ, **_QUIET}
    if card is not None:
        # what hides a real card would hide a virtual one
        base.pop("CUDA_VISIBLE_DEVICES", None)
        return virtual_environment(card, count=ranks, base=base)
    if not IS_VIRTUAL:
        return base
    device = torch.cuda.get_device_properties(0)
    card = VirtualCard(
        name=device.name,
        total_bytes=device.total_memory if card_bytes is None else card_bytes,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
    )
    return virtual_environment(card, count=ranks, base=base)
