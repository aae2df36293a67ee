"""What of a job's model is trained, and how: adapter, quantised base, optimizer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.facts.derive_lint_memory import at_least
from oomdoctor.facts.lora_modules import own_targets, usual_targets
from oomdoctor.memory.formula_params import packs_plain_alone
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.model.job import LoraSpec, OptimizerSpec, QuantSpec

if TYPE_CHECKING:
    from oomdoctor.memory.jobs_book import Said
    from oomdoctor.model.job import Job, ModelSpec

_TORCHTUNE = {"output_proj": "o_proj", "output": "lm_head"}
_KINDS = {"bnb8": "int8", "gptq": "gptq", "awq": "awq", "fp8": "fp8"}
_BNB = ("nf4", "fp4", "int8")


def quant_of(said: Said) -> QuantSpec | None:
    """Return how the base is quantised, None where it is not."""
    kind = said.text("quant.kind") or "none"
    if kind == "none":
        return None
    if kind == "bnb4":
        name = said.text("quant.type") or "nf4"
    elif kind in _KINDS:
        name = _KINDS[kind]
    else:
        said.lack("a quantisation that is known: --fact quant.kind=bnb4 (bnb8, gptq, awq, fp8)")
        return None
    compute = said.text("quant.compute_dtype") or said.text("train.amp") or "bf16"
    return QuantSpec(
        kind=name,
        double=bool(said.flag("quant.double")) and name in ("nf4", "fp4"),
        compute_dtype=compute if compute in ("bf16", "fp16", "fp32") else "bf16",
        prepared=_prepared(said, name),
    )


def tell_unpacked(said: Said, job: Job) -> None:
    """Say which large weights bitsandbytes leaves in 16 bits, as both engines count them."""
    if job.task == "serving" or not packs_plain_alone(job):
        return
    why = "packs torch's own linear layers alone; transformers 4 packed them"
    if job.model.config.get("model_type") == "falcon":
        said.assume(f"Falcon's linear layers in 16 bits (bitsandbytes under transformers 5 {why})")
    elif shape_of(job.model.config).experts:
        said.assume(f"experts in 16 bits (bitsandbytes under transformers 5 {why})")


def _prepared(said: Said, name: str) -> bool:
    """Say whether PEFT prepares the base: all that is not quantised becomes fp32."""
    stated = said.flag("quant.kbit_prepared")
    if stated is not None or name not in _BNB or not said.flag("lora.on"):
        return bool(stated)
    framework = said.text("job.framework")
    prepares = framework == "trl" and not at_least(said.text("env.trl") or "1", (0, 25))
    if prepares:
        said.assume("TRL before 0.25 prepares a quantised base (its other weights become fp32)")
    return prepares


def lora_of(said: Said, model: ModelSpec, quant: QuantSpec | None) -> LoraSpec | None:
    """Return the adapter, None where there is none."""
    if not said.flag("lora.on"):
        return None
    kind = said.text("lora.kind") or "lora"
    if kind != "lora":
        said.assume(f"an adapter of kind {kind} is described as LoRA of its rank")
    rank = said.otherwise(said.count, "lora.rank", 8, "LoRA of rank 8 (default of PEFT)")
    alpha = said.number("lora.alpha")
    return LoraSpec(
        rank=rank,
        alpha=float(rank) if alpha is None else alpha,
        dropout=said.number("lora.dropout") or 0.0,
        targets=targets_of(said.text("lora.targets") or "") or _own_targets(said, model),
        modules_to_save=_names(said.text("lora.modules_to_save") or ""),
        dora=bool(said.flag("lora.dora")),
        rslora=bool(said.flag("lora.rslora")),
        fp32=_fp32(said, quant),
        layers=tuple(map(int, re.findall(r"\d+", said.text("lora.layers") or ""))),
    )


def _own_targets(said: Said, model: ModelSpec) -> tuple[str, ...]:
    """Return PEFT's own choice of modules, all linear layers where it has none."""
    kind = str(model.config.get("model_type") or "")
    found = own_targets(kind)
    if found:
        said.assume(f"adapters on {', '.join(found)} (PEFT's own choice for {kind})")
        return found
    usual = usual_targets(kind, experts=bool(shape_of(model.config).experts))
    where = "all linear layers" if usual == ("all-linear",) else ", ".join(usual)
    said.assume(
        f"adapters on {where} (none are named, and PEFT, which has no choice of its own for"
        f" {kind or 'this model'}, would refuse)"
    )
    return usual


def targets_of(text: str) -> tuple[str, ...]:
    """Return module names; `all` in any spelling is ("all-linear",), nothing PEFT's own choice."""
    names = _names(text)
    if any(name.replace("_", "-") in ("all", "all-linear") for name in names):
        return ("all-linear",)
    return tuple(dict.fromkeys(_TORCHTUNE.get(name, name) for name in names))


def _names(text: str) -> tuple[str, ...]:
    if any(mark in text for mark in "*|\\^$+?"):
        return (text.strip(),)
    plain = "".join(" " if mark in "[]'\",()" else mark for mark in text)
    return tuple(dict.fromkeys(plain.split()))


def _fp32(said: Said, quant: QuantSpec | None) -> bool:
    """Say whether adapters are fp32: PEFT's rule, but for TRL's QLoRA and pure 16-bit training."""
    stated = said.text("train.param_dtype")
    if stated is not None:
        return stated == "fp32"
    version = said.text("env.trl") or ""
    trl = said.text("job.framework") == "trl" and at_least(version, (0, 29))
    return not (trl and quant is not None and quant.kind in _BNB)


def optimizer_of(said: Said) -> OptimizerSpec:
    """Return the optimizer by the name that frameworks give it."""
    written = said.text("optimizer.name")
    if written is None:
        framework = said.text("job.framework") or "torch"
        said.assume(f"AdamW (no optimizer is named in what was read of {framework})")
        written = "adamw"
    low = written.lower().rpartition(".")[2].replace("-", "_")
    bits = said.count("optimizer.state_bits")
    name = _family(said, low, bits)
    offload = said.text("optimizer.offload")
    return OptimizerSpec(
        name=name,
        implementation=_implementation(said, written, low),
        paged=bool(said.flag("optimizer.paged")) or "paged" in low,
        offload=offload if offload in ("cpu", "nvme") else None,
        in_backward=bool(said.flag("optimizer.in_backward")) or "layerwise" in low or "lomo" in low,
        rank=said.count("optimizer.rank"),
        decay=said.number("train.weight_decay") or 0.0,
    )


_FAMILIES = (  # the first word that occurs in a name decides
    *(("galore", "galore"), ("apollo", "apollo"), ("ademamix", "ademamix"), ("adafactor",) * 2),
    *(("came", "adafactor"), ("adalomo", "adafactor"), ("lomo", "sgd"), ("muon", "muon")),
    *(("dion", "muon"), ("lion", "lion"), ("schedule_free_sgd", "sgd-momentum")),
    *(("rmsprop", "rmsprop"), ("adagrad", "adagrad"), ("adam", "adamw"), ("adopt", "adamw")),
    *(("lamb", "adamw"), ("sgd", "sgd")),
)


def _family(said: Said, low: str, bits: int | None) -> str:
    found = next((family for word, family in _FAMILIES if word in low), None)
    if found is None:
        said.assume(f"states of {low} as those of AdamW (its own are not known)")
        return "adamw"
    eight = bits == 8 or "8bit" in low or "8_bit" in low
    if eight and found in ("adamw", "lion", "ademamix", "galore", "apollo"):
        return f"{found}-8bit"
    four = bits == 4 or "4bit" in low
    if found == "sgd" and re.search(r"\bmomentum = 0?\.[1-9]", said.glance("job.settings")):
        return "sgd-momentum"
    return "adamw-4bit" if four and found == "adamw" else found


def _implementation(said: Said, written: str, low: str) -> str:
    kind = said.text("optimizer.kind")
    if kind is not None:
        return kind
    if "fused" in low or said.flag("optimizer.fused"):
        return "fused"
    default = not said.stated("optimizer.name") and written == "adamw_torch"
    versions = said.text("env.transformers") or "5", said.text("env.torch") or "2.13"
    if default and at_least(versions[0], (4, 54)) and at_least(versions[1], (2, 8)):
        said.assume("a fused AdamW (default of transformers since 4.54 with torch 2.8)")
        return "fused"
    return "foreach"
