"""Derived facts for lint: warm-up, adapter scale and targets, ranks by role, unequal batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.derivation import Inputs, Outcome, derives

if TYPE_CHECKING:
    from collections.abc import Iterable

ATTENTION = frozenset(
    (
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "out_proj",
        "output_proj",
        "qkv_proj",
        "qkv",
        "query_key_value",
        "wqkv",
        "w_pack",
        "c_attn",
        "query",
        "key",
        "value",
        "q",
        "k",
        "v",
        "q_a_proj",
        "q_b_proj",
        "kv_a_proj_with_mqa",
        "kv_b_proj",
    )
)
QUERY_AND_VALUE = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "vicuna")
MULTIPLE = 64
PARTS_PER_MILLION = 10**6
MODEL_AXES = (
    "dist.tensor_ranks",
    "dist.context_ranks",
    "dist.sequence_ranks",
    "dist.pipeline_ranks",
)


@derives("train.warmup", reads=("train.warmup_steps", "train.warmup_ratio"))
def warmup(facts: Inputs) -> Outcome | None:
    """Steps count where they are given; a share of the steps counts otherwise."""
    steps, part = facts.maybe_number("train.warmup_steps"), facts.maybe_number("train.warmup_ratio")
    if steps is None and part is None:
        return None
    return Outcome((steps or 0) > 0 or (part or 0) > 0, "warm-up steps or ratio above 0")


@derives("train.rank_rows", reads=("train.micro_batch", "train.grad_accum"))
def rank_rows(facts: Inputs) -> Outcome:
    """Rows per device x accumulation."""
    rows = facts.whole("train.micro_batch") * facts.whole("train.grad_accum")
    return Outcome(rows, "rows x accumulation")


@derives("lora.scale", reads=("lora.alpha", "lora.rank"))
def scale(facts: Inputs) -> Outcome:
    """Alpha / rank, for plain LoRA."""
    return Outcome(facts.number("lora.alpha") / facts.number("lora.rank"), "alpha / rank")


@derives(
    "lora.attention_only",
    reads=("lora.targets", "lora.on", "job.framework", "model.name"),
)
def attention_only(facts: Inputs) -> Outcome | None:
    """Every target is a projection of attention; PEFT's own choice where TRL is told none."""
    targets = facts.maybe_text("lora.targets")
    if targets is None:
        return _default_targets(facts)
    names = [part.strip().lower().rpartition(".")[2] for part in targets.split(",")]
    if not all(name and name.replace("_", "").replace("-", "").isalnum() for name in names):
        return None
    return Outcome(all(name in ATTENTION for name in names), "names of the targets")


def _default_targets(facts: Inputs) -> Outcome | None:
    """Name what PEFT takes for families whose default is the query and the value projection."""
    told = facts.maybe_text("job.framework") == "trl" and "train-config" in facts.closed
    name = (facts.maybe_text("model.name") or "").lower()
    if told and facts.maybe_flag("lora.on") and any(word in name for word in QUERY_AND_VALUE):
        return Outcome(value=True, source="PEFT's default: q_proj and v_proj", guess=True)
    return None


@derives("lora.supervised", reads=("lora.on", "job.task", "job.calls"))
def supervised(facts: Inputs) -> Outcome | None:
    """Supervised fine-tuning by name, or a plain Trainer over a causal model with an adapter."""
    task = facts.maybe_text("job.task")
    if not facts.flag("lora.on"):
        return Outcome(value=False, source="no adapter is trained")
    if task is not None:
        return Outcome(value=task == "sft", source=f"task {task}")
    calls = facts.text("job.calls").split("\n")
    trains = any(call in ("call Trainer", "call transformers.Trainer") for call in calls)
    causal = any("ForCausalLM" in call for call in calls)
    source = "a plain Trainer over a causal model with an adapter"
    return Outcome(value=True, source=source, guess=True) if trains and causal else None


@derives("model.vocab_aligned", reads=("model.vocab",))
def vocab_aligned(facts: Inputs) -> Outcome:
    """The rows of the head are a multiple of 64."""
    return Outcome(facts.whole("model.vocab") % MULTIPLE == 0, f"vocabulary modulo {MULTIPLE}")


@derives("dist.model_ranks", reads=MODEL_AXES)
def model_ranks(facts: Inputs) -> Outcome | None:
    """Product of the axes along which ranks share rows; without any axis nothing is said."""
    product, named = 1, False
    for axis in MODEL_AXES:
        size = facts.maybe_int(axis)
        product, named = product * (size or 1), named or size is not None
    return Outcome(product, "tensor x context x sequence x pipeline ranks") if named else None


@derives("dist.data_ranks", reads=("dist.world_size", "dist.model_ranks"))
def data_ranks(facts: Inputs) -> Outcome | None:
    """All ranks / those that work on the same rows."""
    world, shared = facts.whole("dist.world_size"), facts.maybe_int("dist.model_ranks") or 1
    if shared < 1 or world % shared:
        return None
    return Outcome(world // shared, "ranks / ranks that share rows" if shared > 1 else "all ranks")


@derives(
    "save.best_unmatched",
    reads=("save.load_best", "save.strategy", "save.steps", "eval.strategy", "eval.steps"),
)
def best_unmatched(facts: Inputs) -> Outcome | None:
    """Saving and evaluation must follow one strategy, and saves must fall on evaluations."""
    if not facts.flag("save.load_best"):
        return Outcome(value=False, source="the best checkpoint is not asked for")
    saves, evals = facts.text("save.strategy"), facts.text("eval.strategy")
    if saves == "best":
        return Outcome(value=False, source="a save follows each better evaluation")
    if saves != evals:
        return Outcome(value=True, source="saving and evaluation follow different strategies")
    if saves != "steps":
        return Outcome(value=False, source="both follow one strategy")
    apart = not _meet(facts.number("save.steps"), facts.number("eval.steps"))
    return Outcome(apart, "saving steps modulo evaluation steps")


def _meet(saves: float, evals: float) -> bool:
    """Say whether saves fall on evaluations; shares of all steps are compared with shares alone."""
    if evals <= 0 or (saves < 1) != (evals < 1):
        return False
    if saves < 1:
        return round(saves * PARTS_PER_MILLION) % max(1, round(evals * PARTS_PER_MILLION)) == 0
    return saves % evals == 0


@derives(
    "deepspeed.batch_unmatched",
    reads=(
        "deepspeed.micro_batch",
        "deepspeed.grad_accum",
        "deepspeed.train_batch",
        "trainer.micro_batch",
        "trainer.grad_accum",
        "dist.world_size",
    ),
)
def batch_unmatched(facts: Inputs) -> Outcome | None:
    """Compare each figure that both sides name, and the product with the total."""
    pairs = [
        (facts.maybe_int(f"deepspeed.{name}"), facts.maybe_int(f"trainer.{name}"))
        for name in ("micro_batch", "grad_accum")
    ]
    total, world = facts.maybe_int("deepspeed.train_batch"), facts.maybe_int("dist.world_size")
    if total is not None and world is not None:
        rows, steps = (theirs if theirs is not None else ours for theirs, ours in pairs)
        if rows is not None and steps is not None:
            pairs.append((total, rows * steps * world))
    known = [(theirs, ours) for theirs, ours in pairs if theirs is not None and ours is not None]
    if not known:
        return None
    return Outcome(_differ(known), "DeepSpeed's figures and the trainer's")


def _differ(pairs: Iterable[tuple[int, int]]) -> bool:
    return any(theirs != ours for theirs, ours in pairs)


FIRST_STEPS = (model_ranks,)
STEPS = (
    data_ranks,
    warmup,
    rank_rows,
    scale,
    attention_only,
    supervised,
    vocab_aligned,
    best_unmatched,
    batch_unmatched,
)
