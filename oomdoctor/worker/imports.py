"""Imports the libraries of a job, in less time than plain imports take.

Three things cost much and help nothing here: torch's compiler, which libraries load to decorate
functions (nothing is compiled in a trace); what transformers and accelerate import for models that
are spread over cards, where the job's is not; and the garbage collector, which looks again and
again at modules that stay.
"""

from __future__ import annotations

import gc
import importlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from oomdoctor.worker.later import as_it_is, put_off

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.job import Job


@contextmanager
def quick(*, alone: bool = True) -> Iterator[None]:
    """Let imports in the block go without compiler and collector; `alone`: on one card."""
    import torch

    put_off()
    compiler, torch.compile = torch.compile, as_it_is
    spread = torch.distributed.is_available
    if alone:
        torch.distributed.is_available = lambda: False
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        torch.compile = compiler
        torch.distributed.is_available = spread
        if collects:
            gc.enable()


def import_common() -> None:
    """Import what every job needs."""
    gc.disable()
    try:
        importlib.import_module("torch")
        importlib.import_module("oomdoctor.worker.fake.trace")
    finally:
        gc.enable()


def import_for(job: Job) -> None:
    """Import what a job needs: the code of its model, PEFT, bitsandbytes."""
    with quick(alone=not job.sharding.kind), suppress(ImportError):
        importlib.import_module("oomdoctor.worker.run.job")
        from transformers.models.auto import modeling_auto
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        kind = job.model.config.get("model_type")
        if kind in CONFIG_MAPPING:
            with suppress(KeyError, ImportError):
                modeling_auto.MODEL_MAPPING[CONFIG_MAPPING[kind]]
        if job.lora is not None:
            importlib.import_module("peft")
        optimizer = job.optimizer
        eight_bit = optimizer is not None and (optimizer.paged or "bit" in optimizer.name)
        if job.quant is not None or eight_bit:
            importlib.import_module("bitsandbytes")
    gc.freeze()  # modules stay: the collector need not look at them while the job runs
