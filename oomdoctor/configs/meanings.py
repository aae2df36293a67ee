"""Converters of concepts that many dialects share: optimizer, precision, attention, names."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import parallel, scalars
from oomdoctor.configs.claims import Claim, dtype_of
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.claims import Convert
    from oomdoctor.configs.setting import Plain

ATTENTION = {
    "eager": "eager",
    "eager_attention": "eager",
    "disabled": "eager",
    "math": "eager",
    "sdpa": "sdpa",
    "sdp": "sdpa",
    "sdp_attention": "sdpa",
    "flash_attention_2": "flash2",
    "flash_attention": "flash2",
    "flash_attn_2": "flash2",
    "flash_attn": "flash2",
    "flash": "flash2",
    "flash2": "flash2",
    "fa2": "flash2",
    "flash_attention_3": "flash3",
    "fa3": "flash3",
    "flex_attention": "flex",
    "flex": "flex",
    "xformers": "xformers",
    "xformers_attention": "xformers",
}
CHECKPOINTED_QUANT = (  # what the name of a checkpoint says about its weights
    ("-gptq", "gptq"),
    ("-awq", "awq"),
    ("-bnb-4bit", "bnb4"),
    ("-4bit", "bnb4"),
    ("-fp8", "fp8"),
)
EVAL = {
    "no": "no",
    "none": "no",
    "false": "no",
    "steps": "steps",
    "epoch": "epoch",
    "epochs": "epoch",
}
STAGES = {
    "sft": "sft",
    "pt": "pretrain",
    "pretrain": "pretrain",
    "rm": "reward",
    "reward": "reward",
    "ppo": "ppo",
    "dpo": "dpo",
    "ipo": "dpo",
    "orpo": "dpo",
    "simpo": "dpo",
    "cpo": "dpo",
    "kto": "kto",
    "grpo": "grpo",
    "gdpo": "grpo",
    "rloo": "grpo",
    "gspo": "grpo",
}


def optimizer(value: Plain) -> Iterator[Claim]:
    """Read an optimizer's name: `paged_adamw_8bit`, `bitsandbytes.optim.PagedAdamW8bit`, ..."""
    name = scalars.as_text(value)
    if not name or isinstance(value, bool) or scalars.as_number(value) is not None:
        return
    yield Claim("optimizer.name", name)
    low = name.lower()
    if "8bit" in low or "8_bit" in low:
        yield Claim("optimizer.state_bits", 8)
    elif "4bit" in low:
        yield Claim("optimizer.state_bits", 4)
    elif "32bit" in low:
        yield Claim("optimizer.state_bits", 32)
    if "paged" in low:
        yield Claim("optimizer.paged", value=True)
    if "fused" in low:
        yield Claim("optimizer.fused", value=True)
    if "cpuoffload" in low or "deepspeedcpu" in low or "cpuadam" in low:
        yield Claim("optimizer.offload", "cpu")


def model_name(value: Plain) -> Iterator[Claim]:
    """Read a model's name or path, and what its name says about quantised weights."""
    if not isinstance(value, str):
        return
    name = value.strip()
    if spoken_model().fullmatch(name) is not None:
        name = written_name(name)
    if not looks_like_model(name):
        return
    yield Claim("model.name", name)
    low = name.lower()
    for mark, kind in CHECKPOINTED_QUANT:
        if mark in low:
            yield Claim("quant.kind", kind, 0, "name of the checkpoint", Origin.DERIVED)
            return


@cache
def spoken_model() -> re.Pattern[str]:
    """Return the pattern of a model named as people speak: `Llama 2 70B`, `Qwen 2.5 7B Chat`."""
    return re.compile(
        r"\b(?:code)?(?:llama|qwen|mistral|mixtral|gemma|phi|falcon|yi|vicuna|baichuan|bloom|opt"
        r"|chatglm|internlm|deepseek|pythia|olmo|smollm)(?: \d(?:\.\d)?)? \d{1,3}(?:\.\d{1,2})?[bm]"
        r"(?: (?:chat|instruct|base|hf))?\b",
        re.IGNORECASE,
    )


def written_name(spoken: str) -> str:
    """Return the spoken name of a model as hubs write it: `Qwen2.5-7B`, `Llama-2-70B`."""
    joined = "-".join(spoken.split())
    return re.sub(r"^(qwen)-(\d(?:\.\d)?-)", r"\1\2", joined, flags=re.IGNORECASE)


def looks_like_model(name: str) -> bool:
    """Say whether a text can be a model's name or path: one word, no expression, no flag."""
    if not 2 <= len(name) <= 200 or name[0] in "-{[(<$%=#" or any(c in name for c in " \t\n=,;("):
        return False
    return name.lower() not in ("auto", "none", "null", "true", "false", "set", "self", "default")


def attention(value: Plain) -> Iterator[Claim]:
    """Read an attention implementation by name, prefixes of hub kernels ignored."""
    said = (scalars.as_text(value) or "").lower().strip()
    if "/" in said:  # a kernel repository: kernels-community/flash-attn3
        said = said.rpartition("/")[2].partition(":")[0].replace("-", "_")
        said = {"flash_attn3": "fa3", "vllm_flash_attn3": "fa3"}.get(said, said)
    if said in ATTENTION:
        yield Claim("attention.impl", ATTENTION[said])


def attention_if(impl: str) -> Convert:
    """Return a converter for a switch that selects an attention implementation."""

    def convert(value: Plain) -> Iterator[Claim]:
        if scalars.as_bool(value):
            yield Claim("attention.impl", impl)
        elif isinstance(value, str):
            yield from attention(value)

    return convert


def precision(value: Plain) -> Iterator[Claim]:
    """Read `mixed_precision: bf16`, `precision: 16-mixed`, `bf16-true`, `32`, `amp: true`."""
    said = (scalars.as_text(value) or "").lower()
    if said in ("no", "none", "false", "o0"):
        yield Claim("train.amp", "none")
    elif said in (
        "16-mixed",
        "fp16",
        "16",
        "o1",
        "o2",
        "true",
        "float16",
        "transformer-engine-float16",
    ):
        yield Claim("train.amp", "fp16")
    elif said in ("bf16-mixed", "bf16", "bfloat16"):
        yield Claim("train.amp", "bf16")
    elif said in ("fp8", "transformer-engine"):
        yield Claim("train.amp", "fp8")
    elif said.endswith("-true") or said in ("32", "fp32", "float32"):
        name = dtype_of(said)
        yield Claim("train.amp", "none")
        if name and name != "fp32":
            yield Claim("train.base_dtype", name)
            yield Claim("train.param_dtype", name)


def checkpointing(value: Plain) -> Iterator[Claim]:
    """Read a checkpointing switch that may also name a way: `unsloth`, `offload`, `full`."""
    on = scalars.as_bool(value)
    said = (scalars.as_text(value) or "").lower()
    if on is None and said in ("unsloth", "offload", "offload_disk", "full", "selective"):
        on = True
    if on is not None:
        yield Claim("train.grad_checkpointing", on)


def stage(value: Plain) -> Iterator[Claim]:
    """Read `stage: sft` as the task and `stage: 2` as the ZeRO stage."""
    if isinstance(value, str) and value.lower() in STAGES:
        yield Claim("job.task", STAGES[value.lower()])
    else:
        yield from parallel.zero_stage(value)


def bits(value: Plain) -> Iterator[Claim]:
    """Read `bits: 4` and `quantization_bit: 8` as bitsandbytes quantisation."""
    number = scalars.as_count(value)
    if number in (4, 8):
        yield Claim("quant.kind", f"bnb{number}")
    elif number in (16, 32):
        yield Claim("quant.kind", "none")


def quantization(value: Plain) -> Iterator[Claim]:
    """Read a quantisation method by name, as serving engines take it."""
    said = (scalars.as_text(value) or "").lower()
    if "gptq" in said or said == "marlin":
        yield Claim("quant.kind", "gptq")
    elif "awq" in said:
        yield Claim("quant.kind", "awq")
    elif "fp8" in said or "float8" in said:
        yield Claim("quant.kind", "fp8")
    elif said in ("bitsandbytes", "bnb", "bnb4", "nf4", "int4", "4bit", "4-bit"):
        yield Claim("quant.kind", "bnb4")
    elif said in ("bnb8", "int8", "8bit", "8-bit", "llm.int8"):
        yield Claim("quant.kind", "bnb8")
    elif said in ("no", "none", "false"):
        yield Claim("quant.kind", "none")
    elif said and said != "true" and scalars.as_number(value) is None:
        yield Claim("quant.kind", "other")


def resume(value: Plain) -> Iterator[Claim]:
    """Read `resume_from_checkpoint`: a path, `latest` or a switch."""
    said = (scalars.as_text(value) or "").lower()
    on = scalars.as_bool(value)
    if on is None:
        on = bool(said) and said not in ("scratch", "none")
    yield Claim("resume.on", on)


def image_size(value: Plain) -> Iterator[Claim]:
    """Read a square resolution or `832x480` as pixels of one image."""
    low = (scalars.as_text(value) or "").lower().replace(" ", "")
    parts = low.split("x") if "x" in low else low.split(",")
    if all(part.isdecimal() and len(part) < 6 for part in parts) and len(parts) in (1, 2):
        numbers = [int(part) for part in parts]
        if min(numbers) >= 16 and max(numbers) <= 20000:
            yield Claim("vision.image_pixels", numbers[0] * numbers[-1])


def vllm_mode(value: Plain) -> Iterator[Claim]:
    """Read where TRL runs its inference engine: on the trainer's card or on a server."""
    said = (scalars.as_text(value) or "").lower()
    if said in ("colocate", "server"):
        yield Claim("gen.colocated_engine", said == "colocate")


def init_from(value: Plain) -> Iterator[Claim]:
    """Read nanoGPT's way to say where weights come from: scratch, resume, or a model's name."""
    said = (scalars.as_text(value) or "").lower()
    if said in ("resume", "scratch"):
        yield Claim("resume.on", said == "resume")
    else:
        yield from model_name(value)


def memory_share(value: Plain) -> Iterator[Claim]:
    """Take a share of the card: `0.4`, `40%`; a number of bytes is no share."""
    written = str(value).strip() if isinstance(value, (str, float)) else ""
    share = scalars.as_number(written.removesuffix("%").strip())
    if share is None:
        return
    share = share / 100 if written.endswith("%") else share
    if 0 < share <= 1:
        yield Claim("alloc.fraction", share)
