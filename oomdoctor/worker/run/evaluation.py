"""Evaluation between steps, as Trainer's `evaluation_loop` goes through it (5.24).

Losses, and logits and labels where they are kept, are joined on the card batch after batch: while
two tensors are joined, both and the joined one are there. What the last batch returned stays until
the next one has returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.model.job import EvalSpec
from oomdoctor.worker.run.training import host_batch, to_device

if TYPE_CHECKING:
    from oomdoctor.worker.run.bench import Bench

    Joined = dict[str, torch.Tensor]

_TRACED = 3
"""Batches that run through the model; what later ones add is joined without it."""


def evaluate(bench: Bench) -> None:
    """Run the evaluation of the job."""
    job = bench.job
    spec = job.evaluation or EvalSpec(batch=job.batch, seq_len=job.seq_len, batches=1)
    bench.phase("evaluation")
    bench.model.eval()
    joined: Joined = {}
    latest: Joined = {}
    for number in range(spec.batches):
        if number < _TRACED:
            latest = _predict(bench, spec)
        else:
            latest = {name: torch.empty_like(value) for name, value in latest.items()}
        _join(joined, latest)
        if spec.accumulation is not None and (number + 1) % spec.accumulation == 0:
            _to_host(joined)
            latest = {}
            bench.observer.empty_cache()
            if number >= _TRACED:
                break
    _to_host(joined)
    bench.model.train(bench.job.trains)


def _predict(bench: Bench, spec: EvalSpec) -> Joined:
    """Return what one batch leaves: losses of its rows, and logits and labels if they are kept."""
    batch = to_device(bench, host_batch(bench, spec.batch, spec.seq_len))
    bench.part("forward")
    with torch.no_grad():
        loss, outputs = bench.recipe.loss(bench, batch, _items(bench, batch))
        loss = loss.detach().mean()
    kept = {"losses": loss.repeat(spec.batch)}
    logits = getattr(outputs, "logits", None)
    if spec.keeps_outputs and logits is not None:
        kept["logits"] = logits.detach()
        if "labels" in batch:
            kept["labels"] = batch["labels"].detach()
    bench.observer.tag([one for name, one in kept.items() if name == "logits"], "logits and loss")
    return kept


def _items(bench: Bench, batch: dict[str, torch.Tensor]) -> Any:
    if not bench.kept.get("counts items") or "labels" not in batch:
        return None
    first = 1 if bench.recipe.shifts else 0
    return batch["labels"][..., first:].ne(-100).sum() / 1


def _join(joined: Joined, latest: Joined) -> None:
    for name, value in latest.items():
        before = joined.get(name)
        joined[name] = value if before is None else torch.cat((before, value), dim=0)


def _to_host(joined: Joined) -> None:
    for name in list(joined):
        joined.pop(name).cpu()
