"""Environment variables that steer memory, wherever they are set: shell, YAML map, `os.environ`.

export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128
CUDA_VISIBLE_DEVICES=0,1 python train.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import parallel, scalars
from oomdoctor.configs.claims import Claim, count, ratio
from oomdoctor.facts import alloc_conf

if TYPE_CHECKING:
    from oomdoctor.configs.setting import Plain

ALLOCATOR = frozenset(name.lower() for name in alloc_conf.NAMES)
DEVICES = ("cuda_visible_devices", "hip_visible_devices", "rocr_visible_devices")

SWITCHES = {
    "xla_python_client_preallocate": "xla.preallocate",
    "tf_force_gpu_allow_growth": "tf.allow_growth",
}
SHARES = ("xla_python_client_mem_fraction", "xla_client_mem_fraction")


def claims_of(name: str, value: Plain) -> tuple[Claim, ...]:
    """Return what a variable claims; empty for one that says nothing about memory."""
    low, written = name.lower(), scalars.as_text(value)
    if written is None:
        return ()
    if low in ALLOCATOR:
        return allocator(written)
    if low in DEVICES:
        return tuple(parallel.visible_devices(written))
    claims: list[Claim] = []
    if low == "pytorch_no_cuda_memory_caching":
        claims.append(Claim("alloc.cache_disabled", value=scalars.as_bool(written) is not False))
    elif low in SWITCHES and scalars.as_bool(written) is not None:
        claims.append(Claim(SWITCHES[low], value=scalars.as_bool(written) is True))
    elif low in SHARES:
        claims += ratio("xla.memory_fraction")(written)
    elif low == "xla_python_client_allocator":
        claims.append(Claim("xla.allocator", written))
    elif low == "world_size":
        claims += count("dist.world_size")(written)
    elif low == "wandb_watch" and written in ("gradients", "all"):
        claims.append(Claim("logging.watch_gradients", value=True))
    return tuple(claims)


def allocator(written: str) -> tuple[Claim, ...]:
    """Read an allocator setting into claims; what it does not understand is left out."""
    if not alloc_conf.is_setting(written):
        return ()
    return tuple(
        Claim(fact.key, fact.value, fact.slack, fact.source, fact.origin)
        for fact in alloc_conf.facts(written)
    )
