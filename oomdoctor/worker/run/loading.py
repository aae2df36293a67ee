"""The load phase: weights come to the card, are cast and prepared, and get their adapter.

A model is either built on the host and then moved (Trainer with a model from `from_pretrained`), or
each weight goes to the card as it is read (`device_map`, which TRL, quantised models and most
inference code use). For the second transformers first asks the allocator for all bytes at once and
gives them back, so that one segment holds the weights (`caching_allocator_warmup`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.twins import quantised
from oomdoctor.worker.twins.adapter import add_adapter
from oomdoctor.worker.twins.build import Storing, defaults, stored_bytes
from oomdoctor.worker.twins.checkpointing import switch_on
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.run.bench import Bench

_HOST = torch.device("cpu")
_KEPT_FREE = int(1.2 * 1024**3)  # bytes; transformers 5.24, caching_allocator_warmup
_PROBE = 2 << 20  # bytes; the segment of a small tensor


def load(bench: Bench) -> None:
    """Bring the model of a job to the device."""
    bench.phase("load")
    job = bench.job
    model = bench.recipe.model(job, bench.observer)
    if goes_direct(job):
        _store_directly(model, bench)
        model = _adapted(model, bench)
    else:
        Storing(model, dtype_of(job.dtype)).store(_HOST)
        model = _adapted(model, bench)
        model = bench.strategy.place(model, bench.device)
    bench.tag_weights(model)
    if job.trains:
        _ready_to_train(model, job)
    else:
        model.eval()
    bench.model = model
    bench.recipe.ready(bench)


def build(bench: Bench) -> nn.Module:
    """Return another model of the job on the device, without an adapter."""
    model = bench.recipe.model(bench.job, bench.observer)
    if goes_direct(bench.job):
        _store_directly(model, bench)
        return model
    Storing(model, dtype_of(bench.job.dtype)).store(_HOST)
    return model.to(bench.device)


def goes_direct(job: Job) -> bool:
    """Say whether weights go to the card one by one."""
    if job.loading is not None:
        return job.loading == "direct"
    if job.quant is not None or not job.trains:
        return True
    return job.framework == "trl" and not job.sharding.kind  # no device_map among several ranks


def _store_directly(model: nn.Module, bench: Bench) -> None:
    job = bench.job
    storing: Storing
    if job.quant is not None:
        with defaults(dtype_of(job.dtype)):
            quantised.replace_linears(model, job.quant)
        storing = quantised.QuantisedStoring(model, dtype_of(job.dtype))
    else:
        storing = Storing(model, dtype_of(job.dtype))
    warm_up(model, bench.device, probed=job.framework == "trl")
    storing.store(bench.device)


def warm_up(model: nn.Module, device: torch.device, *, probed: bool = False) -> None:
    """Ask for the bytes of all weights at once, as transformers does before it reads them.

    Where a card was probed for its memory (`device_map="auto"`, which TRL takes by itself), a
    segment is there already, and is taken off.
    """
    if device.type != "cuda":
        return
    wanted = stored_bytes(model, {"Params4bit": 0.5, "Int8Params": 1})
    if probed:
        torch.tensor([0], device=device)  # accelerate, get_max_memory
        wanted -= _PROBE if wanted > 2 * _PROBE else 0
    total = torch.cuda.get_device_properties(device).total_memory
    torch.empty(min(wanted, total - _KEPT_FREE) // 2, dtype=torch.float16, device=device)


def _adapted(model: nn.Module, bench: Bench) -> nn.Module:
    job = bench.job
    if job.quant is not None and job.quant.prepared:
        quantised.prepare(model, checkpointing=job.checkpointing)
        bench.observer.empty_cache()
    if job.lora is None:
        return model
    model = add_adapter(model, job)
    if job.quant is not None and job.framework == "trl":
        _adapter_in_bf16(model)
    return model


def _adapter_in_bf16(model: Any) -> None:
    """Cast the adapter of a quantised base to bf16, as TRL does."""
    for name, weight in model.named_parameters():
        if weight.requires_grad and "lora_magnitude_vector" not in name:
            weight.data = weight.data.to(torch.bfloat16)


def _ready_to_train(model: Any, job: Job) -> None:
    model.train()
    if job.checkpointing is not None:
        switch_on(model, job.checkpointing, offloads=job.offloads_activations)
