"""A process group of N ranks of which only this one is there: its collectives return at once.

torch brings such a group for tests (`fake_pg`): nothing is sent, so results are wrong, but what is
allocated around a collective is what it is with NCCL. NCCL's own buffers are outside the allocator.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, reload
from typing import TYPE_CHECKING, Any

from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    import torch

FAKE = "fake"
NAMES = {"RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def enter(ranks: int) -> None:
    """Become rank 0 of a group; the one before ends."""
    leave()
    try:
        import torch.distributed as dist

        backend = import_module("torch.testing._internal.distributed.fake_pg")
    except ImportError as error:
        raise UnsupportedError(f"this torch has no process group to trace with: {error}") from error
    if not dist.is_available():
        raise UnsupportedError("this torch is built without torch.distributed")
    os.environ.update(NAMES, WORLD_SIZE=str(ranks))
    dist.init_process_group(FAKE, store=backend.FakeStore(), rank=0, world_size=ranks)


def leave() -> None:
    """End the group, if there is one, and let DeepSpeed forget it."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return
    dist.destroy_process_group()
    for name in (*NAMES, "WORLD_SIZE"):
        os.environ.pop(name, None)
    _forget()


def _forget() -> None:
    """Make DeepSpeed's modules as they were before it saw a group."""
    comm: Any = sys.modules.get("deepspeed.comm.comm")
    groups = sys.modules.get("deepspeed.utils.groups")
    if comm is not None:
        comm.cdb = None
    if groups is not None:
        reload(groups)


def mesh_of(device: torch.device, ranks: int) -> Any:
    """Return all ranks in a row, as FSDP2 shards over them."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device.type, (ranks,))
