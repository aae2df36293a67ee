"""Run a job, phase by phase, on a device that is real, virtual or fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.stream import PHASES
from oomdoctor.worker.run import saving
from oomdoctor.worker.run.bench import Bench
from oomdoctor.worker.run.evaluation import evaluate
from oomdoctor.worker.run.generation import generate
from oomdoctor.worker.run.loading import load
from oomdoctor.worker.run.precision import cast_automatically
from oomdoctor.worker.run.recipe import recipe_of
from oomdoctor.worker.run.strategy import strategy_of
from oomdoctor.worker.run.training import STEPS, prepare_training, train_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer


def phases_of(job: Job) -> tuple[str, ...]:
    """Return the phases that a job has, in their order."""
    having = {
        "load": True,
        "step 1": job.trains,
        "step 2": job.trains,
        "evaluation": job.evaluation is not None or job.task == "forward",
        "generation": job.generation is not None,
        "save": job.saves,
        "merge": job.merges and job.lora is not None,
        "resume": job.resumes,
    }
    return tuple(name for name in PHASES if having[name])


def run_job(
    job: Job,
    device: torch.device,
    observer: Observer,
    *,
    phases: Sequence[str] = (),
    steps: int = 2,
) -> None:
    """Run the phases that the job has (or those of them that are named) and tell the observer.

    Steps after the second are taken as the second is, under its name. Loading always runs, since
    nothing runs without it. A merge comes last, because it takes the adapter away. Raises
    UnsupportedError where the job cannot be built from its description.
    """
    if job.entry is not None:
        from oomdoctor.worker.run.entry import run_entry

        run_entry(job.entry, device, observer)
        return
    wanted = [name for name in phases_of(job) if not phases or name in phases]
    strategy = strategy_of(job)
    try:
        bench = Bench(job, device, observer, recipe=recipe_of(job), strategy=strategy)
        _run(bench, _with_steps(wanted, steps))
    finally:
        strategy.close()


def _with_steps(names: Sequence[str], steps: int) -> list[str]:
    """Return phases with as many steps as are asked for: the second stands for later ones."""
    counts = {"step 1": min(steps, 1), "step 2": max(steps - 1, 0)}
    return [name for name in names for _ in range(counts.get(name, 1))]


def _run(bench: Bench, wanted: Sequence[str]) -> None:
    job = bench.job
    load(bench)
    if job.trains:
        prepare_training(bench)
    else:
        cast_automatically(bench)
    for name in sorted(wanted, key="merge".__eq__):
        if name in STEPS:
            train_step(bench, name)
        elif name in bench.strategy.phases:
            _PHASES[name](bench)
        elif name in _PHASES:
            bench.observer.assume(f"{name} is not traced under {job.sharding.kind}")


_PHASES: dict[str, Callable[[Bench], None]] = {
    "evaluation": evaluate,
    "generation": generate,
    "save": saving.save,
    "resume": saving.resume,
    "merge": saving.merge,
}
