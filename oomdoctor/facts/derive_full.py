"""Derived facts of training a whole model: printed parameters, the largest such card, the share."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, MissingFactError, Outcome, derives
from oomdoctor.facts.derive_job import SPLIT_MODEL

LEAST_ADAM = 8  # 16-bit weights and gradients, two 16-bit moments
_CAPACITY = ("oom.capacity", "gpu.mig_slice", "gpu.total")


@cache
def _adapters() -> re.Pattern[str]:
    return re.compile(
        r"lora|peft|adapter|prefix|prompt[_-]?tun|freez|frozen|p[_-]?tun|ia3|bit\b|quant|reft"
        r"|tune_mm_mlp|distill|embed|requires_grad",
        re.IGNORECASE,
    )


@cache
def _training_script() -> re.Pattern[str]:
    return re.compile(r"(?:^|[/_-])(?:train|finetun|fine_tun|sft|run_clm|pretrain)", re.IGNORECASE)


@cache
def _training_command() -> re.Pattern[str]:
    """Match a program of its own whose subcommand trains: `ilab model train --gpus 1`."""
    return re.compile(r"^\s*(?:\$ )?[a-z][\w-]*(?: model)? train(?= --?[a-z])", re.MULTILINE)


@derives("gpu.most", reads=("gpu.name", *_CAPACITY))
def most(facts: Inputs) -> Outcome:
    """The capacity as stated, else the largest memory that a card of that name comes with."""
    for key in _CAPACITY:
        if facts.maybe_number(key) is not None:
            return Outcome(facts.whole(key), "capacity", facts.slack(key))
    from oomdoctor.facts import gpus

    found = gpus.lookup(facts.text("gpu.name"))
    totals = [size for one in found for size in one.totals()]
    if not totals:
        raise MissingFactError("gpu.name")
    return Outcome(max(totals), f"largest card of the name {found[0].name}", 0.03 * max(totals))


def _whole(facts: Inputs, key: str) -> Outcome | None:
    """Return a printed number where no rank holds only a share of the parameters."""
    kind = facts.maybe_text("dist.kind")
    if kind not in (None, "none", "ddp", "dp") and facts.maybe_int("dist.world_size") != 1:
        return None
    return Outcome(facts.whole(key), "number that the log prints", facts.slack(key))


_SHARES = ("dist.kind", "dist.world_size")


@derives("model.params", reads=("model.params_printed", "train.params_printed", *_SHARES))
def printed_params(facts: Inputs) -> Outcome | None:
    """The printed number of parameters, where ranks do not share them; adapters count as slack."""
    told = _whole(facts, "model.params_printed")
    trained = facts.maybe_int("train.params_printed")
    if told is None or trained is None or trained >= (whole := facts.whole("model.params_printed")):
        return told
    return told._replace(slack=told.slack + min(trained, whole // 10))


@derives("train.trainable_params", reads=("train.params_printed", *_SHARES))
def printed_trained(facts: Inputs) -> Outcome | None:
    """The printed number of trained parameters, where ranks do not share them."""
    return _whole(facts, "train.params_printed")


@derives(
    "train.full_finetune",
    reads=("lora.on", "quant.kind", "job.script", "job.text", "job.task", "run.inference_only"),
)
def assumed_full(facts: Inputs) -> Outcome | None:
    """A training script whose command speaks of no adapter trains the whole model: a guess."""
    if facts.maybe_flag("lora.on") or facts.maybe_flag("run.inference_only"):
        return None
    if (facts.maybe_text("quant.kind") or "none") != "none":
        return None
    script = facts.maybe_text("job.script")
    trains = _training_script().search(script) if script else None
    if trains is None and _training_command().search(facts.text("job.text")) is None:
        return None
    if _adapters().search(facts.text("job.text")) is not None:
        return None
    return Outcome(value=True, source="a training script without adapter", guess=True)


@derives(
    "states.least_full_share",
    reads=("train.full_finetune", "model.params", "gpu.most", "dist.shards_optimizer", "dist.kind"),
)
def least_full(facts: Inputs) -> Outcome | None:
    """8 bytes per parameter (16-bit weights, gradients, moments) / the largest such card."""
    if not facts.flag("train.full_finetune") or facts.flag("dist.shards_optimizer"):
        return None
    if facts.maybe_text("dist.kind") in SPLIT_MODEL:
        return None
    value = LEAST_ADAM * facts.number("model.params") / facts.number("gpu.most")
    slack = LEAST_ADAM * facts.slack("model.params") / facts.number("gpu.most")
    return Outcome(value, "8 bytes x parameters / capacity", slack)


PRINTED_STEPS = (printed_params,)
STEPS = (most, printed_params, printed_trained, assumed_full, least_full)
