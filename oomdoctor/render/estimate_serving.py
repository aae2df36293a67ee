"""A server on a page: where each card's memory goes, what its cache holds, what would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.serving import DIFFUSERS, LOCAL, SHARED
from oomdoctor.render.estimate_words import verdict_words
from oomdoctor.render.page import Section, Table
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.estimate import Estimate
    from oomdoctor.model.serving import CardBudget, Serving

NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tgi": "TGI", "ollama": "Ollama"}


def serving_words(made: Estimate, serving: Serving) -> str:
    """Print how a model is served in a line."""
    job = made.job
    name = NAMES.get(serving.engine, serving.engine)
    if serving.engine == DIFFUSERS:
        side = job.image_size or 0
        many = f"{format_count(job.batch)} of {side} x {side} pixels at once"
        return f"a pipeline of {name}, {_dtype(made)}, {many}"
    words = [f"served by {name}"]
    if serving.engine in LOCAL:
        words.append(f"a context of {format_count(serving.longest)} tokens")
    else:
        words += [_dtype(made), f"requests of up to {format_count(serving.longest)} tokens"]
    words.append(f"a cache in {serving.cache}")
    cards = serving.tensor * serving.pipeline
    if cards > 1:
        words.append(f"over {cards} cards")
    return ", ".join(words)


def _dtype(made: Estimate) -> str:
    quant = made.job.quant
    return made.job.dtype if quant is None else f"{quant.kind} and {made.job.dtype}"


def serving_sections(made: Estimate) -> tuple[Section, ...]:
    """Return what stands on the cards of a server, nothing for other jobs."""
    serving = made.serving
    if serving is None or not serving.cards:
        return ()
    sections = [_rows(serving.cards[0])]
    if serving.engine != DIFFUSERS:
        sections.insert(0, _capacity(serving))
    changes = [one for one in serving.cards if one.changes]
    if changes:
        sections.append(_changes(changes))
    return tuple(sections)


def _capacity(serving: Serving) -> Section:
    shares = serving.engine in SHARED
    headers = ("card", "for the engine", "cache", "tokens", "requests at once", "longest request")
    rows = tuple(
        (
            one.card,
            format_size(one.budget_bytes),
            format_size(one.cache_bytes),
            format_count(one.tokens),
            f"{one.requests:.1f}",
            format_count(one.longest),
            *((_share(one.least_utilization),) if shares else ()),
        )
        for one in serving.cards
    )
    each = f"A token takes {format_size(serving.token_bytes)} of the cache of a card"
    request = f"a request of {format_count(serving.longest)} takes"
    said = f"{each}, {request} {format_size(serving.request_bytes)}."
    return Section(
        title="What the server holds",
        sentences=(said,) if shares else (f"{each}.",),
        table=Table(
            caption="The cache of each card, and the longest request that fits",
            headers=(*headers, "least share") if shares else headers,
            rows=rows,
            numeric=frozenset(range(1, 7 if shares else 6)),
        ),
    )


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.2f}"


def _rows(card: CardBudget) -> Section:
    rows = tuple(
        (
            one.name,
            format_size(one.bytes),
            f"{format_size(one.low_bytes)} to {format_size(one.high_bytes)}",
            one.formula,
        )
        for one in card.rows
    )
    return Section(
        title=f"Where the memory of {card.card} goes",
        table=Table(
            caption="What stands on the card beside the cache of requests",
            headers=("what", "expected", "band", "from"),
            rows=rows,
            numeric=frozenset({1}),
        ),
    )


def _changes(cards: list[CardBudget]) -> Section:
    rows = tuple((one.card, verdict_words(one.verdict), " | ".join(one.changes)) for one in cards)
    return Section(
        title="What would fit",
        table=Table(
            caption="Each change alone, with which the server fits",
            headers=("card", "now", "one of"),
            rows=rows,
        ),
    )
