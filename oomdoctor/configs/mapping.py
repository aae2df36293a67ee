"""From settings to facts: a dialect's own table first, then the names everybody shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import contradictions, environment, open_keys, vocabulary
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.scalars import as_count
from oomdoctor.configs.setting import normal
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from oomdoctor.configs.claims import Convert, Table
    from oomdoctor.configs.setting import Setting, Settings
    from oomdoctor.model.core import Quote

DEEPEST = 12
"""More parts than any key of a dialect has."""
NO_REFERENCE = ("orpo", "simpo", "cpo")
# below these keys a name such as `type`, `model` or `batch_size` is about something else
OPAQUE = frozenset(
    (
        "dataset",
        "datasets",
        "dataset_val",
        "val_dataset",
        "test_datasets",
        "pretraining_dataset",
        "dataset_mixture",
        "dataset_mixer",
        "dataset_kwargs",
        "wandb",
        "logger",
        "metric_logger",
        "profiler",
        "lr_scheduler",
        "scheduler",
        "scheduler_kwargs",
        "lr_scheduler_kwargs",
        "tokenizer",
        "tokenizer_config",
        "special_tokens",
        "tokens",
        "checkpointer",
        "ref_policy_checkpointer",
        "value_checkpointer",
        "reward_checkpointer",
        "teacher_checkpointer",
        "teacher_model",
        "generation_config",
        "sampling_params",
        "callbacks",
        "rope_scaling",
        "quantizer",
        "hub",
        "tensor_parallel_plan",
        "labels",
        "annotations",
        "metadata",
        "transforms",
        "log",
        "augment",
    )
)


class Dialect(NamedTuple):
    """How one framework spells its settings.

    `keys` maps dotted or bare key names; `matches` says whether settings are of this dialect,
    `closes` names what they are the whole of, so that a missing key is an absent one. `derived`
    reads what needs more than one key. `common` adds the shared vocabulary.
    """

    name: str
    framework: str | None
    keys: Table
    matches: Callable[[Settings], bool]
    closes: Callable[[Settings], tuple[str, ...]]
    derived: Callable[[Settings], Iterator[tuple[Claim, Setting]]] | None = None
    common: bool = True


def open_end(settings: Settings) -> tuple[str, ...]:
    """Close nothing: for dialects that are only a part of a job."""
    del settings
    return ()


def facts_of(settings: Settings, dialect: Dialect) -> tuple[Fact, ...]:
    """Return the facts that settings state in a dialect; the first claim of a key stays."""
    pairs = list(dialect.derived(settings)) if dialect.derived is not None else []
    pairs += (
        (claim, row)
        for row in settings
        for claim in claims_of(row, dialect)
        if claim.value != row.value or not open_keys.is_open(row.value)
    )
    pairs = [*ranks(settings), *_ranks_apart(settings, pairs), *common_derived(settings)]
    if dialect.name != "python":  # a script has several calls, each of its own
        pairs += contradictions.read(settings)
    task = next((pair for pair in pairs if pair[0].key == "job.task"), None)
    if task is not None and task[0].value in ("dpo", "kto") and task[1].value not in NO_REFERENCE:
        source = "the method compares with a reference model"
        needs = Claim("ref.needed", value=True, source=source, origin=Origin.DERIVED)
        pairs.append((needs, task[1]))
    facts = unique(fact_of(claim, row.quote) for claim, row in pairs)
    rows = ((row, converter(row.path, dialect)) for row in settings if row.path)
    return (*facts, *open_keys.fact(rows, facts))


def _ranks_apart(
    settings: Settings, pairs: Sequence[tuple[Claim, Setting]]
) -> Iterator[tuple[Claim, Setting]]:
    """Drop a world size of one where it counts nodes: `--multiprocessing-distributed`."""
    spawns = settings.first("multiprocessing_distributed")
    if spawns is None or spawns.value is False:
        yield from pairs
        return
    yield Claim("dist.kind", "ddp"), spawns
    for claim, row in pairs:
        if claim.key != "dist.world_size" or claim.value != 1:
            yield claim, row


def unique(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Keep one fact of each key: the first that is stated, or else the first."""
    kept: dict[str, Fact] = {}
    for fact in facts:
        held = kept.setdefault(fact.key, fact)
        if held.origin is not Origin.STATED and fact.origin is Origin.STATED:
            kept[fact.key] = fact
    return tuple(kept.values())


def fact_of(claim: Claim, *quotes: Quote) -> Fact:
    """Make a fact of a claim with its quotes."""
    return Fact(
        key=claim.key,
        value=claim.value,
        origin=claim.origin,
        slack=claim.slack,
        quotes=quotes,
        source=claim.source,
    )


def claims_of(row: Setting, dialect: Dialect) -> Iterable[Claim]:
    """Return what one setting claims; null says nothing."""
    if row.value is None or not row.path:
        return ()
    variable = environment.claims_of(row.path[-1], row.value)
    if variable:
        return variable
    convert = converter(row.path, dialect)
    return () if convert is None else convert(row.value)


def converter(path: tuple[str, ...], dialect: Dialect) -> Convert | None:
    """Find the converter of a key path: the whole path, then ever shorter ends of it."""
    parts = normal(".".join(path)).split(".")
    first = max(0, len(parts) - DEEPEST)
    dotted = [".".join(parts[i:]) for i in range(first, len(parts))]
    if dotted[0] in dialect.keys:
        return dialect.keys[dotted[0]]
    opaque = any(part in OPAQUE or part.isdecimal() for part in parts[:-1])
    ends = [end for end in dotted[1:] if "." in end or not opaque]
    for end in ends:
        if end in dialect.keys:
            return dialect.keys[end]
    if not dialect.common or opaque:
        return None
    common = vocabulary.table()
    return next((common[end] for end in dotted if end in common), None)


def ranks(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Multiply the processes per node by the nodes that a launcher is told."""
    local = settings.first("torchrun.nproc_per_node", "nproc_per_node", "deepspeed.num_gpus")
    nodes = settings.first("torchrun.nnodes", "nnodes", "deepspeed.num_nodes")
    each = as_count(local.value) if local else None
    several = as_count(nodes.value) if nodes else 1
    if local is not None and each and several and 1 <= each * several < 10**6:
        source = "processes per node x nodes" if several > 1 else None
        yield Claim("dist.world_size", each * several, 0, source), local
    if local is None and (chosen := settings.first("deepspeed.include")):
        number = _included(chosen.value)
        if number:
            yield Claim("dist.world_size", number, 0, "cards that the launcher includes"), chosen


def _included(value: object) -> int:
    """Count the cards of `host-a:0,1@host-b:2`; 0 where a host is named without its cards."""
    hosts = [part.rpartition(":")[2].split(",") for part in str(value).split("@")]
    told = all(card.strip().isdecimal() for cards in hosts for card in cards)
    return sum(len(cards) for cards in hosts) if told else 0


def common_derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read what needs two keys whatever the dialect: precision, quantisation, GRPO lengths."""
    fp16, bf16 = settings.get("fp16"), settings.get("bf16")
    if fp16 and bf16 and fp16.value is False and bf16.value is False:
        yield Claim("train.amp", "none"), bf16
    for key, other in (("load_in_4bit", "load_in_8bit"), ("load_in_8bit", "load_in_4bit")):
        row = settings.get(key)
        if row and row.value is False and settings.value(other) is not True:
            yield Claim("quant.kind", "none"), row
    prompt, answer = settings.get("max_prompt_length"), settings.get("max_completion_length")
    both = [row.value for row in (prompt, answer) if row and isinstance(row.value, int)]
    if prompt and len(both) == 2 and min(both) > 0:
        total = sum(both)
        yield Claim("train.seq_len", total, 0, "max_prompt_length + max_completion_length"), prompt
