"""When memory that another stream used is free again, with events that are done late or at once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
USED_BY_ANOTHER = """
import torch
side = torch.cuda.Stream()
for _ in range(8):
    rows = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        more = rows + 1
    rows.record_stream(side)
    del rows, more
    WAIT
print(torch.cuda.memory_reserved())
"""
ASKS = """
import torch
event = torch.cuda.Event()
torch.ones(8, device="cuda")
event.record()
asked = 1
while not event.query():
    asked += 1
print(asked)
"""


def run(folder: Path, program: str, mode: str) -> int:
    """Return the number that a program prints with events of a kind."""
    if "OOMDOCTOR_VIRTUAL_NAME" not in os.environ:
        pytest.skip("a real card has its own time")
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "OOMDOCTOR_VIRTUAL_EVENTS": mode},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(("mode", "blocks"), [("ready", 2), ("late", 9)])
def test_a_block_waits_for_the_stream_that_used_it(
    torch: Any, tmp_path: Path, mode: str, blocks: int
) -> None:
    del torch

    assert run(tmp_path, USED_BY_ANOTHER.replace("WAIT", ""), mode) == blocks * 64 * MIB


def test_a_host_that_waits_frees_it(torch: Any, tmp_path: Path) -> None:
    del torch
    program = USED_BY_ANOTHER.replace("WAIT", "side.synchronize()")

    assert run(tmp_path, program, "late") == 2 * 64 * MIB


@pytest.mark.parametrize(("mode", "times"), [("ready", 1), ("late", 1000)])
def test_a_loop_that_asks_for_an_event_ends(
    torch: Any, tmp_path: Path, mode: str, times: int
) -> None:
    del torch

    assert run(tmp_path, ASKS, mode) == times
