"""Several processes, each with a device of its own, exchange what they steer themselves by."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, pathlib, sys, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
said = [None, None]
dist.all_gather_object(said, {"rank": rank})
told = ["of rank 0"] if rank == 0 else [None]
dist.broadcast_object_list(told, src=0)
layer = torch.nn.Linear(1024, 1024, bias=False).cuda()
model = torch.nn.parallel.DistributedDataParallel(layer, device_ids=[rank])
model(torch.zeros(8, 1024, device="cuda")).sum().backward()
torch.cuda.synchronize()
# a file for each rank: lines that two processes print to one pipe may run into each other
pathlib.Path(sys.argv[1], f"rank{rank}").write_text(
    f'{[one["rank"] for one in said]} {told[0]} {torch.cuda.memory_allocated() >= 8 << 20}'
)
dist.destroy_process_group()
"""


def test_ranks_hear_of_each_other(torch: Any, tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one device alone")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]

    done = subprocess.run(
        [*command, "--master-port", "29613", str(program), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"rank{rank}").read_text() for rank in range(2)] == [
        "[0, 1] of rank 0 True",
        "[0, 1] of rank 0 True",
    ]
