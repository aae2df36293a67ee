"""Pick the fixes of the likely causes, with their price, saving and the exact config change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import OomdoctorError
from oomdoctor.model.enums import Safety, Truth
from oomdoctor.model.plan import Patch, Prescription, Saving
from oomdoctor.reason.spelling import is_spelled, patches_of
from oomdoctor.record import dataclass
from oomdoctor.rules.evaluate import condition_verdict, expression_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Finding
    from oomdoctor.reason.rank import Ranking
    from oomdoctor.rules.shape import Condition, Fix, Rule, RuleSet, SavingFormula

LEAST_PROBABILITY = 0.08
"""A cause below this is listed, but nothing is prescribed for it."""

_SAFETY = {Safety.SAFE: 0, Safety.CHANGES_SPEED: 1, Safety.CHANGES_MATH: 2, Safety.NEEDS_CODE: 3}
# Who runs: where one of these is not known, advice that asks for it may be for another program.
_PROGRAM = frozenset({"job.framework", "serve.engine", "oom.library"})
# Phases in which the training batch is not on the device.
_NOT_TRAINING = ("eval", "generate", "save", "merge", "load", "resume", "import")
_TRAIN_BATCH_KEYS = frozenset(
    {
        "per_device_train_batch_size",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "micro_batch_size",
        "gradient_accumulation_steps",
        "batch_size",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Prescriptions in the order to try them, and the advice left out as already in force."""

    prescriptions: tuple[Prescription, ...] = ()
    suppressed: tuple[str, ...] = ()


def prescribe(
    ranking: Ranking, ruleset: RuleSet, book: FactBook, readings: Sequence[ConfigReading] = ()
) -> Plan:
    """Collect the fixes of all likely causes and of side findings, best first."""
    rules = {rule.code: rule for rule in ruleset.rules}
    offers = list(_offers(ranking, rules, book))
    weight: dict[str, float] = {}
    for finding, _, fix in offers:
        weight[fix.id] = weight.get(fix.id, 0.0) + _share_of(finding)
    made: dict[str, tuple[tuple[float, ...], Prescription]] = {}
    suppressed: list[str] = []
    for finding, rule, fix in offers:
        is_sibling = rule.code != finding.code
        if fix.id in made or not _applies(fix, book, readings, is_sibling=is_sibling):
            continue
        if fix.in_force is not None and _truth(fix.in_force, book) is Truth.TRUE:
            suppressed.append(f"already in force: {fix.title}")
            continue
        patches = patches_of(fix, book, readings)
        if patches is None:
            suppressed.append(f"already in force: {fix.title}")
            continue
        prescription = _prescription(finding.cause, rule, fix, book, patches)
        order = _order(prescription, weight[fix.id], book, is_ours=_is_ours(fix, book))
        made[fix.id] = (order, prescription)
    ordered = sorted(made.values(), key=lambda pair: (pair[0], pair[1].fix_id))
    return Plan(
        prescriptions=tuple(prescription for _, prescription in ordered),
        suppressed=tuple(dict.fromkeys(suppressed)),
    )


def prescriptions_of(
    rule: Rule, book: FactBook, readings: Sequence[ConfigReading] = ()
) -> tuple[Prescription, ...]:
    """Return the fixes of a rule that speaks by itself, in its own order, those done left out."""
    made = []
    for fix in rule.fixes:
        if not _applies(fix, book, readings, is_sibling=False):
            continue
        if fix.in_force is not None and _truth(fix.in_force, book) is Truth.TRUE:
            continue
        patches = patches_of(fix, book, readings)
        if patches is not None:
            made.append(_prescription("", rule, fix, book, patches))
    return tuple(made)


def _offers(
    ranking: Ranking, rules: Mapping[str, Rule], book: FactBook
) -> Iterable[tuple[Finding, Rule, Fix]]:
    """Yield the fixes of the likely findings: first the speaking rule's, then its siblings'.

    Siblings are rules for other frameworks, engines and set-ups: where their gate is not known
    to hold, their advice is for somebody else.
    """
    likely = [one for one in ranking.findings if one.probability >= LEAST_PROBABILITY]
    for finding in (*likely, *ranking.side_findings):
        for code in (finding.code, *finding.other_codes):
            rule = rules.get(code)
            if rule is None or (code != finding.code and _truth(rule.when, book) is not Truth.TRUE):
                continue
            yield from ((finding, rule, fix) for fix in rule.fixes)


def _share_of(finding: Finding) -> float:
    """Side findings cure no cause: they come after everything that does."""
    return finding.probability if finding.cause else 0.0


def _applies(
    fix: Fix, book: FactBook, readings: Sequence[ConfigReading], *, is_sibling: bool
) -> bool:
    """Say whether what a fix needs holds; it may be unknown for the speaking rule alone."""
    truth = Truth.TRUE if fix.needs is None else _truth(fix.needs, book)
    holds = truth is Truth.TRUE or (truth is Truth.UNKNOWN and not is_sibling)
    return holds and is_spelled(fix, book, readings)


def _is_ours(fix: Fix, book: FactBook) -> bool:
    """Say whether a fix is for the program at hand; not known is no."""
    if fix.needs is None or _truth(fix.needs, book) is Truth.TRUE:
        return True
    return not _PROGRAM & condition_verdict(fix.needs, book).missing


def _truth(condition: Condition, book: FactBook) -> Truth:
    try:
        return condition_verdict(condition, book).truth
    except (OomdoctorError, ArithmeticError):
        return Truth.UNKNOWN


def _prescription(
    cause: str, rule: Rule, fix: Fix, book: FactBook, patches: tuple[Patch, ...]
) -> Prescription:
    saving = None if fix.saves is None else saving_of(fix.saves, book)
    return Prescription(
        fix_id=fix.id,
        cause=cause,
        code=rule.code,
        title=fix.title,
        safety=fix.safety,
        patches=patches,
        saving=saving,
        time_factor=fix.time_factor,
        quality=fix.quality,
        sufficient=_sufficient(saving, book),
        cautions=fix.cautions,
        advice=fix.advice,
    )


def saving_of(formula: SavingFormula, book: FactBook) -> Saving | None:
    """Evaluate the interval of a saving; None where facts are missing or nothing is saved."""
    sizes: list[int] = []
    for expression in (formula.low, formula.likely, formula.high):
        try:
            value, _ = expression_value(expression, book)
        except (OomdoctorError, ArithmeticError):
            return None
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        sizes.append(max(0, int(value)))
    low, likely, high = sorted(sizes)
    if high == 0:
        return None
    return Saving(
        low_bytes=low, likely_bytes=likely, high_bytes=high, formula=formula.likely.source
    )


def _sufficient(saving: Saving | None, book: FactBook) -> bool | None:
    """Say False where the static states alone stay above the card; nothing proves True here.

    The message tells only the first request that failed, so a saving above the overshoot does not
    show that the step fits.
    """
    static = book.get("states.static_low")
    capacity = book.value("oom.allowed") or book.value("oom.capacity") or book.value("gpu.total")
    if saving is None or static is None or static.origin.value == "assumed":
        return None
    if not isinstance(capacity, int) or not isinstance(static.value, int):
        return None
    return False if static.value - static.slack - saving.high_bytes > capacity else None


def _order(
    prescription: Prescription, weight: float, book: FactBook, *, is_ours: bool
) -> tuple[float, ...]:
    """Sort by cause, then quality, then time, then bytes; what misses the phase goes last.

    What may be for another program stands behind what is for any.
    """
    likely = prescription.saving.likely_bytes if prescription.saving else 0
    changes = prescription.quality != "none" or prescription.safety is Safety.CHANGES_MATH
    return (
        float(_misses_phase(prescription, book)),
        -round(weight, 2),
        float(changes),
        float(prescription.sufficient is False),
        float(not is_ours),
        prescription.time_factor,
        float(_SAFETY[prescription.safety]),
        -likely / max(prescription.time_factor, 0.01),
    )


def _misses_phase(prescription: Prescription, book: FactBook) -> bool:
    """Say whether a fix only cuts the training batch although no training batch was there."""
    keys = {key.rsplit(".", 1)[-1] for one in prescription.patches for key in one.settings}
    return book.value("run.phase") in _NOT_TRAINING and bool(keys) and keys <= _TRAIN_BATCH_KEYS
