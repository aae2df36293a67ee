"""A job: the canonical description that formula, simulation and trials all take.

Every config dialect and every flag of `estimate` ends here. What nobody said is filled in before a
job is made (the reader of facts lists each such choice as an assumption), so that a field that is
None or empty always means "there is none", never "not known".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

FULL = "full"
TRAINING = (
    *("pretrain", "sft", "dpo", "orpo", "kto", "grpo", "reward", "classification"),
    *("seq2seq", "masked-lm", "embedding", "image-classification", "token-classification"),
)
INFERENCE = ("generation", "forward", "serving")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model without its weights.

    `config` is what a Hugging Face config.json holds (`model_type` included); models of
    torchvision or timm have `config` {"library": "torchvision", "name": "resnet50", ...} with the
    keyword arguments of their constructor. `source` says where it came from, in words.
    `params` is the published number of parameters, to be compared with the built model.
    """

    name: str
    config: Mapping[str, object]
    source: str
    architecture: str | None = None
    params: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSpec:
    """An adapter as PEFT makes it.

    `targets` are module names, ("all-linear",), or empty: PEFT's own choice for the architecture.
    `fp32` says that its weights are kept in fp32 (PEFT's `autocast_adapter_dtype`, the default);
    without it they have the dtype of the base.
    """

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ()
    modules_to_save: tuple[str, ...] = ()
    dora: bool = False
    rslora: bool = False
    fp32: bool = True
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantSpec:
    """A quantised, frozen base. `kind` is nf4, fp4 or int8 (bitsandbytes), or gptq, awq, fp8.

    `prepared` says that PEFT's `prepare_model_for_kbit_training` casts what stays to fp32.
    """

    kind: str
    double: bool = False
    compute_dtype: str = "bf16"
    prepared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSpec:
    """An optimizer.

    `name` is adamw, adam, adamw-8bit, adafactor, lion, lion-8bit, sgd, sgd-momentum, galore,
    muon, ...; `implementation` is foreach, fused or for-loop where torch offers the choice.
    `paged` states leave the card when it is full; `offload` names where states live instead
    ("cpu", "nvme"). `in_backward` steps each parameter as its gradient is ready. `rank` is that of
    a projected gradient (GaLore). Where an optimizer adds `decay` times the weight to the gradient
    (SGD, Adam, RMSprop, Adagrad), a decay other than 0 costs a copy of what trains.
    """

    name: str = "adamw"
    implementation: str = "foreach"
    paged: bool = False
    offload: str | None = None
    in_backward: bool = False
    rank: int | None = None
    decay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingSpec:
    """How a job spreads over cards.

    `kind` is ddp, zero1, zero2, zero3, fsdp1, fsdp2 or "" (nothing is exchanged); `ranks` are
    data-parallel ranks. `bucket_bytes` is the size of a bucket of gradients; `overlap` says that
    ZeRO fills one while another is sent (None: as DeepSpeed has it). `wrap` says which modules
    FSDP gathers as one (layer, whole), `prefetch` whether FSDP1 gathers ahead in backward, and
    `live_values` how many values ZeRO-3 lets be gathered (None: as the library has it).
    """

    kind: str = ""
    ranks: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    bucket_bytes: int | None = None
    bucket_views: bool = False
    overlap: bool | None = None
    offload_params: bool = False
    wrap: str = "layer"
    reshard: bool = True
    prefetch: bool | None = None
    live_values: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSpec:
    """Evaluation between steps, over `batches` batches.

    `keeps_outputs` says that logits are gathered on the card, not the loss alone; every
    `accumulation` batches they go to the host (None: only at the end).
    """

    batch: int
    seq_len: int
    batches: int = 2
    keeps_outputs: bool = False
    accumulation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSpec:
    """Generation with a key/value cache: `batch` prompts of `prompt` tokens, `new_tokens` more.

    `returns` is the number of answers for each prompt; `cache` is dynamic, static or none.
    """

    batch: int
    prompt: int
    new_tokens: int
    beams: int = 1
    returns: int = 1
    cache: str = "dynamic"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySpec:
    """A function of the user that makes model, optimizer and step; no reader of files makes one.

    `place` is module:function or file.py:function, looked for from `folder` on; `arguments` are
    given to it by name.
    """

    place: str
    folder: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSpec:
    """What of a card decides which kernels run and what they allocate.

    `capability` is (8, 0) for sm80; `processors` are its SMs; `total_bytes` is what it reports to
    PyTorch.
    """

    name: str
    capability: tuple[int, int]
    processors: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What runs on one card.

    `dtype` is the dtype the weights are loaded in (fp32, bf16, fp16), `amp` the autocast dtype or
    None; `scaler` says that a GradScaler is used. `batch` is rows for each card and micro-step,
    `seq_len` the tokens of the longest row. `checkpointing` is None, reentrant or non-reentrant.
    `attention` is eager, sdpa, flash or flex. `padded` says that batches carry a mask with zeros,
    so that attention gets one. `loss` is full-logits, chunked or fused; `loss_chunk` its tokens or
    chunks. `reference` is None, "separate" (a second frozen model) or "adapter-off" (the base of
    the adapter). `image_size` is pixels of a side, `labels` the classes of a classifier.
    `engine_share` is the share of the card that a serving engine takes which answers there (vLLM).
    `offloads_activations` says that what checkpointing keeps moves to the host. For preference
    pairs `batch` counts pairs, two rows each; for GRPO it counts answers.
    `loading` is moved (built on the host, then moved to the card), direct (each weight goes to the
    card as it is read) or None: as `framework` does it. `framework` says whose training loop it is
    (transformers, trl, torch, ...), `versions` which libraries it runs with. With an `entry` the
    user's own code is the job, and all else says nothing. What costs no memory has no field.
    """

    model: ModelSpec
    task: str = "sft"
    method: str = FULL
    dtype: str = "bf16"
    amp: str | None = None
    scaler: bool = False
    batch: int = 1
    seq_len: int = 2048
    target_len: int | None = None
    grad_accum: int = 1
    checkpointing: str | None = None
    attention: str = "sdpa"
    padded: bool = False
    loss: str = "full-logits"
    loss_chunk: int | None = None
    lora: LoraSpec | None = None
    quant: QuantSpec | None = None
    optimizer: OptimizerSpec | None = field(default_factory=OptimizerSpec)
    clip_norm: float | None = 1.0
    ema: bool = False
    sharding: ShardingSpec = field(default_factory=ShardingSpec)
    evaluation: EvalSpec | None = None
    generation: GenerationSpec | None = None
    saves: bool = False
    merges: bool = False
    resumes: bool = False
    reference: str | None = None
    engine_share: float | None = None
    compiled: bool = False
    image_size: int | None = None
    labels: int | None = None
    loading: str | None = None
    offloads_activations: bool = False
    framework: str = "transformers"
    versions: Mapping[str, str] = field(default_factory=dict)
    entry: EntrySpec | None = None

    @property
    def trains(self) -> bool:
        """Say whether the job has a backward pass and an optimizer."""
        return self.task in TRAINING
