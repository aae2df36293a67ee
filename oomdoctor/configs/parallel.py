"""Converters of how ranks share the work: ZeRO, FSDP, DDP, offload, lists of cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import hardware, scalars
from oomdoctor.configs.claims import Claim
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.claims import Convert
    from oomdoctor.configs.setting import Plain

SHARDINGS = frozenset(
    (
        "full_shard",
        "shard_grad_op",
        "hybrid_shard",
        "hybrid_shard_zero2",
        "fsdp",
        "true",
        "offload",
        "auto_wrap",
    )
)

_ABSENT = frozenset(("no", "non", "not", "without", "disable"))


def zero_stage(value: Plain) -> Iterator[Claim]:
    """Read a ZeRO stage; stage 0 is plain data parallelism."""
    number = scalars.as_count(value)
    if number is not None and 0 <= number <= 3:
        yield Claim("dist.kind", f"zero{number}" if number else "ddp")


def zero_file(value: Plain) -> Iterator[Claim]:
    """Guess the stage from the name of a DeepSpeed file: `ds_z3_offload_config.json`."""
    if not isinstance(value, str):
        return
    low = value.lower().rpartition("/")[2]
    for number in (3, 2, 1):
        if any(f"{stem}{number}" in low for stem in ("zero", "z", "stage", "zero_", "stage_")):
            yield Claim(
                "dist.kind", f"zero{number}", 0, "name of the DeepSpeed file", Origin.DERIVED
            )
            break
    if _offloads(low):
        yield Claim("optimizer.offload", "cpu", 0, "name of the DeepSpeed file", Origin.DERIVED)


def _offloads(name: str) -> bool:
    """Say whether a name speaks of offloading, and not of its absence: `zero2_no_offload.json`."""
    before, found, after = name.partition("offload")
    if not found:
        return False
    words = before.replace("-", "_").replace(" ", "_").rstrip("_").split("_")
    tail = after.replace("-", "_").lstrip("_").partition(".")[0].split("_")
    return words[-1] not in _ABSENT and tail[0] not in ("off", "none", "false", "disabled")


def fsdp_options(value: Plain) -> Iterator[Claim]:
    """Read the `fsdp` option of HF and its kin: `full_shard auto_wrap offload`."""
    said = {part.lower() for part in scalars.as_strings(value)}
    if not said & SHARDINGS:
        return
    yield Claim("dist.kind", "fsdp1")
    if "auto_wrap" in said:
        yield Claim("dist.auto_wrap", value=True)
    if "offload" in said:
        yield Claim("dist.param_offload", "cpu")


def wrap_policy(value: Plain) -> Iterator[Claim]:
    """Read FSDP's wrap policy; `NO_WRAP` makes one unit of the whole model."""
    said = (scalars.as_text(value) or "").lower()
    if said == "no_wrap":
        yield Claim("dist.auto_wrap", value=False)
    elif value not in (None, False, "", ()) and scalars.as_bool(value) is not False:
        yield Claim("dist.auto_wrap", value=True)


def strategy(value: Plain) -> Iterator[Claim]:
    """Read a parallel strategy by name: `ddp`, `FSDP2Strategy`, `deepspeed_stage_3_offload`."""
    said = (scalars.as_text(value) or "").lower().removeprefix("torch.").replace("-", "_")
    if "deepspeed" in said or "zero" in said:
        for number in "321":
            if number in said:
                yield Claim("dist.kind", f"zero{number}")
                break
        if _offloads(said):
            yield Claim("optimizer.offload", "cpu")
    elif "fsdp2" in said or said.startswith("modelparallel"):
        yield Claim("dist.kind", "fsdp2")
    elif "fsdp" in said or "full_shard" in said or "fullyshard" in said:
        yield Claim("dist.kind", "fsdp1")
    elif said.startswith(("ddp", "distributeddataparallel", "multi_gpu")):
        yield Claim("dist.kind", "ddp")
    elif said in ("dp", "dataparallel", "data_parallel"):
        yield Claim("dist.kind", "dp")
    elif said in ("no", "none", "single_device"):
        yield Claim("dist.kind", "none")


def offload(key: str) -> Convert:
    """Return a converter for an offload target: cpu, nvme, none or a switch."""

    def convert(value: Plain) -> Iterator[Claim]:
        said = (scalars.as_text(value) or "").lower()
        on = scalars.as_bool(value)
        if on is not None:
            said = "cpu" if on else "none"
        if said in ("cpu", "nvme", "none"):
            yield Claim(key, said)

    return convert


def visible_devices(value: Plain) -> Iterator[Claim]:
    """Read a list of device ordinals: `0,1,2`."""
    said = scalars.as_text(value)
    if said is None:
        return
    yield Claim("env.visible_devices", said)
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if parts and all(part.isdecimal() for part in parts):
        yield Claim("gpu.count", len(parts))


def generic_resource(value: Plain) -> Iterator[Claim]:
    """Read Slurm's `--gres=gpu:a100:8`."""
    parts = (scalars.as_text(value) or "").split(":")
    count = int(parts[-1]) if parts[-1].isdecimal() and len(parts[-1]) < 3 else 0
    if parts[0] == "gpu" and 1 <= count <= 64:
        yield Claim("gpu.count", count)
    if parts[0] == "gpu" and len(parts) > 1:
        yield from partition(parts[1])


def ddp_backend(value: Plain) -> Iterator[Claim]:
    """Read the back end of data parallelism; fairscale's FSDP goes by the names of ZeRO stages."""
    said = (scalars.as_text(value) or "").lower()
    if said in ("zero2", "zero3", "fully_sharded", "fsdp"):
        yield Claim("dist.kind", "fsdp1")
    elif said in ("ddp", "c10d", "legacy_ddp", "no_c10d", "pytorch_ddp"):
        yield Claim("dist.kind", "ddp")


def partition(value: Plain) -> Iterator[Claim]:
    """Read the name of a card out of a job manager's partition or constraint."""
    said = scalars.as_text(value) or ""
    words = said.replace("_", " ").replace("-", " ").replace(",", " ")
    yield from (one.claim for one in hardware.find(words) if one.claim.key == "gpu.name")


def gpu_list(value: Plain) -> Iterator[Claim]:
    """Read `gpus: 8` as a number of cards, and `gpus: 0,1,2` as a list of them."""
    listed = scalars.as_text(value) or ""
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if "," in listed and all(part.isdecimal() for part in parts):
        yield Claim("gpu.count", len(parts))
        return
    number = scalars.as_count(value)
    if number is not None and 1 <= number <= 4096:
        yield Claim("gpu.count", number)


def prefetch(value: Plain) -> Iterator[Claim]:
    """Read FSDP1's `backward_prefetch`: BACKWARD_PRE or _POST gathers ahead, NO_PREFETCH not."""
    said = (scalars.as_text(value) or "").lower().rpartition(".")[2]
    if said in ("backward_pre", "backward_post", "1", "2"):
        yield Claim("dist.prefetches", value=True)
    elif said in ("no_prefetch", "none"):
        yield Claim("dist.prefetches", value=False)
