"""Derived facts of the run: early or late, training or inference alone."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

BEFORE_TRAINING = ("import", "load", "prepare", "serve-start", "serve-profile")
ONLY_TRAINING = ("backward", "optimizer")
LATE_AFTER = 20
TRAINING_TASKS = frozenset(
    (
        "pretrain",
        "sft",
        "dpo",
        "kto",
        "grpo",
        "ppo",
        "reward",
        "classification",
        "token-classification",
        "masked-lm",
        "embedding",
        "seq2seq",
    )
)
INFERENCE_TASKS = frozenset(("serve", "generate", "evaluate", "merge"))
ALSO_IN_TRAINERS = ("vllm", "sglang", "onnxruntime")
SERVERS = frozenset(("vllm", "sglang"))


@derives("run.progress", reads=("run.step", "run.total_steps"))
def progress(facts: Inputs) -> Outcome | None:
    """Step / planned steps."""
    total = facts.number("run.total_steps")
    value = facts.number("run.step") / total
    return Outcome(value, "step / planned steps") if 0 <= value <= 1 else None


@derives("run.first_step", reads=("run.step", "run.phase"))
def first_step(facts: Inputs) -> Outcome | None:
    """Step 0 is the first; a printed 1 may mean 'the first' or 'one done' and says nothing."""
    step = facts.maybe_int("run.step")
    if step is None:
        if facts.text("run.phase") in BEFORE_TRAINING:
            return Outcome(value=True, source="the phase is before the first step")
        return None
    if step == 1:
        return None
    return Outcome(value=step < 1, source=f"step {step}")


@derives("run.late_step", reads=("run.step", "run.phase"))
def late_step(facts: Inputs) -> Outcome | None:
    """More than 20 steps went well."""
    step = facts.maybe_int("run.step")
    if step is None:
        if facts.text("run.phase") in BEFORE_TRAINING:
            return Outcome(value=False, source="the phase is before the first step")
        return None
    return Outcome(value=step > LATE_AFTER, source=f"step {step}")


@derives(
    "run.inference_only",
    reads=(
        "train.inference",
        "job.task",
        "job.framework",
        "run.phase",
        "serve.engine",
        "code.loads_only",
        "train.micro_batch",
        "lora.on",
        "job.text",
    ),
)
def inference_only(facts: Inputs) -> Outcome | None:
    """The task, the framework or the phase says whether anything is trained."""
    said = facts.maybe_flag("train.inference")
    if said is not None:
        return Outcome(value=said, source="the job says so")
    phase = facts.maybe_text("run.phase") or ""
    if phase in ONLY_TRAINING:
        return Outcome(value=False, source=f"phase {phase} is of training")
    task = facts.maybe_text("job.task") or ""
    if task in INFERENCE_TASKS or task in TRAINING_TASKS:
        return Outcome(value=task in INFERENCE_TASKS, source=f"task {task}")
    return _serving(facts, phase)


def _serving(facts: Inputs, phase: str) -> Outcome | None:
    """An engine that serves, or a script that shows no more than a load."""
    if (facts.maybe_text("serve.engine") or "vllm") not in ALSO_IN_TRAINERS:
        return Outcome(value=True, source="an engine that cannot train")
    framework = facts.maybe_text("job.framework") or ""
    if framework in SERVERS or phase in ("serve", "serve-start", "serve-profile"):
        return Outcome(value=True, source="a serving engine runs")
    if _only_loads(facts, phase):
        words = "the script loads a model and shows nothing that trains"
        return Outcome(value=True, source=words, guess=True)
    return None


def _only_loads(facts: Inputs, phase: str) -> bool:
    """Say whether a script that loads a model is all there is, with no word of training beside."""
    if not facts.maybe_flag("code.loads_only") or phase not in ("", "load", "generate"):
        return False
    trains = facts.maybe_int("train.micro_batch") is not None or facts.maybe_flag("lora.on")
    return not trains and not _training_words().search(facts.glance("job.text"))


@cache
def _training_words() -> re.Pattern[str]:
    return re.compile(
        r"(?i)(?<!pre)(?<!_pre)train(?!ed)|fine-?_?tun|\blora|\boptim|epoch|deepspeed|learning_rate|"
        r"\bsft\b|\bdpo\b|\brlhf\b|\bloss\b|backward"
    )


@derives("train.inference", reads=("run.inference_only",))
def inference(facts: Inputs) -> Outcome:
    """The job only runs inference: the same as run.inference_only."""
    return Outcome(facts.flag("run.inference_only"), "as run.inference_only")


STEPS = (progress, first_step, late_step, inference_only, inference)
