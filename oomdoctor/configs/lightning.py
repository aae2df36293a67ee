"""The YAML of LightningCLI.

trainer: {precision: bf16-mixed, accumulate_grad_batches: 4, devices: 8, strategy: fsdp}
model: {class_path: my.Model, init_args: {hidden_size: 1024}}
data: {class_path: my.Data, init_args: {batch_size: 16, num_workers: 8}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, parallel, scalars, vocabulary_dist, vocabulary_lint
from oomdoctor.configs.claims import Claim, Table, count
from oomdoctor.configs.mapping import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

KEYS: Table = {
    **vocabulary_dist.LIGHTNING,
    "trainer.accumulate_grad_batches": count("train.grad_accum"),
    "optimizer.class_path": meanings.optimizer,
    "lr_scheduler.class_path": vocabulary_lint.scheduler,
    "trainer.strategy": parallel.strategy,
    "trainer.strategy.class_path": parallel.strategy,
    "trainer.max_epochs": count("train.epochs"),
    "trainer.max_steps": count("train.max_steps"),
    "precision": meanings.precision,
}
MARKS = ("precision", "accumulate_grad_batches", "devices", "strategy", "max_epochs", "num_nodes")


def matches(settings: Settings) -> bool:
    """Say whether a trainer section holds Lightning's names, or classes are named by path."""
    if any(row.key in ("model.class_path", "data.class_path") for row in settings):
        return True
    inside = sum(row.key in {f"trainer.{mark}" for mark in MARKS} for row in settings)
    return inside >= 2 and settings.names("trainer", "model", "data") >= 1


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where trainer, model and data stand together."""
    return ("train-config",) if settings.names("trainer", "model", "data") == 3 else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read the number of ranks from devices and nodes."""
    devices = settings.get("trainer.devices")
    number = scalars.as_count(devices.value) if devices else None
    if devices is not None and isinstance(devices.value, tuple):
        number = len(devices.value)
    if devices is not None and number and number > 0:
        nodes = scalars.as_count(settings.value("trainer.num_nodes")) or 1
        yield Claim("gpu.count", number), devices
        yield Claim("dist.world_size", number * nodes), devices


DIALECT = Dialect("lightning", "lightning", KEYS, matches, closes, derived)
