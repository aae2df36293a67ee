"""Set phrases of notes: `lora r16`, `ZeRO-3`, `bs 4`, `gradient checkpointing off`, `WSL2`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.hardware import Found
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Phrase(NamedTuple):
    """A wording (a regular expression without case), words of which it needs one, its claims."""

    hints: str
    pattern: str
    claims: tuple[Claim, ...]


def _kind(name: str) -> Claim:
    return Claim("dist.kind", name)


LORA = Claim("lora.on", value=True)
UNCHECKED = Claim("train.grad_checkpointing", value=False)
_GC = r"(?:gradient|grad|activation)\s+checkpointing"
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
    Phrase("zero z3 stage", r"zero[- ]?(?:stage[- ]?)?3|z3|stage[- ]?3", (_kind("zero3"),)),
    Phrase("zero z2 stage", r"zero[- ]?(?:stage[- ]?)?2|z2|stage[- ]?2", (_kind("zero2"),)),
    Phrase("zero stage", r"zero[- ]?(?:stage[- ]?)?1|stage[- ]?1", (_kind("zero1"),)),
    Phrase("fsdp", r"fsdp[ -]?v?2", (_kind("fsdp2"),)),
    Phrase("fsdp", r"fsdp1?", (_kind("fsdp1"),)),
    Phrase("ddp parallel", r"ddp|distributed\s?data\s?parallel", (_kind("ddp"),)),
    Phrase("dataparallel", r"nn\.dataparallel|dataparallel", (_kind("dp"),)),
    Phrase("qlora", r"qlora", (LORA, Claim("quant.kind", "bnb4"))),
    Phrase("lora dora peft", r"lora|dora|peft", (LORA,)),
    Phrase(
        "full",
        r"full[- ](?:parameter |param )?(?:fine[- ]?tun(?:e|ing)|ft|sft)",
        (Claim("train.full_finetune", value=True), Claim("lora.on", value=False)),
    ),
    Phrase("bit nf4", r"(?:4[- ]?bit|nf4)(?!\s*adam)", (Claim("quant.kind", "bnb4"),)),
    Phrase("checkpointing", rf"(?:no|without)\s+{_GC}", (UNCHECKED,)),
    Phrase("checkpointing", rf"{_GC}\s*(?::|=|is)?\s*(?:off|disabled|false|no)\b", (UNCHECKED,)),
    Phrase("checkpointing", _GC, (Claim("train.grad_checkpointing", value=True),)),
    Phrase("bf16 bfloat16", r"(?:bf16|bfloat16)(?!-)", (Claim("train.amp", "bf16"),)),
    Phrase("fp16 float16", r"(?:fp16|float16)(?!-)", (Claim("train.amp", "fp16"),)),
    Phrase("flash", r"flash[- ]?att(?:ention|n)[- ]?3", (Claim("attention.impl", "flash3"),)),
    Phrase("flash", r"flash[- ]?att(?:ention|n)(?:[- ]?2)?", (Claim("attention.impl", "flash2"),)),
    Phrase("eager", r"eager attention", (Claim("attention.impl", "eager"),)),
    Phrase("locat", r"co-?locat(?:ed|e|ion)", (Claim("gen.colocated_engine", value=True),)),
    Phrase("sleep", r"sleep[- ]mode", (Claim("gen.engine_sleep", value=True),)),
    Phrase("wsl", r"wsl ?2?", (Claim("env.platform", "wsl"),)),
    Phrase("windows", r"windows(?: ?1[01])?", (Claim("env.platform", "windows"),)),
    Phrase("mac", r"mac ?os", (Claim("env.platform", "macos"),)),
    Phrase(
        "docker kube k8s contain",
        r"docker|kubernetes|k8s|container",
        (Claim("env.container", value=True),),
    ),
    Phrase(
        "jupyter colab notebook kaggle",
        r"jupyter|colab|notebook|kaggle",
        (Claim("env.notebook", value=True),),
    ),
    Phrase("sft instruction", r"sft|instruction tuning", (Claim("job.task", "sft"),)),
    Phrase("grpo", r"grpo(?:trainer)?", (Claim("job.task", "grpo"),)),
    Phrase("dpo", r"dpo(?:trainer)?", (Claim("job.task", "dpo"),)),
    Phrase(
        "expandable",
        r"expandable_segments\s*[:=]\s*true",
        (Claim("alloc.expandable_segments", value=True),),
    ),
)


@cache
def _share() -> re.Pattern[str]:
    """Match `GPU memory share for each worker: 0.1`, `VRAM fraction 50 %`."""
    return re.compile(
        r"(?<![\w.-])(?:(?:gpu|cuda|video|device)\s+mem(?:ory)?|vram)\s+(?:share|fraction|limit|cap)"
        r"(?:\s+(?:for|per|of|to)(?:\s+[a-z]+){1,3})?\s*(?:[:=]|is|at|of)?\s*"
        r"(?P<n>0?\.\d{1,4}|[01]\.0+|\d{1,3}\s?%)(?![\w.])",
        re.IGNORECASE,
    )


@cache
def _numbers() -> re.Pattern[str]:
    parts = "|".join(f"(?P<k{i}>{pattern})" for i, (pattern, _) in enumerate(NUMBERS))
    return re.compile(
        rf"(?<![\w.-])(?:{parts})(?:\s*[:=]\s*|\s+of\s+|\s+is\s+|\s*)(?P<n>\d[\d,]*k?)(?![\w.%]|,\d)",
        re.IGNORECASE,
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(?:{pattern})(?![\w/])", re.IGNORECASE)


def find(text: str) -> Iterator[Found]:
    """Return the claims of set phrases in a line."""
    low = text.lower()
    if any(c.isdecimal() for c in low):
        yield from _counted(text)
    if "mem" in low or "vram" in low:
        yield from _shared(text)
    for phrase in PHRASES:
        if not any(hint in low for hint in phrase.hints.split()):
            continue
        said = _compiled(phrase.pattern).search(text)
        if said is not None and not _denied(low, said.start()):
            for claim in phrase.claims:
                yield Found(claim, *said.span())


def _counted(text: str) -> Iterator[Found]:
    for hit in _numbers().finditer(text):
        key = next(NUMBERS[i][1] for i in range(len(NUMBERS)) if hit[f"k{i}"] is not None)
        number = scalars.as_count(hit["n"])
        if number:
            yield Found(Claim(key, number), *hit.span("n"))
            if key == "lora.rank":
                yield Found(Claim("lora.on", value=True), *hit.span())


def _shared(text: str) -> Iterator[Found]:
    hit = _share().search(text)
    if hit is not None:
        for claim in meanings.memory_share(hit["n"]):
            yield Found(claim, *hit.span())


def _denied(low: str, at: int) -> bool:
    """Say whether `no`, `not` or `without` stands right before."""
    before = f" {low[:at].rstrip()}"
    return before.endswith((" no", " not", " without", " non", "-non", " w/o"))
