"""Several processes, each with a device of its own, exchange what they steer themselves by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = """
import json, os, pathlib, sys, time, torch, torch.distributed as dist
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
said = {}
"""
# a file for each rank: lines that two processes print to one pipe may run into each other
END = """
torch.cuda.synchronize()
pathlib.Path(sys.argv[1], f"rank{rank}.json").write_text(json.dumps(said))
dist.destroy_process_group()
"""
OBJECTS = """
objects = [None] * ranks
dist.all_gather_object(objects, {"rank": rank, "text": "x" * 40 * rank})
said["ranks"] = [one["rank"] for one in objects]
told = ["of rank 0"] if rank == 0 else [None]
dist.broadcast_object_list(told, src=0)
said["told"] = told[0]
layer = torch.nn.Linear(1024, 1024, bias=False).cuda()
model = torch.nn.parallel.DistributedDataParallel(layer, device_ids=[rank])
model(torch.zeros(8, 1024, device="cuda")).sum().backward()
torch.cuda.synchronize()
said["allocates"] = torch.cuda.memory_allocated() >= 8 << 20
"""
MESSAGES = """
before, after = (rank - 1) % ranks, (rank + 1) % ranks
if rank == 0:
    dist.send(torch.tensor([7, 8, 9]).cuda(), 1)
if rank == 1:
    sent = torch.zeros(3, dtype=torch.long, device="cuda")
    dist.recv(sent, 0)
    said["sent"] = sent.tolist()
theirs = torch.empty(1, device="cuda")
mine = torch.tensor([rank * 10.0]).cuda()
pairs = [dist.P2POp(dist.irecv, theirs, before), dist.P2POp(dist.isend, mine, after)]
for work in dist.batch_isend_irecv(pairs):
    work.wait()
said["before"] = theirs.item()
mixed = torch.empty(ranks, dtype=torch.long, device="cuda")
dist.all_to_all_single(mixed, torch.arange(ranks).cuda() + 100 * rank)
said["mixed"] = mixed.tolist()
if rank == 0:
    dist.send_object_list([{"for": 1}], dst=1)
if rank == 1:
    objects = [None]
    dist.recv_object_list(objects, src=0)
    said["object"] = objects[0]
"""
SUMS = """
tokens = torch.tensor(rank + 1).cuda()
dist.all_reduce(tokens)
share = torch.tensor(float(rank)).cuda()
dist.all_reduce(share, op=dist.ReduceOp.AVG)
longest = torch.tensor([rank], dtype=torch.bfloat16).cuda()
dist.all_reduce(longest, op=dist.ReduceOp.MAX)
own = torch.empty(2, dtype=torch.int32, device="cuda")
dist.reduce_scatter_tensor(own, torch.arange(2 * ranks, dtype=torch.int32).cuda())
said["sums"] = [tokens.item(), share.item(), longest.item(), own.tolist()]
"""
BARRIER = """
made = pathlib.Path(sys.argv[1], "made")
if rank == 0:
    time.sleep(2)
    made.touch()
dist.barrier()
said["is there"] = made.exists()
"""
# without examples, the stages tell each other the shapes of what they send
PIPELINE = """
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
width = int(sys.argv[2])
device = torch.device("cuda", rank)
part = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()).to(device)
stage = PipelineStage(part, rank, ranks, device)
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
rows, losses = torch.zeros(16, width, device=device), []
if rank == 0:
    schedule.step(rows)
elif rank == ranks - 1:
    schedule.step(target=rows, losses=losses)
else:
    schedule.step()
said["losses"] = len(losses)
said["gradients"] = all(one.grad is not None for one in part.parameters())
"""


def run(torch: Any, folder: Path, program: str, *, ranks: int, more: str = "") -> list[Any]:
    """Return what each rank of a program said."""
    if torch.cuda.device_count() < ranks and "OOMDOCTOR_VIRTUAL_NAME" not in os.environ:
        pytest.skip(f"{ranks} devices are needed")
    path = folder / "program.py"
    path.write_text(BEGIN + program + END)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    cards = {"OOMDOCTOR_VIRTUAL_COUNT": str(ranks), "OMP_NUM_THREADS": "1"}

    done = subprocess.run(
        [sys.executable, *launcher, str(path), str(folder), *more.split()],
        env={**os.environ, **cards},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


def test_ranks_hear_of_each_other(torch: Any, tmp_path: Path) -> None:
    said = run(torch, tmp_path, OBJECTS, ranks=2)

    assert said == [{"ranks": [0, 1], "told": "of rank 0", "allocates": True}] * 2


@pytest.mark.parametrize("ranks", [2, 4])
def test_messages_from_rank_to_rank_arrive(torch: Any, tmp_path: Path, ranks: int) -> None:
    said = run(torch, tmp_path, MESSAGES, ranks=ranks)

    assert [one["before"] for one in said] == [(rank - 1) % ranks * 10.0 for rank in range(ranks)]
    assert [one["mixed"] for one in said] == [
        [100 * other + rank for other in range(ranks)] for rank in range(ranks)
    ]
    assert (said[1]["sent"], said[1]["object"]) == ([7, 8, 9], {"for": 1})


def test_sums_of_what_the_host_knows_are_right(torch: Any, tmp_path: Path) -> None:
    said = run(torch, tmp_path, SUMS, ranks=3)

    assert [one["sums"] for one in said] == [
        [6, 1.0, 2.0, [6 * rank, 6 * rank + 3]] for rank in range(3)
    ]


def test_a_barrier_waits_for_the_slowest(torch: Any, tmp_path: Path) -> None:
    assert run(torch, tmp_path, BARRIER, ranks=2) == [{"is there": True}] * 2


@pytest.mark.parametrize(("ranks", "width"), [(2, 2048), (3, 16)])
def test_stages_of_a_pipeline_agree_on_shapes(
    torch: Any, tmp_path: Path, ranks: int, width: int
) -> None:
    said = run(torch, tmp_path, PIPELINE, ranks=ranks, more=str(width))

    assert [one["losses"] for one in said] == [0] * (ranks - 1) + [4]
    assert all(one["gradients"] for one in said)
