"""Derived facts that lint needs about memory: the usual card, the loaded dtype, who splits."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, MissingFactError, Outcome, derives
from oomdoctor.facts.derive_job import SPLIT_MODEL, params_leave, shards_optimizer, shards_params

NEAR = 1.10
VARIANTS = 1.25
DRIVERS = 0.03
GIB = 1 << 30
_STATED = ("oom.capacity", "gpu.mig_slice", "gpu.total")
SHARDING = (shards_params, shards_optimizer)
_TRAINERS = frozenset(("transformers", "trl", "axolotl", "llamafactory"))
_SETTINGS = "job.settings"


@derives("gpu.nominal", reads=(*_STATED, "gpu.name"))
def nominal(facts: Inputs) -> Outcome:
    """The stated memory, else that of the product of this name; modified boards are left out."""
    for key in _STATED:
        if facts.maybe_number(key) is not None:
            return Outcome(facts.whole(key), "capacity", facts.slack(key))
    from oomdoctor.facts import gpus

    found = gpus.lookup(facts.text("gpu.name"))
    sizes = [size * GIB for card in found for size in card.nominal_gb]
    if not sizes or max(sizes) > VARIANTS * min(sizes):
        raise MissingFactError("gpu.total")
    least = min(sizes)
    totals = [one for card in found for one in card.totals() if least / NEAR < one <= least * NEAR]
    total = totals[0] if totals else least
    source = f"table of cards: {found[0].name}"
    return Outcome(total, source, DRIVERS * total, guess=max(sizes) > NEAR * least)


@cache
def _named_model() -> re.Pattern[str]:
    return re.compile(
        r"^(?:sft|dpo|grpo|kto|reward|rloo|orpo|cpo)trainer\.model = (?!<)[\w./-]+$", re.MULTILINE
    )


@cache
def _loads() -> re.Pattern[str]:
    return re.compile(r"^(?:\w+\.)*from_pretrained\.\w+ = ", re.MULTILINE)


@cache
def _loader_dtype() -> re.Pattern[str]:
    return re.compile(r"^(?:[\w-]+\.)*(?:torch_dtype|dtype|model_dtype)\b = (?!null)", re.MULTILINE)


@cache
def _librarys() -> re.Pattern[str]:
    return re.compile(r"^(?:sft|dpo|grpo|kto|reward|rloo|orpo|cpo|gkd|run_\w+)\.py$")


def _own_script(facts: Inputs) -> bool:
    """Say whether a script runs that is none of the libraries' own and was not read itself."""
    script = facts.maybe_text("job.script")
    read = _loads().search(facts.glance(_SETTINGS)) is not None
    return script is not None and not read and _librarys().search(script) is None


@derives("load.by_name", reads=(_SETTINGS, "job.framework", "job.script"))
def by_name(facts: Inputs) -> Outcome | None:
    """TRL's trainers load a model that is given as text; its command line and YAML always do."""
    if facts.text("job.framework") != "trl":
        return None
    settings = facts.glance(_SETTINGS)
    if _named_model().search(settings) is not None:
        return Outcome(value=True, source="the trainer is given the model's name")
    if _loads().search(settings) is not None:
        return Outcome(value=False, source="the script loads the model")
    named = "\nmodel_name_or_path = " in f"\n{settings}" and not _own_script(facts)
    if named and "train-config" in facts.closed:
        return Outcome(value=True, source="TRL's own scripts load by name", guess=True)
    return None


_DTYPE_READS = (
    *("train.base_dtype", "train.param_dtype", "train.full_finetune", "train.amp"),
    *("model.dtype", "job.framework", "load.by_name", "quant.kind", "dist.kind"),
    *("env.transformers", "env.trl", "job.script", _SETTINGS),
)


@derives("load.dtype", reads=_DTYPE_READS)
def dtype(facts: Inputs) -> Outcome | None:
    """The stated dtype; without one what the framework loads by its own rule."""
    return _stated_dtype(facts) or _framework_dtype(facts) or _library_dtype(facts)


def _stated_dtype(facts: Inputs) -> Outcome | None:
    base, trained = facts.maybe_text("train.base_dtype"), facts.maybe_text("train.param_dtype")
    said, source = base, "dtype in which the weights are loaded"
    if trained != base and trained is not None and facts.maybe_flag("train.full_finetune"):
        said = trained
    casts = facts.maybe_text("job.framework") == "llamafactory" and trained is None
    if casts and said not in (None, "fp32") and facts.maybe_flag("train.full_finetune"):
        how = facts.maybe_text("dist.kind") or "none"
        if not how.startswith(("zero", "fsdp")):
            said, source = "fp32", "LLaMA-Factory casts trainable parameters to fp32"
    return None if said is None else Outcome(said, source)


def _framework_dtype(facts: Inputs) -> Outcome | None:
    amp = facts.maybe_text("train.amp")
    if (facts.maybe_text("dist.kind") or "").startswith("zero") and amp in ("bf16", "fp16"):
        return Outcome(amp, "DeepSpeed casts the weights to the dtype of its mixed precision")
    if facts.maybe_text("job.framework") == "unsloth":
        return Outcome("bf16", "Unsloth loads 16 bit", guess=True)
    return None


def _library_dtype(facts: Inputs) -> Outcome | None:
    """fp32 up to transformers 4 and for a name given to TRL since 0.29, else the checkpoint's."""
    decides = default_of(facts)
    if decides is None:
        return None
    if decides.value == "trl":
        return Outcome("fp32", "TRL loads float32 unless told otherwise")
    if not at_least(facts.text("env.transformers"), (5,)):
        source = "from_pretrained loads float32 unless told otherwise (transformers 4)"
        return Outcome("fp32", source, guess=decides.guess)
    source = "from_pretrained loads the checkpoint's dtype (transformers 5)"
    said = facts.maybe_text("model.dtype")
    return Outcome(said or "bf16", source, guess=said is None or decides.guess)


def default_of(facts: Inputs) -> Outcome | None:
    """Return the library whose default decides the dtype, where neither job nor base states one."""
    settings = facts.glance(_SETTINGS)
    stated = any(facts.maybe_text(key) for key in ("train.base_dtype", "train.param_dtype"))
    quantised = (facts.maybe_text("quant.kind") or "none") != "none"
    if facts.text("job.framework") not in ("transformers", "trl") or stated or quantised:
        return None
    if any(one().search(settings) for one in (_loader_dtype, _quantises)):
        return None
    if facts.maybe_flag("load.by_name"):
        trl = at_least(facts.text("env.trl"), (0, 29))
        return Outcome("trl" if trl else "transformers", "no dtype is given")
    in_script = _loads().search(settings) is not None
    if not in_script and ("train-config" not in facts.closed or _own_script(facts)):
        return None
    return Outcome("transformers", "no dtype is given", guess=not in_script)


@derives("load.default_of", reads=_DTYPE_READS)
def dtype_default(facts: Inputs) -> Outcome | None:
    """The library whose default decides the dtype."""
    how = facts.maybe_text("dist.kind") or "none"
    amp = facts.maybe_text("train.amp")
    return None if how.startswith("zero") and amp in ("bf16", "fp16") else default_of(facts)


@cache
def _quantises() -> re.Pattern[str]:
    return re.compile(
        r"^(?:[\w-]+\.)*(?:quantization_config|load_in_[48]bit) = (?!null|false)", re.MULTILINE
    )


def at_least(version: str, wanted: tuple[int, ...]) -> bool:
    """Compare the leading numbers of a version."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[: len(wanted)]]
    return tuple(numbers) >= wanted


@cache
def _freezes() -> re.Pattern[str]:
    return re.compile(
        r"requires_grad|freez|frozen|peft|lora|adapter|load_in_[48]bit", re.IGNORECASE
    )


@derives("train.full_finetune", reads=("lora.on", "run.inference_only", "quant.kind", "job.text"))
def whole_script(facts: Inputs) -> Outcome | None:
    """A whole training script that freezes nothing and attaches nothing trains all parameters."""
    if "train-script" not in facts.closed or facts.maybe_flag("run.inference_only"):
        return None
    quantised = (facts.maybe_text("quant.kind") or "none") != "none"
    if quantised or facts.maybe_flag("lora.on") or _freezes().search(facts.glance("job.text")):
        return None
    return Outcome(value=True, source="the script freezes nothing", guess=True)


@cache
def _elsewhere() -> re.Pattern[str]:
    keys = (
        r"gpu_memory_limit|low_cpu_fsdp|context_parallel_size|dp_shard_size|tensor_parallel(?:_size)?|"
        r"fsdp(?:_config)?(?:\.[\w.]+)?|deepspeed(?:_config)?(?:\.[\w.]+)?|use_ray|ray_num_workers"
    )
    return re.compile(rf"^(?:\w+\.)*(?:{keys}) = (?!null$|false$|none$|1$|$)", re.MULTILINE)


@derives("dist.kind", reads=("job.framework", "job.text", "dist.world_size"))
def recipe(facts: Inputs) -> Outcome | None:
    """FSDP by torchtune's recipes but for those of a single device, as the comments name them."""
    if facts.text("job.framework") != "torchtune":
        return None
    named = re.findall(r"tune run\b.*?_(single_device|distributed)\b", facts.glance("job.text"))
    if named and "distributed" not in named:
        return Outcome("none", "a recipe of a single device", guess=True)
    return Outcome("fsdp2", "torchtune's distributed recipes shard", guess=True)


@derives(
    "load.split",
    reads=(
        *("dist.shards_params", "dist.kind", "dist.param_offload", "dist.device_map"),
        *("dist.world_size", "gpu.count", "job.framework", "serve.tensor_parallel", _SETTINGS),
    ),
)
def split(facts: Inputs) -> Outcome | None:
    """FSDP, ZeRO-3, tensor and pipeline parallelism, a device map over cards, offloading."""
    settings = facts.glance(_SETTINGS)
    spread = _spread(facts, settings)
    if spread is not None:
        return Outcome(value=True, source=spread)
    shards = facts.maybe_flag("dist.shards_params")
    if shards is not None:
        return Outcome(value=shards, source="how ranks share the model")
    if facts.maybe_text("dist.kind") is not None or _elsewhere().search(settings):
        return None  # sharded over an unknown number of ranks
    return _alone(facts)


def _alone(facts: Inputs) -> Outcome | None:
    if facts.maybe_int("dist.world_size") == 1 or facts.maybe_int("gpu.count") == 1:
        return Outcome(value=False, source="a single card")
    framework = facts.maybe_text("job.framework")
    if framework == "unsloth":
        return Outcome(value=False, source="Unsloth trains on one card", guess=True)
    if framework in _TRAINERS and "train-config" in facts.closed:
        source = "the config names no sharding; a launcher's own config could"
        return Outcome(value=False, source=source, guess=True)
    return None


def _spread(facts: Inputs, settings: str) -> str | None:
    """Return why no card holds all weights, None where nothing says so."""
    if params_leave(facts):
        return "parameters are offloaded"
    if facts.maybe_text("dist.kind") in SPLIT_MODEL:
        return "the model is split over cards"
    if (facts.maybe_int("serve.tensor_parallel") or 1) > 1:
        return "tensor parallelism"
    placed = (facts.maybe_text("dist.device_map") or "").lower()
    one_card = facts.maybe_int("gpu.count") == 1
    if placed in ("auto", "balanced", "balanced_low_0", "sequential") and not one_card:
        return "device_map places layers on all cards"
    if _offloaded().search(settings) is not None:
        return "layers are offloaded"
    return None


@cache
def _offloaded() -> re.Pattern[str]:
    switches = r"(?:layer_offloading|use_kt|use_ktransformers) = true$"
    return re.compile(rf"^(?:\w+\.)*(?:{switches}|max_memory(?:\.\w+)? = (?!null))", re.MULTILINE)


STEPS = (
    nominal,
    whole_script,
    by_name,
    dtype,
    dtype_default,
    recipe,
    *SHARDING,
    split,
)
