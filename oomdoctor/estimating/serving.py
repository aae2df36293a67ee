"""An estimate of a server: its budget on each card, by formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.estimating.cards import PLAIN, usual_cards
from oomdoctor.memory import formula_pipeline, serving_rows
from oomdoctor.memory.formula_engine import largest_pass, share_of
from oomdoctor.memory.formula_local import cache_bytes, cards_of, layers_there
from oomdoctor.memory.formula_serving import CACHE_BYTES
from oomdoctor.memory.serving_budget import budget_of, budget_with_changes, host_bytes
from oomdoctor.memory.six_parts import six_parts
from oomdoctor.model.estimate import (
    FORMULA,
    CardVerdict,
    Estimate,
    Owner,
    PartBytes,
    PhasePeak,
    Rates,
    Variant,
)
from oomdoctor.model.serving import DIFFUSERS, LOCAL, SHARED, Serving
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.estimating.describe import Described
    from oomdoctor.estimating.estimate import Wanted
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import CardBudget, ServingSpec

FALLBACK = "a server's memory is computed by formula, whatever is installed"
ORIGIN = "closed formulas with coefficients from published starts of engines"
LOAD, SERVE = "load", "generation"


def served(
    own: Described, others: Mapping[str, Described], wanted: Wanted, *, simulated: bool
) -> Estimate:
    """Return the estimate of a server, with others beside it; `simulated` was wanted."""
    if own.serving is None:
        raise ValueError("no server is described")
    made = serving_estimate(own.serving, wanted.cards, assumptions=own.assumptions)
    variants = []
    for text, other in others.items():
        if other.serving is not None:
            found = serving_estimate(other.serving, wanted.cards)
            variants.append(
                Variant(
                    name=text,
                    engine=FORMULA,
                    peak_allocated_bytes=found.peak_allocated_bytes,
                    peak_reserved_bytes=None,
                    verdicts=found.verdicts,
                )
            )
    fallback = FALLBACK if simulated else None
    return replace(made, variants=tuple(variants), fallback=fallback)


def serving_estimate(
    spec: ServingSpec, cards: Sequence[CardSpec], *, assumptions: Sequence[str] = ()
) -> Estimate:
    """Estimate a server; InputError for what no formula covers."""
    judged = cards or usual_cards()
    try:
        budgets = tuple(
            budget_with_changes(spec, card) if cards else budget_of(spec, card) for card in judged
        )
        first = budgets[0] if cards else budget_of(spec, PLAIN)
    except ValueError as error:
        raise InputError(f"no formula covers {spec.job.model.name}: {error}") from error
    parts = _categories(spec, first)
    peak = sum(one.bytes for one in parts)
    outside = serving_rows.summed(
        first.rows, [one.name for one in first.rows if one.category == "outside"]
    )
    weights = sum(one.bytes for one in parts if one.name in ("weights", "adapter"))
    return Estimate(
        job=spec.job,
        engine=FORMULA,
        peak_allocated_bytes=peak,
        peak_reserved_bytes=None,
        peak_phase=SERVE,
        outside_low_bytes=outside[0],
        outside_high_bytes=outside[2],
        outside_says="CUDA context and libraries",
        band=_band(first),
        need_band=_band(first),
        phases=(
            PhasePeak(name=LOAD, allocated_bytes=weights),
            PhasePeak(name=SERVE, allocated_bytes=peak),
        ),
        parts=six_parts({one.name: one.bytes for one in parts}),
        categories=parts,
        owners=_owners(spec, first),
        verdicts=tuple(_verdict(one) for one in budgets),
        assumptions=tuple(dict.fromkeys((*assumptions, *_said(spec)))),
        host_bytes=host_bytes(spec),
        origin=ORIGIN,
        rates=_rates(spec),
        serving=_serving(spec, judged[0] if cards else PLAIN, budgets),
    )


def _band(made: CardBudget) -> float:
    middle = max(1, made.needed_bytes)
    return max(made.needed_high_bytes - middle, middle - made.needed_low_bytes) / middle


def _request(spec: ServingSpec) -> int:
    """Return the cache that the estimate counts: of one request, or of the whole context."""
    if spec.engine == DIFFUSERS:
        return 0
    if spec.engine in LOCAL:
        return cache_bytes(spec, spec.longest)
    ahead = spec.batched_tokens or 2048
    return serving_rows.request_bytes(spec, spec.longest, ahead=ahead)


def _categories(spec: ServingSpec, made: CardBudget) -> tuple[PartBytes, ...]:
    """Return what the allocator holds at least, by category."""
    sums: dict[str, int] = {}
    said: dict[str, str] = {}
    for one in made.rows:
        if one.category != "outside":
            sums[one.category] = sums.get(one.category, 0) + one.bytes
            said.setdefault(one.category, one.formula)
    if spec.engine in SHARED:
        sums["kv cache"] = _request(spec)
        said["kv cache"] = f"one request of {spec.longest:,} tokens"
    if spec.engine == DIFFUSERS:
        _, peak, _ = formula_pipeline.resident(spec, made.rows)
        sums["temporary"] = min(sums["temporary"], peak)
        sums["weights"] = peak - sums["temporary"]
    return tuple(
        PartBytes(name=name, bytes=size, formula=said.get(name)) for name, size in sums.items()
    )


def _owners(spec: ServingSpec, made: CardBudget) -> tuple[Owner, ...]:
    gone = formula_pipeline.absent(spec) if spec.engine == DIFFUSERS else ()
    found = [
        _row_owner(one.name, one.category, one.bytes)
        for one in made.rows
        if one.category != "outside" and one.bytes and one.name not in gone
    ]
    if spec.engine in SHARED:
        found.append(_row_owner(serving_rows.REQUEST, "kv cache", _request(spec)))
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _row_owner(name: str, category: str, size: int) -> Owner:
    phase = LOAD if category in ("weights", "adapter") else SERVE
    return Owner(
        module=name,
        operator="formula",
        category=category,
        phase=phase,
        part="",
        bytes=size,
        allocations=1,
    )


def _verdict(made: CardBudget) -> CardVerdict:
    return CardVerdict(
        card=made.card,
        capacity_bytes=made.capacity_bytes,
        verdict=made.verdict,
        needed_low_bytes=made.needed_low_bytes,
        needed_high_bytes=made.needed_high_bytes,
        margin_low_bytes=made.budget_bytes - made.needed_high_bytes,
        margin_high_bytes=made.budget_bytes - made.needed_low_bytes,
        failed=made.why or None,
    )


def _rates(spec: ServingSpec) -> Rates | None:
    if spec.engine == DIFFUSERS:
        return None
    each = _token(spec)
    request = _request(spec) // (spec.parallel if spec.engine in LOCAL else 1)
    how = "the cache of one request, and of 1,000 tokens in it"
    return Rates(row_bytes=request, thousand_tokens_bytes=1000 * each, how=how)


def _token(spec: ServingSpec) -> int:
    """Return the cache of one more token of a long request on one card."""
    if spec.engine == DIFFUSERS:
        return 0
    each = serving_rows.own_layers(spec).whole * serving_rows.layer_bytes(spec)
    return int(each * layers_there(spec) / cards_of(spec) if spec.engine in LOCAL else each)


def _serving(spec: ServingSpec, card: CardSpec, budgets: tuple[CardBudget, ...]) -> Serving:
    shares = spec.engine in SHARED
    plain = spec.cache not in CACHE_BYTES or spec.cache == "auto"
    cache = spec.job.dtype if plain and spec.cache == "auto" else spec.cache
    ahead = largest_pass(spec, card).tokens if shares else 0
    request = serving_rows.request_bytes(spec, spec.longest, ahead=ahead) if shares else 0
    return Serving(
        engine=spec.engine,
        utilization=share_of(spec, card) if shares else None,
        longest=spec.longest,
        cache="" if spec.engine == DIFFUSERS else cache,
        token_bytes=_token(spec),
        request_bytes=request if shares else _request(spec),
        tensor=spec.job.sharding.tensor,
        pipeline=spec.job.sharding.pipeline,
        cards=budgets,
    )


def _said(spec: ServingSpec) -> tuple[str, ...]:
    """Return what the formulas leave out, and what the peak means here."""
    said = []
    if spec.engine in SHARED:
        said.append(
            "the peak is the least that the engine starts with: one request in its cache; it"
            " takes its whole share of the card"
        )
    if "vision_config" in spec.job.model.config and spec.engine in SHARED:
        said.append("formula: a profile with images may take up to 4 GiB more, or be switched off")
    elif "vision_config" in spec.job.model.config:
        said.append("formula: the network for images (mmproj) is left out")
    if spec.job.sharding.tensor > 1 or spec.job.sharding.pipeline > 1:
        said.append("formula: cards share the layers evenly; figures are those of one card")
    if spec.job.quant is not None and spec.engine != DIFFUSERS:
        said.append(f"formula: all linear layers in {spec.job.quant.kind}, the rest in 16 bits")
    return tuple(said)
