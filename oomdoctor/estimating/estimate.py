"""An estimate: engine chosen, peak found, cards judged, and all that was asked for beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, OomdoctorError
from oomdoctor.estimating.cards import usual_cards
from oomdoctor.estimating.limits import limits, rates
from oomdoctor.estimating.table import axes, table
from oomdoctor.estimating.verdicts import verdicts
from oomdoctor.memory.outside import outside
from oomdoctor.model.estimate import FITS, Estimate, Variant
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.memory.outside import Outside
    from oomdoctor.model.estimate import CardVerdict
    from oomdoctor.model.job import CardSpec, Job

PLAIN_SETTINGS = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for beside the peak.

    Without `cards` the usual ones are judged. The first of `alloc_confs` is that of the estimate,
    all are compared with the allocator's defaults. `batches` and `lengths` are the axes of the
    table.
    """

    cards: tuple[CardSpec, ...] = ()
    alloc_confs: tuple[str, ...] = ()
    with_table: bool = False
    with_limits: bool = True
    batches: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()


def estimate(
    job: Job,
    engine: Engine,
    wanted: Wanted,
    *,
    assumptions: Sequence[str] = (),
    fallback: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Estimate:
    """Estimate a job with an engine; WorkerError where it cannot be traced."""
    _check_settings(wanted.alloc_confs)
    say("estimating the peak")
    peak = engine.peak(job)
    beside = outside(job)
    cards = wanted.cards or usual_cards()
    judged = _verdicts(engine, peak, job, cards, beside, named=bool(wanted.cards))
    made = Estimate(
        job=job,
        engine=peak.engine,
        peak_allocated_bytes=peak.allocated,
        peak_reserved_bytes=peak.reserved,
        peak_phase=peak.phase,
        outside_low_bytes=beside.low,
        outside_high_bytes=beside.high,
        outside_says=beside.says,
        band=peak.band.off,
        need_band=max(peak.up, peak.down),
        phases=peak.phases,
        parts=peak.parts,
        categories=peak.categories,
        owners=peak.owners,
        line=peak.line,
        verdicts=judged,
        assumptions=tuple(dict.fromkeys((*assumptions, *peak.assumptions))),
        told=(*peak.told, *_ends(engine, job, wanted.cards, judged)),
        host_bytes=peak.host_bytes,
        fallback=fallback,
        versions=peak.versions,
        device=_device(engine),
        origin=peak.origin,
        alloc_conf=engine.settings,
        alloc_confs=_settings_compared(job, engine, cards, beside, wanted),
    )
    return _with_other_batches(made, engine, wanted, beside, say)


def _with_other_batches(
    made: Estimate,
    engine: Engine,
    wanted: Wanted,
    beside: Outside,
    say: Callable[[str], None],
) -> Estimate:
    job = made.job
    try:
        if wanted.with_limits:
            say("looking for the largest batch")
            slopes = rates(engine, job)
            made = replace(made, rates=slopes)
            made = replace(made, limits=limits(engine, job, wanted.cards, beside, slopes))
        if wanted.with_table:
            batches, lengths = axes(job, batches=wanted.batches, lengths=wanted.lengths)
            cells = table(
                engine, job, wanted.cards, beside, batches=batches, lengths=lengths, say=say
            )
            made = replace(made, table=cells)
    except OomdoctorError as error:  # the peak stands, whatever another batch does
        why = error.message.partition("\n")[0]
        note = f"other batches could not be traced ({why})"
        made = replace(made, assumptions=(*made.assumptions, note))
    return made


def _verdicts(
    engine: Engine,
    peak: Peak,
    job: Job,
    cards: Sequence[CardSpec],
    beside: Outside,
    *,
    named: bool,
) -> tuple[CardVerdict, ...]:
    """Judge the cards; those of another generation that are named have a trace of their own."""
    found: list[CardVerdict] = []
    for card in cards:
        own = engine.on(card).peak(job) if named else peak
        found += verdicts(own, [card], beside, named=named)
    return tuple(found)


def _ends(
    engine: Engine, job: Job, cards: Sequence[CardSpec], judged: Sequence[CardVerdict]
) -> tuple[str, ...]:
    """Say how a run ends on each card that is named and does not surely hold the job."""
    doubtful = [card for card, one in zip(cards, judged, strict=False) if one.verdict != FITS]
    ends = (engine.on(card).end_on(job, card) for card in doubtful)
    return tuple(one for one in ends if one is not None)


def _check_settings(texts: Sequence[str]) -> None:
    """Refuse settings in the words of torch, before anything takes its time."""
    for text in texts:
        _check(text)


def _check(text: str) -> None:
    from oomdoctor.memory.allocator_settings import read_settings

    try:
        read_settings(text)
    except InputError as error:
        raise InputError(
            f"--alloc-conf {text!r}: {error.message}",
            hint="PyTorch refuses it in these words; settings are KEY:VALUE with commas, such as"
            " expandable_segments:True,max_split_size_mb:128",
        ) from error


def _device(engine: Engine) -> str:
    card = getattr(engine, "card", None)
    if card is None:
        return ""
    return f"{card.name or 'a card'} (sm{card.capability[0]}{card.capability[1]})"


def _settings_compared(
    job: Job, engine: Engine, cards: Sequence[CardSpec], beside: Outside, wanted: Wanted
) -> tuple[Variant, ...]:
    if not wanted.alloc_confs:
        return ()
    found = []
    for text in dict.fromkeys(("", *wanted.alloc_confs)):
        peak = engine.under(text).peak(job)
        judged = verdicts(peak, cards, beside, named=False)
        note = None if peak.stream is not None else "the formula knows no allocator"
        found.append(variant(text or PLAIN_SETTINGS, peak, judged, note=note))
    return tuple(found)


def variant(
    name: str, peak: Peak, judged: tuple[CardVerdict, ...], *, note: str | None = None
) -> Variant:
    """Return a peak under a name, to stand beside others."""
    return Variant(
        name=name,
        engine=peak.engine,
        peak_allocated_bytes=peak.allocated,
        peak_reserved_bytes=peak.reserved,
        verdicts=judged,
        note=note,
    )


def compared(
    name: str, job: Job, engine: Engine, wanted: Wanted, *, note: str | None = None
) -> Variant:
    """Return another job beside an estimate."""
    peak = engine.peak(job)
    cards = wanted.cards or usual_cards()
    return variant(name, peak, verdicts(peak, cards, outside(job), named=False), note=note)
