"""Products of a job's dimensions that tensors of a training or serving step are made of."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from oomdoctor.facts.derive_job import PAIR_TASKS, SHARD_OPTIMIZER
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.facts.book import FactBook

_KEYS = {
    "seq": "train.seq_len",
    "new": "gen.max_new_tokens",
    "seen": "data.tokens_seen",
    "longest": "train.longest_row",
    "vocab": "model.vocab",
    "hidden": "model.hidden",
    "intermediate": "model.intermediate",
    "heads": "model.heads",
    "kv_heads": "model.kv_heads",
    "head_dim": "model.head_dim",
    "layers": "model.layers",
    "params": "model.params",
    "trainable": "train.trainable_params",
    "ranks": "dist.world_size",
    "experts": "model.experts",
    "expert_width": "model.moe_intermediate",
    "max_positions": "model.max_positions",
    "tensor_ranks": "dist.tensor_ranks",
    "unfolded": "conv.unfolded",
    "places": "conv.places",
}
_VOCABULARY_STEP = 128
"""Tensor parallel trainers pad the vocabulary until each rank's part is a multiple of it."""

_WORDS = {8: "64-bit", 4: "fp32", 2: "bf16 or fp16", 1: "8-bit"}


class Template(NamedTuple):
    """A kind of tensor: the dimensions multiplied, and the element sizes it comes in."""

    family: str
    factors: tuple[str, ...]
    elements: tuple[int, ...]
    meaning: str

    @property
    def per_row(self) -> bool:
        """Say whether it grows with rows x tokens and with nothing else of the batch."""
        return self.factors.count("batch") == 1 and self.factors.count("seq") == 1


_HALF = (4, 2)
_TOKENS = ("batch", "seq")
TEMPLATES = (
    Template("logits", (*_TOKENS, "vocab"), _HALF, "logits"),
    Template("logits", (*_TOKENS, "vocab_shard"), _HALF, "logits of one tensor-parallel rank"),
    Template("columns", ("unfolded", "places"), _HALF, "columns of one sample for a convolution"),
    Template("hidden", (*_TOKENS, "hidden"), _HALF, "hidden states"),
    Template("hidden", (*_TOKENS, "heads", "head_dim"), _HALF, "queries"),
    Template("hidden", (*_TOKENS, "qkv"), _HALF, "queries, keys and values together"),
    Template("kv", (*_TOKENS, "kv_heads", "head_dim"), _HALF, "keys or values of one layer"),
    Template("kv", ("2", "layers", *_TOKENS, "kv_heads", "head_dim"), _HALF, "key/value cache"),
    Template("kv", ("batch", "reach", "kv_heads", "head_dim"), (2,), "keys or values of one layer"),
    Template("kv", ("2", "batch", "reach", "kv_heads", "head_dim"), (2,), "cache of one layer"),
    Template("mlp", (*_TOKENS, "intermediate"), _HALF, "feed-forward activations"),
    Template("mlp", ("2", *_TOKENS, "intermediate"), _HALF, "gate and up projections together"),
    Template("attention", ("batch", "heads", "seq", "seq"), (4, 2, 1), "attention scores"),
    Template("attention", ("batch", "seq", "seq"), (8, 4, 2, 1), "attention mask"),
    Template("logits", ("seen", "vocab"), _HALF, "logits"),
    Template("hidden", ("seen", "hidden"), _HALF, "hidden states"),
    Template("mlp", ("seen", "intermediate"), _HALF, "feed-forward activations"),
    Template("attention", ("batch", "heads", "longest", "longest"), (4, 2, 1), "attention scores"),
    Template("weight", ("hidden", "intermediate"), (4, 2, 1), "feed-forward weight"),
    Template("weight", ("2", "hidden", "intermediate"), _HALF, "gate and up weights together"),
    Template("weight", ("vocab", "hidden"), _HALF, "embedding or head weight"),
    Template("weight", ("hidden", "heads", "head_dim"), (4, 2, 1), "query or output weight"),
    Template("weight", ("hidden", "kv_heads", "head_dim"), _HALF, "key or value weight"),
    Template("weight", ("hidden", "qkv"), _HALF, "fused query, key and value weight"),
    Template("weight", ("hidden", "expert_width"), (4, 2, 1), "weight of one expert"),
    Template("weight", ("experts", "hidden", "expert_width"), _HALF, "expert weights of a layer"),
    Template(
        "weight",
        ("2", "experts", "hidden", "expert_width"),
        _HALF,
        "gate and up weights of a layer's experts",
    ),
    Template("weight", ("params",), _HALF, "all parameters in one tensor"),
    Template("weight", ("shard",), _HALF, "one rank's share of all parameters"),
    Template("weight", ("partition",), (2,), "partition of one rank (weights or gradients)"),
    Template(
        "optimizer", ("partition",), (4,), "partition of one rank (copy, gradients or moments)"
    ),
    Template("weight", ("layer",), _HALF, "all parameters of one layer, gathered"),
    Template("weight", ("layer_shard",), _HALF, "one rank's share of one layer"),
    Template("optimizer", ("trainable",), _HALF, "all trainable parameters in one tensor"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The job's known dimensions by name, and which of them are assumptions."""

    sizes: Mapping[str, int]
    assumed: frozenset[str] = frozenset()
    pairs: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    loose: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Bounds of the dimensions that are known by a name such as `8B` only."""


class Candidate(NamedTuple):
    """A tensor of known size."""

    bytes: int
    element: int
    template: Template
    expression: str
    values: Mapping[str, int]


def dimensions(book: FactBook) -> Dimensions:
    """Read the dimensions of the job; rows are those of the phase that failed."""
    keys = dict(_KEYS)
    evaluates = book.value("run.phase") == "eval" and book.get("eval.batch") is not None
    keys["batch"] = "eval.batch" if evaluates else "train.micro_batch"
    sizes: dict[str, int] = {}
    assumed: set[str] = set()
    for name, key in keys.items():
        fact = book.get(key)
        if fact is None or isinstance(fact.value, (bool, str)) or fact.value < 1 or fact.slack:
            continue
        sizes[name] = int(fact.value)
        if fact.origin is Origin.ASSUMED:
            assumed.add(name)
    if {"heads", "head_dim"} <= sizes.keys():
        kv_heads = sizes.setdefault("kv_heads", sizes["heads"])
        sizes["qkv"] = (sizes["heads"] + 2 * kv_heads) * sizes["head_dim"]
    if {"seq", "new"} <= sizes.keys():
        sizes["reach"] = sizes["seq"] + sizes["new"]
        keys |= {"reach": "gen.max_new_tokens"}
    if sizes.get("tensor_ranks", 1) > 1 and "vocab" in sizes:
        step = _VOCABULARY_STEP * sizes["tensor_ranks"]
        sizes["vocab_shard"] = -(-sizes["vocab"] // step) * _VOCABULARY_STEP
        keys |= {"vocab_shard": "dist.tensor_ranks"}
    loose: dict[str, tuple[int, int]] = {}
    if book.value("dist.kind") in SHARD_OPTIMIZER:
        sizes |= _flat(sizes, tied=book.value("model.tied"))
        loose = _loose(book, sizes)
        keys |= {"partition": "dist.world_size", "layer": "model.layers"}
    elif sizes.get("ranks", 1) > 1 and "params" in sizes:
        sizes["shard"] = -(-sizes["params"] // sizes["ranks"])
    return Dimensions(
        loose=loose,
        sizes=sizes,
        assumed=frozenset(assumed),
        pairs=book.value("job.task") in PAIR_TASKS,
        keys=keys,
    )


def _flat(sizes: Mapping[str, int], *, tied: object) -> dict[str, int]:
    """Return the flat tensors of ZeRO and FSDP: a rank's partition, the unit of one layer."""
    flat: dict[str, int] = {}
    ranks = sizes.get("ranks", 1)
    trained = sizes.get("trainable", sizes.get("params"))
    if ranks > 1 and trained is not None:
        flat["partition"] = -(-trained // ranks)
    whole = {"params", "vocab", "hidden", "layers"} <= sizes.keys() and "experts" not in sizes
    if whole and isinstance(tied, bool):
        tables = sizes["vocab"] * sizes["hidden"] * (1 if tied else 2)
        body = sizes["params"] - tables - sizes["hidden"]
        if body > 0 and body % sizes["layers"] == 0:
            flat["layer"] = body // sizes["layers"]
            if ranks > 1:
                flat["layer_shard"] = -(-flat["layer"] // ranks)
    return flat


def _loose(book: FactBook, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the bounds of a rank's partition where the model's name gives its size."""
    fact = book.get("model.params")
    ranks = sizes.get("ranks", 1)
    if fact is None or not isinstance(fact.value, int) or not fact.slack or ranks < 2:
        return {}
    if "partition" in sizes or book.value("lora.on") is True:
        return {}
    low, high = (int((fact.value + off) / ranks) for off in (-fact.slack, fact.slack))
    return {"partition": (low, high)} if low > 0 else {}


def candidates(known: Dimensions) -> Iterator[Candidate]:
    """Yield every tensor whose dimensions are all known, each size of a family once."""
    seen: set[tuple[str, int]] = set()
    for template in TEMPLATES:
        factors = _factors(template, known)
        size = product(factors, known)
        if size is None:
            continue
        for element in template.elements:
            total = size * element
            if (template.family, total) in seen:
                continue
            seen.add((template.family, total))
            names = (*factors, str(element))
            values = {name: known.sizes[name] for name in factors if not name.isdecimal()}
            yield Candidate(total, element, template, "*".join(names), values)


def _factors(template: Template, known: Dimensions) -> tuple[str, ...]:
    """Return the factors; chosen and rejected answers of a pair run as one batch."""
    doubled = known.pairs and "batch" in template.factors
    return ("2", *template.factors) if doubled else template.factors


def product(factors: tuple[str, ...], known: Dimensions) -> int | None:
    """Return the product of factors, None where one of them is unknown."""
    numbers = [int(f) if f.isdecimal() else known.sizes.get(f) for f in factors]
    whole = [number for number in numbers if number is not None]
    return prod(whole) if len(whole) == len(numbers) else None


def element_word(element: int, dtype: str | None = None) -> str:
    """Name an element size: `fp32`, or the 16-bit dtype that the job states."""
    if element == 2 and dtype in ("bf16", "fp16"):
        return dtype
    return _WORDS[element]
