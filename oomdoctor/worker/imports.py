"""Imports the libraries of a job, in less time than plain imports take.

Two things cost and help nothing here. Libraries that decorate functions with `torch.compile` load
the whole compiler for it (bitsandbytes 0.50: a fifth of all imports); nothing is compiled in a
trace. And the garbage collector looks again and again at modules that stay.
"""

from __future__ import annotations

import gc
import importlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.job import Job


@contextmanager
def quick() -> Iterator[None]:
    """Let imports in the block go without compiler and collector."""
    import torch

    compiler, torch.compile = torch.compile, _as_it_is
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        torch.compile = compiler
        if collects:
            gc.enable()


def _as_it_is(function: Any = None, **_settings: object) -> Any:
    """Stand for `torch.compile`, with or without settings."""

    def decorate(one: Callable[..., object]) -> Callable[..., object]:
        return one

    return decorate if function is None else function


def import_common() -> None:
    """Import what every job needs."""
    gc.disable()
    try:
        with quick():
            importlib.import_module("transformers.models.auto.modeling_auto")
    finally:
        gc.enable()


def import_for(job: Job) -> None:
    """Import what a job needs: the code of its model, PEFT, bitsandbytes."""
    with quick(), suppress(ImportError):
        from transformers.models.auto import modeling_auto
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        kind = job.model.config.get("model_type")
        if kind in CONFIG_MAPPING:
            with suppress(KeyError, ImportError):
                modeling_auto.MODEL_MAPPING[CONFIG_MAPPING[kind]]
        if job.lora is not None:
            importlib.import_module("peft")
        if job.quant is not None:
            importlib.import_module("bitsandbytes")
