"""Set phrases of notes: `lora r16`, `ZeRO-3`, `bs 4`, `gradient checkpointing off`, `WSL2`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from oomdoctor.configs import scalars
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.hardware import Found

if TYPE_CHECKING:
    from collections.abc import Iterator


class Phrase(NamedTuple):
    """A wording (a regular expression without case) and the claims it makes."""

    pattern: str
    claims: tuple[Claim, ...]


NUMBERS = (  # a number behind these words; the longer wording stands first
    (r"(?:global|total|effective)\s+batch(?:\s*size)?", "train.global_batch"),
    (r"eval(?:uation)?\s+batch(?:\s*size)?", "eval.batch"),
    (r"(?:micro\s*|per[- ](?:device|gpu)\s+)?batch(?:\s*size)?|mbs|bs|bsz", "train.micro_batch"),
    (r"(?:sequence|seq|context|max|cutoff)\s*(?:length|len|size)|seq|ctx|context", "train.seq_len"),
    (
        r"grad(?:ient)?\s+accum(?:ulation)?(?:\s+steps)?|accum(?:ulation)?\s+steps",
        "train.grad_accum",
    ),
    (r"(?:lora\s+)?(?:rank|r)", "lora.rank"),
    (r"(?:num(?:ber of)?\s+)?workers", "data.workers"),
    (r"max\s+new\s+tokens", "gen.max_new_tokens"),
    (r"(?:tensor\s+parallel(?:\s+size)?|tp)", "serve.tensor_parallel"),
)
PHRASES = (
    Phrase(r"zero[- ]?(?:stage[- ]?)?3|\bz3\b|stage[- ]?3", (Claim("dist.kind", "zero3"),)),
    Phrase(r"zero[- ]?(?:stage[- ]?)?2|\bz2\b|stage[- ]?2", (Claim("dist.kind", "zero2"),)),
    Phrase(r"zero[- ]?(?:stage[- ]?)?1|stage[- ]?1", (Claim("dist.kind", "zero1"),)),
    Phrase(r"fsdp[ -]?v?2", (Claim("dist.kind", "fsdp2"),)),
    Phrase(r"fsdp1?", (Claim("dist.kind", "fsdp1"),)),
    Phrase(r"ddp|distributed\s?data\s?parallel", (Claim("dist.kind", "ddp"),)),
    Phrase(r"nn\.dataparallel|\bdataparallel", (Claim("dist.kind", "dp"),)),
    Phrase(r"qlora", (Claim("lora.on", value=True), Claim("quant.kind", "bnb4"))),
    Phrase(r"lora|dora|peft", (Claim("lora.on", value=True),)),
    Phrase(
        r"full[- ](?:parameter |param )?(?:fine[- ]?tun(?:e|ing)|ft|sft)",
        (Claim("train.full_finetune", value=True), Claim("lora.on", value=False)),
    ),
    Phrase(r"(?:4[- ]?bit|nf4)(?!\s*adam)", (Claim("quant.kind", "bnb4"),)),
    Phrase(
        r"(?:no|without)\s+(?:gradient|grad|activation)\s+checkpointing",
        (Claim("train.grad_checkpointing", value=False),),
    ),
    Phrase(
        r"(?:gradient|grad|activation)\s+checkpointing\s*(?::|=|is)?\s*(?:off|disabled|false|no)\b",
        (Claim("train.grad_checkpointing", value=False),),
    ),
    Phrase(
        r"(?:gradient|grad|activation)\s+checkpointing",
        (Claim("train.grad_checkpointing", value=True),),
    ),
    Phrase(r"(?:bf16|bfloat16)(?:\s+(?:mixed|amp|autocast))", (Claim("train.amp", "bf16"),)),
    Phrase(r"(?:fp16|float16)(?:\s+(?:mixed|amp|autocast))", (Claim("train.amp", "fp16"),)),
    Phrase(r"(?:bf16|bfloat16)(?!-)", (Claim("train.amp", "bf16"),)),
    Phrase(r"(?:fp16|float16)(?!-)", (Claim("train.amp", "fp16"),)),
    Phrase(r"flash[- ]?att(?:ention|n)[- ]?3", (Claim("attention.impl", "flash3"),)),
    Phrase(r"flash[- ]?att(?:ention|n)(?:[- ]?2)?", (Claim("attention.impl", "flash2"),)),
    Phrase(r"eager attention", (Claim("attention.impl", "eager"),)),
    Phrase(r"co-?locat(?:ed|e|ion)", (Claim("gen.colocated_engine", value=True),)),
    Phrase(r"sleep[- ]mode", (Claim("gen.engine_sleep", value=True),)),
    Phrase(r"wsl ?2?", (Claim("env.platform", "wsl"),)),
    Phrase(r"windows(?: ?1[01])?", (Claim("env.platform", "windows"),)),
    Phrase(r"mac ?os", (Claim("env.platform", "macos"),)),
    Phrase(r"docker|kubernetes|k8s|container", (Claim("env.container", value=True),)),
    Phrase(r"jupyter|colab|notebook|kaggle", (Claim("env.notebook", value=True),)),
    Phrase(r"sft|instruction tuning", (Claim("job.task", "sft"),)),
    Phrase(r"grpo", (Claim("job.task", "grpo"),)),
    Phrase(r"dpo(?:trainer)?", (Claim("job.task", "dpo"),)),
    Phrase(r"expandable_segments\s*[:=]\s*true", (Claim("alloc.expandable_segments", value=True),)),
)
_WORDS = """
zero z3 z2 stage fsdp parallel ddp lora dora peft full bit nf4 checkpoint bf16 bfloat16 fp16 float16
att locat sleep wsl windows mac docker kube k8s contain jupyter colab notebook kaggle sft
instruction grpo dpo expandable
"""
HINTS = frozenset(_WORDS.split())


@cache
def _numbers() -> re.Pattern[str]:
    parts = "|".join(f"(?P<k{i}>{pattern})" for i, (pattern, _) in enumerate(NUMBERS))
    return re.compile(
        rf"(?<![\w.-])(?:{parts})(?:\s*[:=]\s*|\s+of\s+|\s+is\s+|\s*)(?P<n>\d[\d,]*k?)(?![\w.%]|,\d)",
        re.IGNORECASE,
    )


@cache
def _phrases() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(rf"(?<![\w./-])(?:{p.pattern})(?![\w/])", re.IGNORECASE) for p in PHRASES
    )


def find(text: str) -> Iterator[Found]:
    """Return the claims of set phrases in a line."""
    low = text.lower()
    if any(c.isdigit() for c in low):
        for hit in _numbers().finditer(text):
            key = next(NUMBERS[i][1] for i in range(len(NUMBERS)) if hit[f"k{i}"] is not None)
            number = scalars.as_count(hit["n"])
            if number:
                yield Found(Claim(key, number), *hit.span("n"))
                if key == "lora.rank":
                    yield Found(Claim("lora.on", value=True), *hit.span())
    if not any(hint in low for hint in HINTS):
        return
    for phrase, pattern in zip(PHRASES, _phrases(), strict=True):
        hit_or_none = pattern.search(text)
        if hit_or_none is not None and not _denied(low, hit_or_none.start()):
            for claim in phrase.claims:
                yield Found(claim, *hit_or_none.span())


def _denied(low: str, at: int) -> bool:
    """Say whether `no`, `not` or `without` stands right before."""
    before = f" {low[:at].rstrip()}"
    return before.endswith((" no", " not", " without", " non", "-non", " w/o"))
