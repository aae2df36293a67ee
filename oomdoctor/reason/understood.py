"""The job as understood: model, what is trained, batch and tokens, and its memory in six parts.

    model                 Llama-2-7b-hf: 6,738,415,616 parameters
    trainable             19,988,480 (0.30 %)          layers x rank x (inputs + outputs) ...
    effective batch       32 rows = 2 per device x 8 accumulation x 2 ranks
    tokens per step       65,536 at most = 32 rows x 2,048 tokens
    weights               12.55 GiB                    parameters x 2 bytes (bf16)
    activations and logits   3.88 GiB = 0.92 GiB activations + 2.96 GiB logits
    optimizer             unknown: needs train.trainable_params

Figures of memory are formulas, never measurements; what is missing is named, not guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.derive_job import PAIR_TASKS
from oomdoctor.memory import parts
from oomdoctor.model.enums import Origin
from oomdoctor.model.lint import UnderstoodRow
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Fact

MARK = "formula: "
_RANK = (Origin.STATED, Origin.PROBED, Origin.DERIVED, Origin.ASSUMED)
_SHAPE = ("model.layers", "model.hidden", "model.heads", "model.intermediate")
_STEP = ("train.micro_batch", "train.seq_len")
_PARTS = (
    ("weights", "part.weights"),
    ("adapters", "part.adapters"),
    ("optimizer", "part.optimizer"),
    ("gradients", "part.gradients"),
    ("activations and logits", "part.activations"),
    ("context and fragmentation", "part.context"),
    ("peak on one card", "peak.formula"),
)
_NEEDS = {
    "part.weights": ("model.params", "load.dtype"),
    "part.adapters": ("lora.on", "load.dtype", "train.trainable_params"),
    "part.optimizer": ("optimizer.name", "load.dtype", "train.trainable_params"),
    "part.gradients": ("load.dtype", "train.trainable_params"),
    "part.activations": (*_STEP, "train.grad_checkpointing", *_SHAPE),
    "part.logits": (*_STEP, "model.vocab", "loss.used"),
}
_ADAPTER = ("lora.rank", "lora.targets", *_SHAPE)
_STATES = ("part.weights", "part.optimizer", "part.gradients")
_STATED_AS = {"load.dtype": "train.base_dtype", "loss.used": "loss.impl"}
_SHARDED = ("zero1", "zero2", "zero3", "fsdp1", "fsdp2")


def understood(book: FactBook) -> tuple[UnderstoodRow, ...]:
    """Return the rows about the job and about its memory; none where no job was read."""
    if "job.settings" not in book.facts and "model.name" not in book.facts:
        return ()
    full = parts.derive(book)
    job = (*_model(full), *_trained(full), *_batch(full), *_tokens(full))
    if not job:
        return ()
    return (*job, *_memory(full))


def _row(name: str, text: str, *facts: Fact | None, source: str | None = None) -> UnderstoodRow:
    said = [fact.origin for fact in facts if fact is not None]
    return UnderstoodRow(
        group="job",
        name=name,
        text=text,
        origin=max(said, key=_RANK.index) if said else Origin.STATED,
        source=source,
    )


def _model(book: FactBook) -> Iterator[UnderstoodRow]:
    name, params = book.get("model.name"), book.get("model.params")
    if name is None and params is None:
        return
    words = "" if name is None else str(name.value)
    if params is None:
        yield _row("model", f"{words}: its size is not known", name)
        return
    about = "about " if params.slack else ""
    number = f"{about}{_count(params)} parameters"
    yield _row("model", f"{words}: {number}" if words else number, params, source=params.source)


def _trained(book: FactBook) -> Iterator[UnderstoodRow]:
    trained, share = book.get("train.trainable_params"), book.get("train.trainable_share")
    if trained is not None:
        part = "" if share is None else f" ({100 * float(share.value):.3g} %)"
        yield _row(
            "trainable", f"{_count(trained)} parameters{part}", trained, source=trained.source
        )
        return
    if book.value("run.inference_only"):
        yield _row("trainable", "nothing: the job does not train", book.get("run.inference_only"))
        return
    adapter = book.get("lora.on")
    if adapter is not None and adapter.value is True:
        missing = _missing(book, _ADAPTER)
        needs = ", ".join(missing) or "the sizes of its targets"
        yield _row("trainable", f"an adapter; its size needs {needs}", adapter)


def _batch(book: FactBook) -> Iterator[UnderstoodRow]:
    rows, accum = book.get("train.micro_batch"), book.get("train.grad_accum")
    ranks, total = book.get("dist.world_size"), book.get("train.global_batch")
    if rows is None:
        return
    factors = [f"{_rows(int(rows.value))} per device"]
    together = book.value("job.framework") == "nanogpt"
    if accum is not None:
        factors.append(f"{_count(accum)} accumulation{' over all ranks' if together else ''}")
    if ranks is not None and not together:
        factors.append(f"{_count(ranks)} rank{'' if int(ranks.value) == 1 else 's'}")
    elif total is None and not together:
        factors.append("ranks (not stated)")
    shown = " x ".join(factors)
    known = total is not None and total.origin is not Origin.STATED
    text = f"{_rows(int(total.value))} = {shown}" if known and total is not None else shown
    if total is not None and not known:
        text = f"{_rows(int(total.value))} ({shown})"
    yield _row("effective batch", text, rows, accum, ranks)


def _tokens(book: FactBook) -> Iterator[UnderstoodRow]:
    length, total = book.get("train.seq_len"), book.get("train.global_batch")
    rows, accum = book.get("train.micro_batch"), book.get("train.grad_accum")
    if length is None or rows is None:
        return
    where = ""
    if total is not None:
        number = int(total.value)
    else:
        number = int(rows.value) * (1 if accum is None else int(accum.value))
        where = " per rank"
    pairs = 2 if book.value("job.task") in PAIR_TASKS else 1
    tokens = format_count(pairs * number * int(length.value))
    text = f"{tokens} at most{where} = {_rows(number)} x {_count(length)} tokens"
    if pairs == 2:
        text += " x 2 (chosen and rejected)"
    yield _row("tokens per step", text, length, rows, accum, total)


def _memory(book: FactBook) -> Iterator[UnderstoodRow]:
    for name, key in _PARTS:
        fact = book.get(key)
        if key == "part.activations":
            yield _step(book, name)
        elif fact is not None:
            yield _known(book, name, fact)
        elif key == "peak.formula":
            known = [one for part in parts.PARTS if (one := book.get(part)) is not None]
            if len(known) > 2:
                yield _least(known)
        else:
            yield UnderstoodRow(
                group="memory", name=name, text=_unknown(book, key), origin=Origin.ASSUMED
            )


def _known(book: FactBook, name: str, fact: Fact) -> UnderstoodRow:
    size = int(fact.value)
    text = format_size(size)
    share = book.get("peak.share") if fact.key == "peak.formula" else None
    whole = None
    if share is not None:
        card = book.value("gpu.name") or "the card"
        whole = int(book.facts["gpu.nominal"].value)
        text += f" of {format_size(whole)} ({card})"
    return UnderstoodRow(
        group="memory",
        name=name,
        text=text,
        origin=fact.origin,
        source=f"{MARK}{fact.source}",
        bytes=size,
        of_bytes=whole,
    )


def _step(book: FactBook, name: str) -> UnderstoodRow:
    """Return what a step adds: activations and logits, each known or named as missing."""
    keys = (("activations", "part.activations"), ("logits", "part.logits"))
    found = [(word, fact) for word, key in keys if (fact := book.get(key)) is not None]
    total = sum(int(fact.value) for _, fact in found)
    shown = [f"{format_size(int(fact.value))} {word}" for word, fact in found]
    open_ends = [f"{word} {_unknown(book, key)}" for word, key in keys if key not in book.facts]
    if not found:
        told = dict.fromkeys(_unknown(book, key) for _, key in keys)
        return UnderstoodRow(group="memory", name=name, text="; ".join(told), origin=Origin.ASSUMED)
    text = f"{format_size(total)} = {' + '.join(shown)}" if len(found) == 2 else shown[0]
    return UnderstoodRow(
        group="memory",
        name=name,
        text="; ".join((text, *open_ends)),
        origin=max((fact.origin for _, fact in found), key=_RANK.index),
        source=MARK + "; ".join(f"{word}: {fact.source}" for word, fact in found),
        bytes=total,
    )


def _least(known: list[Fact]) -> UnderstoodRow:
    total = sum(int(fact.value) for fact in known)
    return UnderstoodRow(
        group="memory",
        name="sum on one card",
        text=f"at least {format_size(total)}, without what is not known",
        origin=Origin.ASSUMED,
        source=f"{MARK}sum of the known parts",
        bytes=total,
    )


def _unknown(book: FactBook, key: str) -> str:
    """Say what a part needs; a split over an unknown number of ranks comes first."""
    how = book.value("dist.kind")
    ranks = key in _STATES and how in _SHARDED
    if ranks and book.value("dist.world_size") is None:
        return f"unknown: {how} shares it over ranks, needs dist.world_size"
    kind = str(book.value("model.kind") or "causal-lm")
    step = key in ("part.activations", "part.logits")
    if step and (kind != "causal-lm" or book.value("model.experts")):
        return f"unknown: no formula for {'mixtures of experts' if kind == 'causal-lm' else kind}"
    if key in _STATES and book.value("load.split") and not book.value("dist.device_map"):
        return "unknown: split over cards in a way that no formula tells"
    missing = _missing(book, _NEEDS.get(key, ()))
    if missing:
        return f"unknown: needs {', '.join(missing)}"
    return "unknown: no formula for this kind of model or optimizer"


def _missing(book: FactBook, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys nobody gave; a missing shape is the model's name or config.json."""
    missing = [key for key in keys if key not in book.facts]
    if "train.trainable_params" in missing and book.value("lora.on"):
        missing.remove("train.trainable_params")
        roots = [key for key in _ADAPTER if key not in book.facts and key not in missing]
        missing += roots or ["sizes of the adapted linears"]
    missing = [_STATED_AS.get(key, key) for key in missing]
    shapes = [key for key in missing if key.startswith("model.")]
    if not shapes:
        return tuple(missing)
    rest = [key for key in missing if key not in shapes]
    return (*rest, "the model's config.json")


def _rows(number: int) -> str:
    return f"{format_count(number)} row{'' if number == 1 else 's'}"


def _count(fact: Fact) -> str:
    return format_count(int(fact.value))
