"""Derived facts of the model and the card: their shapes by name."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts.derivation import Derivation, Inputs, MissingFactError, Outcome, derives

if TYPE_CHECKING:
    from oomdoctor.facts import gpus, models

GIB = 1 << 30
SHAPE_SLACK = 0.10
_MOST_WORDS = 20_000
# HBM of what one process addresses: a core up to v3, a chip from v4 on.
_TPU_GIB = {"v2": 8, "v3": 16, "v4": 32, "v5e": 16, "v5p": 95, "v6e": 32}
_COUNTS = (
    "params",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "intermediate",
    "vocab",
    "max_positions",
    "experts",
    "moe_intermediate",
)


def _found(facts: Inputs) -> models.Found:
    """Return the model that the name means; without one the derivation gives nothing."""
    name = facts.text("model.name")
    from oomdoctor.facts import models

    found = models.lookup(name)
    if found is None:
        raise MissingFactError("model.name")
    return found


@derives("model.name", reads=("job.text",))
def name_in_words(facts: Inputs) -> Outcome | None:
    """The one model of the table that the words of the job name, in whatever form they are."""
    words = _named().findall(facts.text("job.text")[:_MOST_WORDS])
    if not words:
        return None
    from oomdoctor.facts import models

    found = {word: one.model.name for word in words if (one := models.lookup(word)) is not None}
    return Outcome(next(iter(found)), "words of the job") if len({*found.values()}) == 1 else None


@cache
def _named() -> re.Pattern[str]:
    return re.compile(r"(?<![\w.-])[A-Za-z](?:[\w.]|[-/](?=\w)){4,80}(?<=[A-Za-z0-9])(?![\w-])")


def _source(found: models.Found) -> str:
    near = f"same shape as {found.model.name}" if found.variant else found.model.name
    return f"table of models: {near}"


def _count(name: str) -> Derivation:
    """Return the derivation of one dimension from the model's name."""
    key = f"model.{name}"

    @derives(key, reads=("model.name",))
    def dimension(facts: Inputs) -> Outcome | None:
        found = _found(facts)
        value = found.model.shape.get(name)
        return None if value is None else Outcome(value, _source(found))

    return dimension


@derives("model.tied", reads=("model.name",))
def tied(facts: Inputs) -> Outcome | None:
    """Whether embedding and head are one matrix, by the model's name."""
    found = _found(facts)
    return None if found.model.tied is None else Outcome(found.model.tied, _source(found))


@derives("model.kind", reads=("model.name",))
def kind(facts: Inputs) -> Outcome:
    """The kind of model by its name."""
    found = _found(facts)
    return Outcome(found.model.kind, _source(found))


@derives("model.positions", reads=("model.name",))
def positions(facts: Inputs) -> Outcome | None:
    """How positions enter, by the architecture of the model's name."""
    found = _found(facts)
    from oomdoctor.facts.models import positions_of

    kind_of = positions_of(found.model.architecture)
    return None if kind_of is None else Outcome(kind_of, _source(found))


@derives("model.head_dim", reads=("model.hidden", "model.heads"))
def head_dim(facts: Inputs) -> Outcome | None:
    """Hidden size / heads, where that is a whole number."""
    size, rest = divmod(facts.whole("model.hidden"), facts.whole("model.heads"))
    return None if rest else Outcome(size, "hidden size / heads")


@derives(
    "model.params",
    reads=(
        "model.layers",
        "model.hidden",
        "model.heads",
        "model.kv_heads",
        "model.head_dim",
        "model.intermediate",
        "model.vocab",
        "model.tied",
        "model.experts",
    ),
)
def params_of_shape(facts: Inputs) -> Outcome | None:
    """Sum of the matrices of a decoder; three feed-forward matrices where it is gated."""
    if facts.maybe_int("model.experts"):
        return None
    layers, hidden = facts.whole("model.layers"), facts.whole("model.hidden")
    width = facts.whole("model.intermediate")
    queries = facts.whole("model.heads") * facts.whole("model.head_dim")
    keys = (facts.maybe_int("model.kv_heads") or facts.whole("model.heads")) * facts.whole(
        "model.head_dim"
    )
    matrices = 2 if width == 4 * hidden else 3
    layer = hidden * (2 * queries + 2 * keys + matrices * width)
    tables = facts.whole("model.vocab") * hidden * (1 if facts.maybe_flag("model.tied") else 2)
    total = layers * layer + tables
    return Outcome(total, "sum of the matrices of its shape", SHAPE_SLACK * total)


@derives("model.params", reads=("model.name",))
def params_of_name(facts: Inputs) -> Outcome | None:
    """The size that a name such as `my-model-7b` states; a guess within 8 %."""
    name = facts.text("model.name")
    from oomdoctor.facts import models

    size = models.stated_size(name)
    if size is None:
        return None
    return Outcome(size, "size in the model's name", models.SIZE_SLACK * size, guess=True)


def _cards(facts: Inputs) -> tuple[gpus.Gpu, ...]:
    name = facts.text("gpu.name")
    from oomdoctor.facts import gpus

    found = gpus.lookup(name)
    if not found:
        raise MissingFactError("gpu.name")
    return found


def _slice_size(facts: Inputs) -> float | None:
    """Return the GiB that the name of a slice states, None where the card is no slice."""
    name = facts.text("gpu.name")
    from oomdoctor.facts.gpus import split_mig

    return split_mig(name)[1]


@derives("gpu.mig", reads=("gpu.name",))
def mig(facts: Inputs) -> Outcome | None:
    """A name such as `... MIG 2g.20gb` is that of a slice."""
    size = _slice_size(facts)
    return None if size is None else Outcome(value=True, source="name of the device")


@derives("gpu.mig_slice", reads=("gpu.name",))
def mig_slice(facts: Inputs) -> Outcome | None:
    """The memory that the slice's name states, within 8 %."""
    size = _slice_size(facts)
    if size is None:
        return None
    return Outcome(size * GIB, "name of the slice", 0.08 * size * GIB)


@derives("gpu.total", reads=("gpu.name", "oom.capacity"))
def total(facts: Inputs) -> Outcome | None:
    """The memory that the card's name fixes; not where a message states it or variants share it."""
    found = _cards(facts)
    if _slice_size(facts) is not None or facts.get("oom.capacity") is not None:
        return None
    from oomdoctor.facts.gpus import fixed_total

    fixed = fixed_total(found)
    source = f"table of cards: {found[0].name}"
    return None if fixed is None else Outcome(fixed.bytes, source, fixed.slack_bytes)


@derives("gpu.total", reads=("job.text",))
def tpu_total(facts: Inputs) -> Outcome | None:
    """The memory of one device of a TPU slice, by the slice's name."""
    said = facts.text("job.text")
    named = _slice().search(said) if "tpu" in said.lower() else None
    if named is None or named[1].lower() not in _TPU_GIB:
        return None
    return Outcome(_TPU_GIB[named[1].lower()] * GIB, f"memory of a TPU {named[1]} device")


@cache
def _slice() -> re.Pattern[str]:
    return re.compile(r"(?i)\b(v[2-6][ep]?)-\d+\b")


@derives("gpu.compute_capability", reads=("gpu.name",))
def compute_capability(facts: Inputs) -> Outcome | None:
    """What all cards of that name share."""
    found = _cards(facts)
    shared = {card.compute_capability for card in found}
    value = shared.pop() if len(shared) == 1 else None
    return None if value is None else Outcome(value, f"table of cards: {found[0].name}")


@derives("gpu.architecture", reads=("gpu.name",))
def architecture(facts: Inputs) -> Outcome | None:
    """What all cards of that name share."""
    found = _cards(facts)
    shared = {card.architecture for card in found}
    if len(shared) != 1:
        return None
    return Outcome(shared.pop(), f"table of cards: {found[0].name}")


CARD_STEPS = (mig, mig_slice, total, tpu_total, compute_capability, architecture)
STEPS = (
    name_in_words,
    *(_count(name) for name in _COUNTS),
    tied,
    kind,
    positions,
    head_dim,
    params_of_shape,
    params_of_name,
)
