"""What is found per key or per file instead of per job: each is judged by rules about `lint.*`.

A key that nobody knows, two files that disagree about one setting, a file that cannot be read: the
facts of each go into a book of its own, so that these rules have pages and tests like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact, Quote
from oomdoctor.reason.narrate import print_fact
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook
    from oomdoctor.linting.files import LintFile
    from oomdoctor.linting.jobs import Job
    from oomdoctor.model.core import Conflict

PREFIX = "lint."
# What has one value in a job; of others, each file may have its own (checkpointing, say).
_ONE_VALUE = frozenset(
    {
        "train.micro_batch",
        "train.grad_accum",
        "train.global_batch",
        "train.amp",
        "train.seq_len",
        "train.max_steps",
        "train.epochs",
        "train.base_dtype",
        "dist.kind",
        "dist.world_size",
        "optimizer.name",
        "optimizer.offload",
        "dist.param_offload",
        "quant.kind",
        "model.name",
        "lora.rank",
    }
)


class Item(NamedTuple):
    """One thing to judge by itself: its facts, each with the place it stands at."""

    facts: tuple[Fact, ...]


def items_of(job: Job, book: FactBook) -> Iterator[Item]:
    """Yield all items of a job."""
    for file in job.files:
        if file.fault is not None:
            yield _unreadable(file)
    for file in job.files:
        yield from _misspelt(file)
    for conflict in book.conflicts:
        if conflict.key in _ONE_VALUE:
            yield from _disagreement(conflict, {file.path for file in job.files})


def _unreadable(file: LintFile) -> Item:
    fault = file.fault
    at = fault.location if fault is not None else None
    quote = Quote(
        artifact=file.path,
        line=(at.line if at else None) or 1,
        text="",
        column=(at.column if at else None) or 1,
    )
    said = fault.message if fault is not None else ""
    return Item((Fact(key="lint.unreadable", value=said, quotes=(quote,)),))


def _misspelt(file: LintFile) -> Iterator[Item]:
    from oomdoctor.configs.spelling import misspelt

    for reading in file.readings:
        for key, quote, suggestion in misspelt(reading):
            yield Item(
                (
                    Fact(key="lint.unknown_key", value=key, quotes=(quote,)),
                    Fact(key="lint.suggestion", value=suggestion, quotes=(quote,)),
                )
            )


def _disagreement(conflict: Conflict, paths: set[str]) -> Iterator[Item]:
    kept, dropped = conflict.kept, conflict.dropped
    places = [quote for fact in (kept, dropped) for quote in fact.quotes[:1]]
    inside = [quote for quote in places if quote.artifact in paths]
    if len(places) < 2 or len(inside) < 2 or places[0].artifact == places[1].artifact:
        return
    where = f"{places[0].artifact}:{places[0].line}"
    yield Item(
        (
            Fact(key="lint.disagreement", value=conflict.key, quotes=(places[1],)),
            Fact(key="lint.value", value=print_fact(dropped), quotes=(places[1],)),
            Fact(key="lint.other_value", value=print_fact(kept), quotes=(places[0],)),
            Fact(key="lint.other_place", value=where, quotes=(places[0],)),
        )
    )
