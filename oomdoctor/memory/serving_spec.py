"""How a server is started, out of the book of facts: what is stated, and the engines' defaults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.memory import jobs
from oomdoctor.memory.formula_pipeline import known
from oomdoctor.memory.formula_serving import GGUF_BITS, PACKED, PIPELINES
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.gguf_names import OLLAMA_TYPE
from oomdoctor.memory.jobs_book import Said
from oomdoctor.memory.serving_settings import Settings
from oomdoctor.memory.window_layers import WITHOUT
from oomdoctor.model.job import Job, ModelSpec, QuantSpec
from oomdoctor.model.serving import DIFFUSERS, LOCAL, OLLAMA, SGLANG, TGI, ServingSpec
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

CONTEXT = 4096
FILE_TYPE = "q4_k_m"
_NAMED = (  # what a model's name says of its weights
    (r"awq", "awq"),
    (r"gptq|w4a16|int4|autoround", "gptq"),
    (r"bnb-4bit|bnb4", "nf4"),
    (r"fp8|w8a8|int8", "fp8"),
)
_TGI = {"bitsandbytes": "int8", "eetq": "int8", "bitsandbytes-nf4": "nf4", "marlin": "gptq"}
_OF_MODELS = ("weights in ", "feed-forward", "a gated", "vocabulary")
_NATIVE = {"gpt_oss": "mxfp4", "deepseek_v3": "fp8"}
"""Families whose published weights are packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingReading:
    """How the server is started; `assumptions` and `missing` as those of a job."""

    spec: ServingSpec | None
    assumptions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def serving_of(book: FactBook, engine: str) -> ServingReading:
    """Describe the server of a completed book."""
    said = Said(book)
    settings = Settings(said)
    if engine == DIFFUSERS:
        return _pipeline(said, settings)
    reading = jobs.job_of_completed(book)
    if reading.job is None:
        return ServingReading(spec=None, missing=reading.missing)
    if said.text("serve.engine") is None:
        said.assume("served by vLLM (no engine is named: --engine-name)")
    job = _served(reading.job, said, engine, settings)
    make = _local if engine in LOCAL else _shared
    spec = make(said, settings, job, engine)
    mine = [one for one in reading.assumptions if _of_models(one, engine)]
    return ServingReading(spec=spec, assumptions=(*mine, *said.assumptions), missing=said.missing)


def _of_models(sentence: str, engine: str) -> bool:
    """Say whether an assumption speaks of the model; a server has no loop, rows or attention."""
    if engine in LOCAL and sentence.startswith("weights in "):
        return False  # a file has its type
    return sentence.startswith(_OF_MODELS) or "has the shape of" in sentence


def _served(job: Job, said: Said, engine: str, settings: Settings) -> Job:
    quant = job.quant
    if quant is None and engine not in LOCAL:
        kind = settings.word("quantize") or _packed(said, job.model)
        kind = _TGI.get(kind or "", kind)
        kind = kind if kind in PACKED else None
        quant = None if kind is None else QuantSpec(kind=kind)
    sharding = replace(
        job.sharding,
        kind="",
        ranks=1,
        tensor=_cards(said, job, engine),
        pipeline=said.count("serve.pipeline_parallel") or job.sharding.pipeline,
    )
    return replace(
        job,
        model=_as_named(job.model),
        task="serving",
        batch=1,
        optimizer=None,
        quant=quant,
        sharding=sharding,
        lora=None,
    )


def _as_named(model: ModelSpec) -> ModelSpec:
    """Return the model without a window that only another version of it has."""
    if not any(name in model.name.lower() for name in WITHOUT):
        return model
    return replace(model, config={**model.config, "sliding_window": None})


def _cards(said: Said, job: Job, engine: str) -> int:
    """Return over how many cards each layer (or, by llama.cpp, the model) is spread."""
    if engine in LOCAL:
        split = said.text("serve.tensor_split")
        shares = len(re.findall(r"[\d.]+", split)) if split else 0
        return shares or said.count("serve.devices") or said.count("dist.world_size") or 1
    stated = said.count("serve.tensor_parallel")
    return stated or said.count("dist.world_size") or job.sharding.tensor


def _packed(said: Said, model: ModelSpec) -> str | None:
    low = model.name.lower()
    found = next((kind for words, kind in _NAMED if re.search(words, low)), None)
    if found is not None:
        said.assume(f"weights in {found}, as the model's name says")
        return found
    native = _NATIVE.get(str(model.config.get("model_type")))
    if native is not None:
        said.assume(f"weights in {native}, as they are published")
    return native


def _longest(said: Said, trained: int | None) -> int:
    found = said.count("serve.max_len") or said.count("train.seq_len")
    if found is None:
        found = trained or CONTEXT
        said.assume(f"requests of up to {found:,} tokens, the model's own length (none is given)")
    return found


def _shared(said: Said, settings: Settings, job: Job, engine: str) -> ServingSpec:
    trained = shape_of(job.model.config).places or None
    share = said.number("serve.utilization")
    if engine == SGLANG:
        share = said.number("serve.static_fraction") or share
    if engine == TGI and share is None:
        share = said.number("alloc.fraction")
    if share is None:
        said.assume("the engine's own share of the card (none is given)")
    adapters = said.count("serve.adapters") or settings.count("max_loras", "max_loras_per_batch")
    if said.flag("serve.lora") and not adapters:
        adapters = 1
    if said.flag("serve.speculative"):
        said.assume("a draft model is left out")
    longest = _longest(said, trained)
    if trained is not None and longest > trained:
        said.assume(
            f"{longest:,} tokens are more than the {trained:,} of the model's config: engines"
            " refuse that without a longer rope"
        )
    return ServingSpec(
        job=replace(job, seq_len=longest),
        engine=engine,
        utilization=share,
        longest=longest,
        trained=trained,
        batched_tokens=said.count("serve.max_batched_tokens") or said.count("serve.prefill_tokens"),
        sequences=said.count("serve.max_seqs"),
        eager=bool(said.flag("serve.eager")),
        cache=said.text("serve.kv_type") or settings.word("kv_cache_dtype") or "auto",
        adapters=adapters or 0,
        adapter_rank=said.count("serve.adapter_rank") or settings.count("max_lora_rank") or 16,
        weights_on_host=said.count("serve.weights_on_host") or settings.gib("cpu_offload_gb"),
        swap=said.count("serve.swap") or settings.gib("swap_space"),
        offline=said.text("job.task") == "generate",
    )


def _local(said: Said, settings: Settings, job: Job, engine: str) -> ServingSpec:
    context = said.count("serve.max_len") or said.count("train.seq_len")
    parallel = said.count("serve.parallel") or 1
    if context is None:
        context = CONTEXT * (parallel if engine == OLLAMA else 1)
        said.assume(
            f"a context of {context:,} tokens (none is given; newer versions may take more)"
        )
    kind = said.text("serve.file_type")
    if kind is None:
        kind = OLLAMA_TYPE if engine == OLLAMA else FILE_TYPE
        said.assume(f"a file of type {kind} (none is named: --fact serve.file_type=q8_0)")
    if kind.lower() not in GGUF_BITS:
        said.lack(f"a file type that is known; {kind} is not (serve.file_type)")
    layers = settings.layers()
    if layers is None:
        layers = said.count("serve.gpu_layers")
    whole = layers is None or layers > shape_of(job.model.config).layers or layers < 0
    if layers is None:
        said.assume("all layers on the card (no number is given)")
    flash = said.flag("serve.flash_attention")
    return ServingSpec(
        job=replace(job, seq_len=context, quant=None),
        engine=engine,
        longest=context,
        trained=shape_of(job.model.config).places or None,
        cache=said.text("serve.kv_type") or settings.keys_type() or "f16",
        cache_values=settings.values_type(),
        file_type=kind.lower(),
        layers_on_card=None if whole else layers,
        micro_batch=said.count("serve.ubatch") or 512,
        flash=flash if flash is not None else not settings.is_off("fa", "flash_attn"),
        parallel=parallel,
    )


def _pipeline(said: Said, settings: Settings) -> ServingReading:
    name = said.text("model.name") or ""
    if known(name) is None:
        names = ", ".join(PIPELINES)
        said.lack(f"a pipeline that is known, {name or 'none'} is not: --model {names}")
        return ServingReading(spec=None, missing=said.missing)
    dtype = said.text("load.dtype") or said.text("train.base_dtype")
    if dtype is None:
        script = bool(said.glance("job.calls"))
        dtype = "fp32" if script else "bf16"
        said.assume(f"networks in {dtype} (no dtype is given)")
    images = said.count("serve.images") or settings.count("num_images_per_prompt") or 1
    pixels = said.count("vision.image_pixels") or settings.pixels()
    if pixels is None:
        pixels = 512 * 512 if "v1" in name else 1024 * 1024
        said.assume("images of the pipeline's own size (none is given)")
    quant = said.text("quant.kind")
    kinds = {"bnb4": "nf4", "bnb8": "int8", "fp8": "fp8"}
    job = Job(
        model=ModelSpec(
            name=name, config={"library": "diffusers", "name": name}, source="table of pipelines"
        ),
        task="serving",
        dtype=dtype if dtype in ("fp32", "bf16", "fp16") else "bf16",
        batch=images,
        seq_len=0,
        image_size=int(pixels**0.5),
        optimizer=None,
        quant=QuantSpec(kind=kinds[quant]) if quant in kinds else None,
        framework="diffusers",
    )
    offload = said.text("serve.offload") or settings.offload()
    spec = ServingSpec(
        job=job,
        engine=DIFFUSERS,
        longest=0,
        pixels=pixels,
        offload=None if offload in (None, "none") else offload,
        tiled=bool(said.flag("serve.tiled")) or settings.tiles(),
    )
    return ServingReading(spec=spec, assumptions=said.assumptions)
