"""Derived facts for lint of references, engines on the trainer's card, merging, lengths, cards."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.model.enums import Origin

GIB = 1 << 30
SETTINGS = "job.settings"
COLLATED = frozenset(("trl", "llamafactory", "axolotl"))
LENGTHS = frozenset(("sft", "dpo", "kto", "reward"))
ENGINE_SHARE = 0.3
VLLM_SHARE = 0.92
COLOCATES_FROM = (1,)
BOARD_VARIANTS = 1.25


@cache
def _native_fp8() -> re.Pattern[str]:
    return re.compile(
        r"^(?:qwen/qwen3(?:\.\d)?-[\w.-]*-fp8|minimaxai/minimax-m2[\w.-]*"
        r"|deepseek-ai/deepseek-(?:v3(?:\.\d)?(?:-\w+)?|r1(?:-0528|-zero)?))$",
        re.IGNORECASE,
    )


@cache
def _no_reference() -> re.Pattern[str]:
    return re.compile(r"(?<![^\W_])(?:orpo|simpo|cpo)(?![^\W_])", re.IGNORECASE)


@cache
def _padded() -> re.Pattern[str]:
    return re.compile(
        r"^(?:[\w-]+\.)*(?:pad_to_sequence_len|pad_to_max_length) = true$", re.MULTILINE
    )


@cache
def _exported() -> re.Pattern[str]:
    return re.compile(r"^(?:[\w-]+\.)*export_device = auto$", re.MULTILINE)


@cache
def _merges() -> re.Pattern[str]:
    return re.compile(r"^call (?:\w+\.)*merge_and_unload$", re.MULTILINE)


@derives("model.fp8_blocks", reads=("model.name", "quant.kind", SETTINGS))
def fp8_blocks(facts: Inputs) -> Outcome | None:
    """Checkpoints of Qwen, DeepSeek and MiniMax by their name, or the model's own config."""
    settings = facts.maybe_text(SETTINGS) or ""
    if "quantization_config.weight_block_size = 128,128" in settings:
        return Outcome(value=True, source="weight_block_size of the model's config")
    if _native_fp8().search(facts.text("model.name")):
        return Outcome(value=True, source="the model's name")
    if facts.maybe_text("quant.kind") == "fp8":
        return None
    return Outcome(value=False, source="the model's name")


@derives(
    "ref.loaded",
    reads=("ref.needed", "ref.separate", "lora.on", "train.full_finetune", SETTINGS),
)
def ref_loaded(facts: Inputs) -> Outcome | None:
    """Stated, or by the method: without an adapter the reference is a model of its own."""
    separate = facts.maybe_flag("ref.separate")
    if separate is not None:
        return Outcome(value=separate, source="the config names a reference or does without")
    if not facts.flag("ref.needed"):
        return None
    if _no_reference().search(facts.maybe_text(SETTINGS) or ""):
        return Outcome(value=False, source="a loss without a reference is named")
    if facts.flag("lora.on"):
        return Outcome(value=False, source="the base under the adapter is the reference")
    return Outcome(value=facts.flag("train.full_finetune"), source="nothing but the whole model")


@derives("rl.colocated", reads=("rl.use_vllm", "gen.colocated_engine", SETTINGS, "env.trl"))
def colocated(facts: Inputs) -> Outcome | None:
    """Stated by vllm_mode, else TRL's default: the trainer's card since 1.0, a server before."""
    if not facts.flag("rl.use_vllm"):
        return Outcome(value=False, source="no vLLM")
    if re.search(r"^(?:[\w-]+\.)*vllm_mode = ", facts.maybe_text(SETTINGS) or "", re.MULTILINE):
        return Outcome(value=facts.flag("gen.colocated_engine"), source="vllm_mode")
    numbers = tuple(int(part) for part in re.findall(r"\d+", facts.text("env.trl"))[:2])
    source = f"default of vllm_mode in TRL {facts.text('env.trl')}"
    return Outcome(value=numbers >= COLOCATES_FROM, source=source, guess=True)


@derives("rl.engine_share", reads=("gen.engine_share", "rl.colocated"))
def engine_share(facts: Inputs) -> Outcome | None:
    """Stated, or 0.3 as TRL has it."""
    said = facts.maybe_number("gen.engine_share")
    if said is not None:
        return Outcome(said, "vllm_gpu_memory_utilization")
    if not facts.flag("rl.colocated"):
        return None
    return Outcome(ENGINE_SHARE, "default of TRL (1.16.0)", guess=True)


@derives("merge.on_gpu", reads=("job.task", "job.calls", "dist.device_map", SETTINGS))
def merge_on_gpu(facts: Inputs) -> Outcome | None:
    """A call that merges with the base on a card, or an export with its device left open."""
    if facts.maybe_text("job.task") == "merge" and _exported().search(facts.text(SETTINGS)):
        return Outcome(value=True, source="export_device auto takes the card")
    if not _merges().search(facts.text("job.calls")):
        return None
    placed = facts.text("dist.device_map").lower()
    on_card = "cuda" in placed or re.fullmatch(r"\{['\"]{2}: ?\d\}", placed) is not None
    return Outcome(value=on_card, source="device_map")


@derives(
    "train.varying_shapes",
    reads=(
        *("train.packing", "train.padding", "train.padding_free", "job.framework", "job.task"),
        SETTINGS,
    ),
)
def varying_shapes(facts: Inputs) -> Outcome | None:
    """Full packed rows and rows padded to a limit are all alike; else the longest row decides."""
    settings = facts.maybe_text(SETTINGS) or ""
    if facts.maybe_text("train.padding") == "max_length" or _padded().search(settings):
        return Outcome(value=False, source="rows are padded to the limit")
    if facts.maybe_text("train.padding") == "longest" or facts.maybe_flag("train.padding_free"):
        return Outcome(value=True, source="batches are as long as their rows")
    packed = facts.maybe_flag("train.packing")
    if packed:
        return Outcome(value=False, source="rows are packed to the limit")
    collated = facts.text("job.framework") in COLLATED and facts.text("job.task") in LENGTHS
    if (packed is False or "train-config" in facts.closed) and collated:
        return Outcome(
            value=True, source="the collator pads to the longest row of a batch", guess=True
        )
    return None


@derives("gpu.usual_share", reads=("gpu.total", "gpu.name"))
def usual_share(facts: Inputs) -> Outcome | None:
    """Stated memory / the least that cards of this name usually come with."""
    from oomdoctor.facts import gpus

    told = facts.get("gpu.total")
    if told is not None and told.origin is not Origin.STATED:
        return None
    sizes = [size for card in gpus.lookup(facts.text("gpu.name")) for size in card.nominal_gb]
    if not sizes or max(sizes) > BOARD_VARIANTS * min(sizes):
        return None
    value = facts.number("gpu.total") / (min(sizes) * GIB)
    return Outcome(value, "stated memory / usual memory of this name")


@derives("serve.share", reads=("serve.utilization", "job.framework"))
def serve_share(facts: Inputs) -> Outcome | None:
    """Stated, or vLLM's default."""
    said = facts.maybe_number("serve.utilization")
    if said is not None:
        return Outcome(said, "gpu_memory_utilization")
    if facts.text("job.framework") != "vllm" or "serve-config" not in facts.closed:
        return None
    return Outcome(VLLM_SHARE, "default of vLLM 0.25.0; 0.9 in earlier versions", guess=True)


STEPS = (
    fp8_blocks,
    ref_loaded,
    colocated,
    engine_share,
    merge_on_gpu,
    varying_shapes,
    usual_share,
    serve_share,
)
