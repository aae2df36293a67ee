"""Derived facts of the training and evaluation loop that lint's memory rules ask for."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, MissingFactError, Outcome, derives
from oomdoctor.facts.derive_lint_memory import at_least

KEPT_BYTES = 4
MUCH = 0.10
_TRAINERS = frozenset(("transformers", "trl", "llamafactory"))
_TOKEN_TASKS = frozenset(("pretrain", "sft", "dpo", "kto", "grpo"))
_SETTINGS = "job.settings"
_CAPACITY = ("gpu.mig_slice", "gpu.total", "gpu.nominal")


@cache
def _call() -> re.Pattern[str]:
    """Return the pattern of arguments in a call of a trainer's config."""
    names = "trainingarguments|seq2seqtrainingarguments|sftconfig|dpoconfig|grpoconfig|ktoconfig"
    return re.compile(rf"^(?:{names})\.\w+ = ", re.MULTILINE)


@cache
def _batch() -> re.Pattern[str]:
    return re.compile(
        r"^(?:[\w-]+\.)*(?:per_device_train_batch_size|per_gpu_train_batch_size|micro_batch_size)"
        r" = ",
        re.MULTILINE,
    )


def _trains_here(settings: str) -> bool:
    """Say whether LLaMA-Factory trains, and does not only tokenise or predict."""
    wanted = ("do_train = true", "output_dir = ")
    trains = all(re.search(rf"^{line}", settings, re.MULTILINE) for line in wanted)
    return trains and re.search(r"^tokenized_path = (?!null)", settings, re.MULTILINE) is None


@derives(
    "train.batch_unset",
    reads=(_SETTINGS, "job.framework", "train.auto_batch"),
)
def batch_unset(facts: Inputs) -> Outcome | None:
    """Whether the library's 8 rows are in force: nothing in a whole config or call sets them."""
    if facts.text("job.framework") not in _TRAINERS or facts.maybe_flag("train.auto_batch"):
        return None
    settings = facts.glance(_SETTINGS)
    if _batch().search(settings) is not None:
        return Outcome(value=False, source="the rows per device are given")
    if facts.text("job.framework") == "llamafactory" and not _trains_here(settings):
        return None
    if _call().search(settings) is None and "train-config" not in facts.closed:
        return None
    return Outcome(value=True, source="nothing sets the rows per device")


@derives(
    "optimizer.foreach",
    reads=(
        *("optimizer.name", "optimizer.fused", "optimizer.offload", "optimizer.in_backward"),
        *("job.framework", "env.transformers", "env.torch", _SETTINGS),
    ),
)
def foreach(facts: Inputs) -> Outcome | None:
    """Whether AdamW steps over lists of tensors, which torch does on CUDA unless it is fused."""
    if (facts.maybe_text("optimizer.offload") or "none") != "none":
        return Outcome(value=False, source="the step runs in main memory")
    if facts.maybe_flag("optimizer.fused") or facts.maybe_flag("optimizer.in_backward"):
        return Outcome(value=False, source="a fused step, or one tensor at a time")
    framework = facts.maybe_text("job.framework") or ""
    if framework in _TRAINERS and _optim().search(facts.glance(_SETTINGS)) is None:
        fused = at_least(facts.text("env.transformers"), (4, 54))
        fused = fused and at_least(facts.maybe_text("env.torch") or "2.8", (2, 8))
        words = "is" if fused else "is not"
        return Outcome(value=not fused, source=f"the trainer's default {words} fused", guess=True)
    name = facts.text("optimizer.name").lower().rpartition(".")[2]
    if name not in ("adamw", "adam", "adamw_torch"):
        return Outcome(value=False, source=f"{name} has its own step")
    return Outcome(value=True, source="torch steps over lists of tensors on CUDA")


@cache
def _spilling() -> re.Pattern[str]:
    return re.compile(
        r"^(?:[\w-]+\.)*(?:use_badam|use_lomo|lisa_\w+|use_galore|use_apollo) = (?!false|null)",
        re.MULTILINE,
    )


@derives("optimizer.few_states", reads=("optimizer.name", _SETTINGS))
def few_states(facts: Inputs) -> Outcome | None:
    """Whether states are paged out, kept for some layers at a time, or projected to low rank."""
    if _spilling().search(facts.glance(_SETTINGS)) is not None:
        return Outcome(value=True, source="layers take turns, or states are projected")
    name = (facts.settled("optimizer.name") or "").lower()
    if not name:
        return None
    words = ("paged", "layerwise", "lomo", "galore", "apollo", "badam", "lisa")
    return Outcome(value=any(word in name for word in words), source=f"optimizer {name}")


@cache
def _optim() -> re.Pattern[str]:
    return re.compile(r"^(?:[\w-]+\.)*optim = (?!null)", re.MULTILINE)


@derives(
    "quant.kbit_prepared",
    reads=("job.framework", "job.task", "lora.on", "quant.kind", "env.trl"),
)
def prepared(facts: Inputs) -> Outcome | None:
    """SFTTrainer up to TRL 0.24 calls PEFT's preparation itself."""
    if facts.text("job.framework") != "trl" or facts.text("job.task") != "sft":
        return None
    if not facts.flag("lora.on") or facts.text("quant.kind") not in ("bnb4", "bnb8"):
        return None
    if at_least(facts.text("env.trl"), (0, 25)):
        return None
    return Outcome(value=True, source="SFTTrainer up to TRL 0.24 prepares the model itself")


@derives(
    "eval.uses_cache",
    reads=("env.transformers", "train.use_cache", "model.kind", "job.framework"),
)
def uses_cache(facts: Inputs) -> Outcome | None:
    """Whether evaluation builds a key/value cache: up to transformers 4, where it is not off."""
    if facts.text("job.framework") not in ("transformers", "trl"):
        return None
    if at_least(facts.text("env.transformers"), (5,)):
        return Outcome(value=False, source="the Trainer of transformers 5 switches it off")
    said = facts.maybe_flag("train.use_cache")
    if said is not None:
        return Outcome(value=said, source="use_cache of the model")
    if facts.text("model.kind") != "causal-lm":
        return None
    return Outcome(value=True, source="use_cache is on in a decoder's config", guess=True)


def _small_logits(facts: Inputs) -> str | None:
    """Return why an output is no vocabulary per token, None where it is; unknown without a task."""
    if facts.maybe_text("job.framework") == "llamafactory":
        return "LLaMA-Factory reduces logits to ids"
    kind, task = facts.maybe_text("model.kind"), facts.maybe_text("job.task")
    if kind is None and task is None:
        raise MissingFactError("model.kind")
    tokens = kind in (None, "causal-lm") and task in (None, *_TOKEN_TASKS)
    return None if tokens else "no logits per token and vocabulary entry"


@derives(
    "eval.keeps_much",
    reads=(
        *("eval.compute_metrics", "data.eval_rows", "train.seq_len", "model.vocab", "model.kind"),
        *("job.task", "job.framework", *_CAPACITY),
    ),
)
def keeps_much(facts: Inputs) -> Outcome | None:
    """Whether the logits of the whole evaluation set are over 10 % of the card, if kept there."""
    if not facts.flag("eval.compute_metrics"):
        return None
    small = _small_logits(facts)
    if small is not None:
        return Outcome(value=False, source=small)
    rows, length = facts.maybe_int("data.eval_rows"), facts.maybe_int("train.seq_len")
    vocab = facts.maybe_int("model.vocab")
    if rows is None or length is None or vocab is None:
        source = "the size of the evaluation set is not known"
        return Outcome(value=True, source=source, guess=True)
    total = KEPT_BYTES * rows * length * vocab
    words = "evaluation set x tokens x vocabulary x 4 bytes"
    try:
        card = facts.number(facts.first(*_CAPACITY))
    except MissingFactError:
        return Outcome(value=total > 8 << 30, source=f"{words} against 8 GiB", guess=True)
    return Outcome(value=total > MUCH * card, source=f"{words} against the card")


EVERYWHERE = (keeps_much,)
STEPS = (batch_unset, few_states, foreach, prepared, uses_cache, keeps_much)
