"""The peak of a job by arithmetic alone, without torch: the true maximum over its time.

Every operator of a step is counted as transformers runs it (what it allocates, saves for backward
and frees), so that the peak is the highest point of the sum, not a sum of highest points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import formula_cnn, formula_owners
from oomdoctor.memory.formula_gather import TRAINERS
from oomdoctor.memory.formula_host import host_bytes
from oomdoctor.memory.formula_shape import Shape, shape_of, stands_in
from oomdoctor.memory.formula_steps import Steps
from oomdoctor.memory.tape import Tape
from oomdoctor.model.estimate import Owner, PartBytes, PhasePeak
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.memory.tape import Param
    from oomdoctor.model.job import Job

ORDER = (
    *("weights", "adapter", "optimizer", "gradient", "activation", "logits and loss"),
    *("kv cache", "input", "communication", "workspace", "temporary"),
)
_FORMULAS = {
    "weights": "parameters x bytes of their dtype or quantised form",
    "adapter": "rank x (inputs + outputs) of the targets x bytes",
    "optimizer": "trained parameters x bytes of states",
    "gradient": "trained parameters x bytes of their dtype",
    "activation": "what every operator of a layer saves for backward x layers",
    "logits and loss": "rows x tokens x vocabulary x bytes of the loss path",
    "kv cache": "2 x layers x rows x tokens x kv heads x head size x bytes",
}
_SIX = {
    **dict.fromkeys(("weights", "adapter", "optimizer", "gradient"), None),
    **dict.fromkeys(("activation", "input", "kv cache"), "activations"),
    "logits and loss": "logits and loss",
    **dict.fromkeys(("communication", "workspace", "temporary"), "temporaries"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaPeak:
    """What the formulas say: the peak of each phase, and what the highest is made of.

    `parts` are those that people know, `categories` those of the simulation; `owners` are groups of
    modules for weights, and one for each other category.
    """

    phases: tuple[PhasePeak, ...]
    peak_bytes: int
    peak_phase: str
    parts: tuple[PartBytes, ...]
    categories: tuple[PartBytes, ...]
    owners: tuple[Owner, ...]
    host_bytes: int | None = None
    assumptions: tuple[str, ...] = ()


def peak_by_formula(job: Job) -> FormulaPeak:
    """Return the peak of a job; ValueError for a model that no formula covers."""
    if "library" in job.model.config:
        return _convolutions(job)
    whole = shape_of(job.model.config)
    if whole.hidden <= 1:  # what stands for a width that was not found
        raise ValueError("its config names no width of its layers")
    shape = _shared(whole, job)
    steps = Steps(job, shape)
    _run(steps, job)
    said = (*_assumed(job, shape), *_untargeted(steps, job))
    found = _peak(steps.tape, said, steps.weights)
    return replace(found, host_bytes=host_bytes(job, steps.weights))


def _convolutions(job: Job) -> FormulaPeak:
    tape = Tape()
    formula_cnn.run(tape, job)
    said = "formula: a coarse count; workspaces of cuDNN are left out"
    return _peak(tape, (said,))


def _peak(
    tape: Tape, assumptions: tuple[str, ...], weights: Sequence[tuple[Param, int]] = ()
) -> FormulaPeak:
    return FormulaPeak(
        phases=tuple(PhasePeak(name=n, allocated_bytes=int(b)) for n, b in tape.phases.items()),
        peak_bytes=tape.peak,
        peak_phase=tape.peak_place[0],
        parts=_six(tape.peak_parts),
        categories=_categories(tape.peak_parts),
        owners=formula_owners.owners(tape.peak_parts, tape.peak_place, weights),
        assumptions=assumptions,
    )


def _assumed(job: Job, shape: Shape) -> tuple[str, ...]:
    """Return what the formulas leave out of this job."""
    said = []
    if stands_in(job.model.config):
        kind = job.model.config.get("model_type")
        said.append(f"formula: {kind} is counted as a gated decoder of its widths")
    if "vision_config" in job.model.config:
        said.append("formula: the images' own network counts as weights, not as activations")
    if shape.experts:
        said.append("formula: tokens spread evenly over the experts")
    if job.compiled:
        said.append("formula: as without torch.compile, which usually keeps less")
    if job.sharding.tensor > 1 or job.sharding.pipeline > 1:
        said.append("formula: tensor and pipeline parallelism divide layers evenly")
    zero = job.sharding.kind.startswith("zero")
    if zero and job.sharding.bucket_bytes is None and job.framework in TRAINERS:
        said.append("formula: DeepSpeed's buckets hold hidden size squared values")
    return tuple(said)


def _untargeted(steps: Steps, job: Job) -> tuple[str, ...]:
    if job.lora is None or any(one.name.endswith(".lora_A") for one, _ in steps.weights):
        return ()
    named = ", ".join(job.lora.targets) or "PEFT's own targets"
    lacking = f"formula: without an adapter, for no module that it knows of is named {named}"
    return (f"{lacking}; PEFT refuses targets that no module has",)


def _run(steps: Steps, job: Job) -> None:
    steps.load()
    if job.trains:
        steps.step("step 1")
        steps.step("step 2")
    elif job.task == "serving":
        steps.serve()
    elif job.generation is None:
        steps.tape.begin("evaluation")
        with steps.tape.quiet():
            steps.network.loss(*steps.sizes(job.batch, job.seq_len))
    if job.evaluation is not None:
        steps.evaluate(job.evaluation)
    if job.generation is not None:
        steps.generate(job.generation)
        steps.prompt_peak(job.generation)
    if job.merges:
        steps.merge()


def _shared(shape: Shape, job: Job) -> Shape:
    """Return the share of the network that one card holds under tensor and pipeline parallelism."""
    tensor, stages = job.sharding.tensor, job.sharding.pipeline
    if tensor > 1:
        shape = replace(
            shape,
            heads=max(1, shape.heads // tensor),
            kv_heads=max(1, shape.kv_heads // tensor),
            width=-(-shape.width // tensor),
            vocab=-(-shape.vocab // tensor),
            expert_width=-(-shape.expert_width // tensor),
            shared_width=-(-shape.shared_width // tensor),
        )
    if stages > 1:
        shape = replace(shape, layers=-(-shape.layers // stages))
    return shape


def _categories(parts: Mapping[str, int]) -> tuple[PartBytes, ...]:
    return tuple(
        PartBytes(name=name, bytes=int(parts[name]), formula=_FORMULAS.get(name))
        for name in ORDER
        if parts.get(name)
    )


def _six(parts: Mapping[str, int]) -> tuple[PartBytes, ...]:
    """Return the parts that people know."""
    sums: dict[str, int] = {}
    for name in ORDER:
        if parts.get(name):
            known = _SIX[name] or name
            sums[known] = sums.get(known, 0) + int(parts[name])
    return tuple(
        PartBytes(name=name, bytes=size, formula=_FORMULAS.get(name)) for name, size in sums.items()
    )
