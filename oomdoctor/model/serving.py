"""Values of serving: how an engine is started, and where the memory of each card then goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

VLLM = "vllm"
SGLANG = "sglang"
TGI = "tgi"
LLAMA_CPP = "llama.cpp"
OLLAMA = "ollama"
DIFFUSERS = "diffusers"
SHARED = (VLLM, SGLANG, TGI)
"""Engines that take a share of the card and fill it with their cache."""
LOCAL = (LLAMA_CPP, OLLAMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpec:
    """How an engine is started. What is None is as the engine itself chooses it.

    `job` holds the model, its dtype, its quantisation, and over how many cards it is split.
    `utilization` is the share of a card that the engine may take, `longest` the tokens of the
    longest request (llama.cpp: of its whole context), `cache` the number format of keys and values
    and `cache_values` that of values where it differs. `file_type` is that of a GGUF file,
    `layers_on_card` those that llama.cpp puts there. `offload` is that of a pipeline: model,
    sequential or None. `offline` says that a script holds the engine (vLLM's LLM class).
    """

    job: Job
    engine: str = VLLM
    utilization: float | None = None
    longest: int = 4096
    trained: int | None = None
    batched_tokens: int | None = None
    sequences: int | None = None
    eager: bool = False
    cache: str = "auto"
    cache_values: str | None = None
    adapters: int = 0
    adapter_rank: int = 16
    weights_on_host: int = 0
    swap: int = 0
    offline: bool = False
    file_type: str | None = None
    layers_on_card: int | None = None
    micro_batch: int = 512
    flash: bool = True
    parallel: int = 1
    pixels: int = 1024 * 1024
    offload: str | None = None
    tiled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One use of a card's memory, as a band around what is expected.

    `category` is that of the estimate's categories, or "outside" for what no allocator counts.
    `formula` says how it was computed and where its coefficients are from.
    """

    name: str
    category: str
    bytes: int
    low_bytes: int
    high_bytes: int
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBudget:
    """Where the memory of one card goes.

    `needed_bytes` (with its band) is the least that the engine starts with: all it holds and one
    request of the longest length. `budget_bytes` is what the engine may use, `taken_bytes` what it
    holds in the end. The cache has `cache_bytes`, which are `tokens`, or `requests` requests of the
    longest length; with `longest` tokens one request still fits. `least_utilization` is the
    smallest share with which the engine starts, None where the card is too small. `changes` are
    settings that would fit, each alone; `why` says what is short.
    """

    card: str
    capacity_bytes: int
    budget_bytes: int
    taken_bytes: int
    needed_low_bytes: int
    needed_bytes: int
    needed_high_bytes: int
    rows: tuple[BudgetRow, ...]
    cache_bytes: int
    tokens: int
    requests: float
    longest: int
    missing_bytes: int
    verdict: str
    why: str = ""
    least_utilization: float | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What an estimate says of a server: how it is started, and each card's budget.

    `token_bytes` is the cache of one token on one card, `request_bytes` that of one request of
    `longest` tokens.
    """

    engine: str
    utilization: float | None
    longest: int
    cache: str
    token_bytes: int
    request_bytes: int
    tensor: int = 1
    pipeline: int = 1
    cards: tuple[CardBudget, ...] = field(default_factory=tuple)
