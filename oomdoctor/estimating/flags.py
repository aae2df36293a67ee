"""Flags of the command as facts that a person states, so that they outrank every config.

--batch 4          train.micro_batch = 4
--method qlora     lora.on = true, quant.kind = bnb4, ...
--what-if seq=4096 the same names, for a job that differs in that
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.facts.given import parse_one
from oomdoctor.facts.registry import specs
from oomdoctor.model.core import Fact
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FLAGS: Mapping[str, str] = {
    "model": "model.name",
    "task": "job.task",
    "dtype": "load.dtype",
    "amp": "train.amp",
    "batch": "train.micro_batch",
    "seq": "train.seq_len",
    "grad-accum": "train.grad_accum",
    "checkpointing": "train.grad_checkpointing",
    "optimizer": "optimizer.name",
    "attention": "attention.impl",
    "loss": "loss.impl",
    "lora-r": "lora.rank",
    "lora-alpha": "lora.alpha",
    "lora-targets": "lora.targets",
    "modules-to-save": "lora.modules_to_save",
    "quant": "quant.kind",
    "sharding": "dist.kind",
    "gpus": "dist.world_size",
    "eval-batch": "eval.batch",
    "new-tokens": "gen.max_new_tokens",
    "prompt": "gen.prompt",
    "labels": "model.labels",
    "engine-name": "serve.engine",
    "utilization": "serve.utilization",
    "max-len": "serve.max_len",
}
METHODS: Mapping[str, Mapping[str, str]] = {
    "full": {"lora.on": "false", "train.full_finetune": "true", "quant.kind": "none"},
    "lora": {"lora.on": "true", "train.full_finetune": "false", "quant.kind": "none"},
    "dora": {
        "lora.on": "true",
        "train.full_finetune": "false",
        "quant.kind": "none",
        "lora.dora": "true",
    },
    "rslora": {
        "lora.on": "true",
        "train.full_finetune": "false",
        "quant.kind": "none",
        "lora.rslora": "true",
    },
    "qlora": {"lora.on": "true", "train.full_finetune": "false", "quant.kind": "bnb4"},
    "qdora": {
        "lora.on": "true",
        "train.full_finetune": "false",
        "quant.kind": "bnb4",
        "lora.dora": "true",
    },
    "lora-8bit": {"lora.on": "true", "train.full_finetune": "false", "quant.kind": "bnb8"},
}
TASKS: Mapping[str, Mapping[str, str]] = {
    "orpo": {"job.task": "dpo", "train.variant": "orpo"},
    "simpo": {"job.task": "dpo", "train.variant": "simpo"},
    "generation": {"job.task": "generate"},
    "inference": {"job.task": "generate"},
    "evaluation": {"job.task": "evaluate"},
    "image-classification": {"job.task": "vision"},
    "serving": {"job.task": "serve"},
}
QUANTS: Mapping[str, Mapping[str, str]] = {
    "nf4-double": {"quant.kind": "bnb4", "quant.type": "nf4", "quant.double": "true"},
    "fp4": {"quant.kind": "bnb4", "quant.type": "fp4"},
}
NAMES: Mapping[str, Mapping[str, str]] = {  # what people call it -> what the fact calls it
    "load.dtype": {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16"},
    "train.amp": {"bfloat16": "bf16", "float16": "fp16", "off": "none", "no": "none"},
    "attention.impl": {
        "flash": "flash2",
        "flash_attention_2": "flash2",
        "flash_attention_3": "flash3",
        "flex_attention": "flex",
    },
    "quant.kind": {"nf4": "bnb4", "4bit": "bnb4", "int8": "bnb8", "8bit": "bnb8", "off": "none"},
    "dist.kind": {"fsdp": "fsdp2", "zero-1": "zero1", "zero-2": "zero2", "zero-3": "zero3"},
    "loss.impl": {"full-logits": "full"},
}
REPLACED: Mapping[str, tuple[str, ...]] = {  # what a config says of these gives way altogether
    "model": ("model.",),
    "optimizer": ("optimizer.",),
    "method": (
        *("lora.on", "lora.dora", "lora.rslora", "quant."),
        *("train.full_finetune", "train.trainable"),
    ),
    "quant": ("quant.",),
}
LISTS = ("lora-targets", "modules-to-save")
ADAPTER = ("lora-r", "lora-alpha", "lora-targets", "modules-to-save")
METHOD, OPTIMIZER = "method", "optimizer"
WHOLE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    METHOD: METHODS,
    "task": TASKS,
    "quant": QUANTS,
}
"""Flags whose values stand for several facts."""


def facts_of(values: Mapping[str, object]) -> tuple[Fact, ...]:
    """Return the facts of flags by their names; those that are None were not given."""
    found: dict[str, Fact] = {}
    for name, value in values.items():
        if value is not None:
            for fact in flag_facts(name, _text(value)):
                found[fact.key] = fact
    return tuple(found.values())


def without_implied(flags: Iterable[Fact], stated: Iterable[Fact]) -> tuple[Fact, ...]:
    """Leave out what a method only implies where somebody states it: --fact quant.kind=gptq."""
    keys = {fact.key for fact in stated}
    implied = f"stated with --{METHOD}"
    return tuple(one for one in flags if not (one.source == implied and one.key in keys))


def check_together(values: Mapping[str, object]) -> None:
    """Refuse flags that contradict each other: an adapter's beside --method full."""
    if values.get(METHOD) == "full":
        for name in ADAPTER:
            if values.get(name) is not None:
                raise UsageError(
                    f"--{name} speaks of an adapter, and --method full trains none",
                    hint="leave one of them out, or give --method lora",
                )


def flag_facts(name: str, value: str) -> Iterator[Fact]:
    """Yield the facts of one flag; UsageError names the flag where its value is none."""
    source = f"stated with --{name}"
    whole = WHOLE.get(name, {}).get(value.lower())
    if whole is not None:
        for key, text in whole.items():
            yield replace(parse_one(f"{key}={text}"), source=source)
        return
    if name not in FLAGS:
        known = ", ".join(WHOLE[name])
        raise UsageError(f"--{name} {value!r} is none that is known", hint=f"one of {known}")
    key = FLAGS[name]
    text = NAMES.get(key, {}).get(value.lower(), value)
    if name in LISTS and not value.strip(" ,"):
        raise UsageError(f"--{name} {value!r} names nothing", hint="names with commas between them")
    try:
        yield replace(parse_one(f"{key}={text}"), source=source)
    except UsageError as error:
        message = error.message.replace(f"--fact {key}={text}", f"--{name} {value}")
        message = message.replace(f"--fact {key}", f"--{name}")
        raise UsageError(message, hint=error.hint) from error
    if name == OPTIMIZER:
        yield from _optimizer(value, source)


def _optimizer(value: str, source: str) -> Iterator[Fact]:
    """Yield what an optimizer's name says of its states: 8 bit, paged, fused, on the host."""
    from oomdoctor.configs.meanings import optimizer

    for claim in optimizer(value):
        if claim.key != FLAGS[OPTIMIZER]:
            yield Fact(key=claim.key, value=claim.value, source=source)


def replaced_by(names: Iterable[str]) -> tuple[str, ...]:
    """Return the starts of the keys that configs no longer speak of when such flags are given."""
    return tuple(start for name in names for start in REPLACED.get(name, ()))


def changes_of(text: str) -> dict[str, str]:
    """Split a `--what-if` into names and values: `batch=2,seq=4096`, `lora-targets=q_proj,v_proj`.

    A comma parts two changes only where a name and `=` follow it.
    """
    found: dict[str, str] = {}
    last = ""
    for piece in text.split(","):
        name, equals, value = piece.partition("=")
        plain = name.strip()
        if equals and _is_known(plain):
            last = _flag(plain)
            if last in found:
                raise UsageError(f"--what-if {text!r} changes {plain!r} twice", hint=_near(plain))
            found[last] = value.strip()
        elif last and not equals:
            found[last] += f",{piece}"
        else:
            raise UsageError(f"--what-if {text!r}: {plain!r} cannot be changed", hint=_near(plain))
    return found


def facts_of_changes(changes: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return the facts of a `--what-if`."""
    check_together(changes)
    found: dict[str, Fact] = {}
    for name, value in changes.items():
        if name in FLAGS or name == METHOD:
            made = list(flag_facts(name, value))
        else:
            made = [replace(parse_one(f"{name}={value}"), source="stated with --what-if")]
        found.update({fact.key: fact for fact in made})
    return tuple(found.values())


def _flag(name: str) -> str:
    dashed = name.replace("_", "-").removeprefix("--")
    return dashed if dashed in FLAGS or dashed == METHOD else name


def _is_known(name: str) -> bool:
    flag = _flag(name)
    return flag in FLAGS or flag == METHOD or name in specs()


def _near(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, (*FLAGS, METHOD, *specs()), n=2, cutoff=0.5)
    first = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{first}K=V where K is the name of a flag or of a fact, such as batch=2 or seq=4096"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
