"""Training steps, as transformers' Trainer takes them (5.24), or as a plain loop does.

Trainer fetches the batches of a whole step at once, counts their labels, and frees what the model
returned before backward begins; a plain loop keeps the last outputs until the next ones are there.
Both leave gradients None between steps. Trainer asks for the norm of the gradients even where it
does not clip.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run.precision import cast_automatically, make_scaler
from oomdoctor.worker.sharding.host import HostSteps
from oomdoctor.worker.twins.average import Average
from oomdoctor.worker.twins.causal import accepts_items
from oomdoctor.worker.twins.checkpointing import on_host
from oomdoctor.worker.twins.optimizer import make_optimizer, state_tensors

if TYPE_CHECKING:
    from oomdoctor.model.job import OptimizerSpec
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

STEPS = ("step 1", "step 2")
MICRO_STEPS = 3


def prepare_training(bench: Bench) -> None:
    """Make the optimizer and what a loop sets up before its first step."""
    job = bench.job
    model = bench.model
    early = _steps_in_backward(bench)
    if job.optimizer is not None and not early:
        bench.optimizer = bench.strategy.optimizer(_optimizer(bench, job.optimizer), model)
    bench.model = bench.strategy.wrap(model)
    for category, tensors in bench.strategy.held():
        bench.observer.tag(tensors, category)
    cast_automatically(bench)
    bench.scaler = make_scaler(bench)
    if bench.like_trainer:
        bench.kept["total"] = torch.tensor(0.0, device=bench.device)
        bench.kept["counts items"] = accepts_items(model)
    if job.ema:
        bench.kept["average"] = Average(bench.trained)
        bench.observer.tag(bench.kept["average"].tensors, "optimizer")
    if early:
        _attach(bench)


def _optimizer(bench: Bench, spec: OptimizerSpec) -> Any:
    if bench.strategy.offloads:
        return HostSteps(bench.trained)
    wanted = bench.strategy.spec(spec)
    return make_optimizer(wanted, bench.model, grouped=bench.like_trainer)


def train_step(bench: Bench, name: str) -> None:
    """Take one step of the optimizer, with all of its micro-steps."""
    bench.phase(name)
    if bench.like_trainer:
        _trainer_step(bench)
    else:
        _plain_step(bench)


def host_batch(bench: Bench, rows: int | None = None, length: int | None = None) -> Batch:
    """Return a batch on the host; without a size, that of training."""
    job = bench.job
    return bench.recipe.batch(job, rows=rows or job.batch, length=length or job.seq_len)


def to_device(bench: Bench, batch: Batch) -> Batch:
    """Copy a batch to the device."""
    moved = {name: value.to(bench.device) for name, value in batch.items()}
    bench.observer.tag(moved.values(), "input")
    return moved


def _trainer_step(bench: Bench) -> None:
    count = bench.job.grad_accum
    kept = bench.kept
    batches = [to_device(bench, host_batch(bench)) for _ in range(count)]
    kept["items"] = _count_items(bench, batches)
    kept["batches"] = batches
    for number in _micro_steps(bench):
        batch = batches[number]
        kept["inputs"] = batch
        last = number == count - 1
        with bench.strategy.micro_step(bench.model, last=last):
            loss = _trainer_micro_step(bench, batch)
        torch.isnan(loss)  # Trainer asks, and lets a loss that is a number count
        torch.isinf(loss)
        kept["total"] += loss
        kept["loss"] = loss
    kept["norm"] = None
    _finish_step(bench, always_norm=True)


def _micro_steps(bench: Bench) -> list[int]:
    """Return the micro-steps to run: the first two and the last, which those between repeat."""
    count = bench.job.grad_accum
    if count > MICRO_STEPS:
        bench.observer.assume(
            f"of {count} micro-steps {MICRO_STEPS} were run; the others allocate as the second does"
        )
    return sorted({0, min(1, count - 1), count - 1})


def _count_items(bench: Bench, batches: list[Batch]) -> torch.Tensor | None:
    """Count the labels of a step (`_get_num_items_in_batch`)."""
    if not bench.kept["counts items"] or "labels" not in batches[0]:
        return None
    first = 1 if bench.recipe.shifts else 0
    total: Any = sum(batch["labels"][..., first:].ne(-100).sum() for batch in batches)
    return total.to(bench.device) / 1


def _trainer_micro_step(bench: Bench, batch: Batch) -> torch.Tensor:
    bench.part("forward")
    bench.model.train()
    inputs = {name: value.to(bench.device) for name, value in batch.items()}
    loss = _loss_alone(bench, inputs)
    del inputs
    bench.part("backward")
    if bench.kept["items"] is None:
        loss = loss / bench.job.grad_accum
    _backward(bench, loss / 1)
    return loss.detach()


def _loss_alone(bench: Bench, batch: Batch) -> torch.Tensor:
    """Return the loss; the outputs end with this function, as with Trainer's `compute_loss`."""
    with _kept_activations(bench):
        loss, _outputs = bench.recipe.loss(bench, batch, bench.kept["items"])
    return loss


def _kept_activations(bench: Bench) -> Any:
    """Return the context of a forward: activations stay, or go to the host."""
    job = bench.job
    return on_host() if job.offloads_activations and not job.checkpointing else nullcontext()


def _backward(bench: Bench, loss: torch.Tensor) -> None:
    if bench.scaler is not None:
        loss = bench.scaler.scale(loss)
    bench.strategy.backward(loss)
    bench.tag_gradients()


def _plain_step(bench: Bench) -> None:
    job, kept = bench.job, bench.kept
    kept["items"] = None
    for number in _micro_steps(bench):
        bench.part("forward")
        kept["inputs"] = to_device(bench, host_batch(bench))
        last = number == job.grad_accum - 1
        with bench.strategy.micro_step(bench.model, last=last):
            with _kept_activations(bench):
                loss, outputs = bench.recipe.loss(bench, kept["inputs"], None)
            kept["outputs"], kept["loss"] = outputs, loss
            del outputs
            bench.part("backward")
            if job.grad_accum > 1:
                kept["loss"] = loss = loss / job.grad_accum
            _backward(bench, loss)
            del loss
    _finish_step(bench, always_norm=False)


def _finish_step(bench: Bench, *, always_norm: bool) -> None:
    """Clip, step, average and forget the gradients."""
    job = bench.job
    if job.optimizer is None or bench.optimizer is None:
        _forget_gradients(bench)
        return
    if job.clip_norm is not None or always_norm:
        bench.part("clip")
        _clip(bench)
    bench.part("optimizer")
    if bench.scaler is None:
        bench.optimizer.step()
    else:
        bench.scaler.step(bench.optimizer)
        bench.scaler.update()
    bench.observer.tag(state_tensors(bench.optimizer), "optimizer")
    if "average" in bench.kept:
        bench.kept["average"].update(bench.trained)
    _forget_gradients(bench)


def _clip(bench: Bench) -> None:
    if bench.scaler is not None:
        bench.scaler.unscale_(bench.optimizer)
    limit = bench.job.clip_norm
    weights = list(bench.model.parameters())
    bench.kept["norm"] = bench.strategy.clip(weights, float("inf") if limit is None else limit)


def _forget_gradients(bench: Bench) -> None:
    bench.part("zero-grad")
    bench.model.zero_grad()


def _steps_in_backward(bench: Bench) -> bool:
    return bench.job.optimizer is not None and bench.job.optimizer.in_backward


def _attach(bench: Bench) -> None:
    """Step each weight as soon as its gradient is there, and forget that at once."""
    spec = bench.job.optimizer
    if spec is None:
        return
    optimizers: dict[Any, Any] = {}

    def step(weight: Any) -> None:
        optimizers[weight].step()
        bench.observer.tag(state_tensors(optimizers[weight]), "optimizer")
        weight.grad = None

    for weight in bench.trained:
        holder = torch.nn.ParameterList([weight])
        optimizers[weight] = make_optimizer(spec, holder, grouped=False, whole=bench.model)
        weight.register_post_accumulate_grad_hook(step)
    bench.kept["optimizers"] = optimizers
