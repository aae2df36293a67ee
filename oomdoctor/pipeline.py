"""From inputs to a diagnosis: reads logs, tables and configs, then asks the rules."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from oomdoctor.errors import InputError
from oomdoctor.evidence.source import read_source, source_of_text
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.given import parse_possible
from oomdoctor.gathering import Gathered, add_config, add_inputs, joined_texts
from oomdoctor.inputs import items_of
from oomdoctor.reading import config_reading, read_one, read_path
from oomdoctor.reason.conclude import conclude
from oomdoctor.reason.timeline import first_failure, timeline_facts
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.evidence.source import Progress, Source
    from oomdoctor.inputs import Item
    from oomdoctor.model.core import Fact, Failure
    from oomdoctor.model.lint import UnderstoodRow
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.reading import FileReading
    from oomdoctor.rules.shape import RuleSet

T = TypeVar("T")

LARGE_BYTES = 32 * 1024 * 1024
"""Inputs that have so much together are read in several processes."""
MANY_LOGS = 8
SHORT_LOG = 80
"""Lines of what may be a report that was written by hand."""
LINES_OF_MANY = 300
"""Lines kept of each log without a memory failure, where there are many logs."""


def diagnose(  # noqa: PLR0913 - the front door of the library: each is one thing to ask for
    inputs: str | Sequence[str],
    *,
    config: str | Mapping[str, object] | Sequence[str] | None = None,
    facts: Sequence[str] = (),
    rules: Sequence[str] = (),
    preview: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Diagnose logs, tables and configs.

    `inputs` is a path, several paths, "-" for standard input, or the text itself; `config` a path,
    several paths, the text or a mapping. `facts` are "KEY=VALUE" strings that outrank everything
    read, `rules` are directories with further rules, `preview` lets sandbox rules speak.
    `select` and `ignore` are starts of codes: of the rules that may speak, and that may not.
    `progress` is told now and then how many bytes of how many have been read.
    """
    given = parse_possible(facts)
    gathered = gather(inputs, config=config, stdin=stdin, progress=progress)
    ruleset = chosen_rules(rules, preview=preview, select=select, ignore=ignore)
    return concluded(gathered, assemble(gathered, given), ruleset)


def chosen_rules(
    rules: Sequence[str], *, preview: bool, select: Sequence[str], ignore: Sequence[str]
) -> RuleSet:
    """Load the rules that may speak."""
    from oomdoctor.rules.loader import load_rules
    from oomdoctor.rules.selection import selected

    return selected(load_rules(tuple(rules), preview=preview), select=select, ignore=ignore)


def gather(
    inputs: str | Sequence[str],
    *,
    config: str | Mapping[str, object] | Sequence[str] | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Read all inputs and configs; what cannot be understood becomes a note."""
    gathered = Gathered()
    items = items_of(inputs, gathered.notes)
    readings = _read_all(items, stdin=stdin, notes=gathered.notes, progress=progress)
    add_inputs(gathered, readings)
    if isinstance(config, Mapping):
        config = json.dumps(config, indent=1, default=str) + "\n"
    needed = not gathered.artifacts
    for source in _configs(config or (), stdin=stdin, notes=gathered.notes, needed=needed):
        given = config_reading(source, kind="config")
        gathered.artifacts.append(given.artifact)
        gathered.notes += given.notes
        add_config(gathered, given)
    return gathered


def assemble(gathered: Gathered, given: Sequence[Fact] = ()) -> FactBook:
    """Merge facts by precedence and derive what follows from them."""
    from oomdoctor.facts.defaults import assumed
    from oomdoctor.facts.derive import derive
    from oomdoctor.memory import physics

    first = first_failure(gathered.failures)
    book = FactBook().add(given)
    if first is not None:
        book = book.add(_own_facts(first))
    facts = joined_texts([*gathered.facts, *gathered.config_facts])
    book = book.add(facts, closes=gathered.closes)
    book = book.add(timeline_facts(gathered.failures, first))
    book = _adding(gathered, "words left out", lambda: _with_words(gathered, book), book)
    book = derive(book.add(assumed(book)))
    return _adding(gathered, "sizes were not derived", lambda: physics.derive(book), book)


def _with_words(gathered: Gathered, book: FactBook) -> FactBook:
    """Add what somebody says in sentences, where notes or a short log may hold any."""
    log = book.facts.get("log.text")
    report = log.quotes if log is not None and len(log.quotes) <= SHORT_LOG else ()
    if not report and not any(one.dialect == "notes" for one in gathered.readings):
        return book
    from oomdoctor.reason.said import said

    return book.add(said(gathered.readings, report, book))


def _adding(gathered: Gathered, fault_words: str, action: Callable[[], T], otherwise: T) -> T:
    """Do what adds to an answer; a fault in it becomes a note and never prevents the answer."""
    try:
        return action()
    except Exception as fault:  # noqa: BLE001 - any bug, by intent
        gathered.notes.append(f"{fault_words}: {type(fault).__name__}: {fault}")
        return otherwise


def concluded(gathered: Gathered, book: FactBook, ruleset: RuleSet) -> Diagnosis:
    """Return what the rules come to on a book of what was gathered."""
    understood = _understood(gathered, book)
    diagnosis = conclude(
        book,
        ruleset=ruleset,
        failures=gathered.failures,
        readings=gathered.readings,
        artifacts=gathered.artifacts,
        notes=gathered.notes,
        sources=derived_sources(),
        logs=gathered.logs,
    )
    diagnosis = replace(diagnosis, understood=understood)
    return _adding(gathered, "no peak", lambda: _with_peaks(diagnosis, gathered, book), diagnosis)


def _with_peaks(diagnosis: Diagnosis, gathered: Gathered, book: FactBook) -> Diagnosis:
    """Say of each fix whether the job fits afterwards, where its configs describe it."""
    if not gathered.readings or not any(one.patches for one in diagnosis.prescriptions):
        return diagnosis
    if diagnosis.resource not in ("gpu", "cap"):
        return diagnosis
    from oomdoctor.reason.after import with_verdicts

    return replace(diagnosis, prescriptions=with_verdicts(diagnosis.prescriptions, book))


def _understood(gathered: Gathered, book: FactBook) -> tuple[UnderstoodRow, ...]:
    """Return the job as its configs tell it; nothing where none was given."""
    if not gathered.readings:
        return ()
    from oomdoctor.facts import derive_lint
    from oomdoctor.reason.understood import understood

    words = "the job was not summed up"
    return _adding(gathered, words, lambda: understood(derive_lint.derive(book)), ())


def derived_sources() -> Mapping[str, Sequence[str]]:
    """Return for each derived fact the facts it is derived from."""
    from oomdoctor.facts import derive

    return {step.key: step.reads for step in derive.STEPS}


def _own_facts(failure: Failure) -> tuple[Fact, ...]:
    """Return the facts of the primary failure; each is quoted at least by its first line."""
    return tuple(
        fact if fact.quotes else replace(fact, quotes=(failure.line_quote,))
        for fact in failure.facts
    )


def _read_all(
    items: Sequence[Item],
    *,
    stdin: BinaryIO | None,
    notes: list[str],
    progress: Progress | None = None,
) -> list[FileReading]:
    """Read every item, large ones side by side."""
    most_text = LINES_OF_MANY if len(items) > MANY_LOGS else 0
    outcomes = _side_by_side(items, most_text, progress)
    readings: list[FileReading] = []
    faults: list[InputError] = []
    for item in items:
        if item.path is None:
            label = _label("<text>", sum(one.artifact.path is None for one in readings))
            readings.append(read_one(source_of_text(item.text, name=label), most_text=most_text))
            continue
        outcome = outcomes.get(item.path) or _outcome(item.path, stdin, most_text, progress)
        if isinstance(outcome, InputError):
            _check_there(item.path, outcome)
            faults.append(outcome)
        else:
            readings.append(outcome)
    _tell(faults, readings, notes, needed=True)
    return readings


def _side_by_side(
    items: Sequence[Item], most_text: int, progress: Progress | None
) -> Mapping[str, FileReading | InputError]:
    files = sorted((item for item in items if item.size), key=lambda item: -item.size)
    if len(files) < 2 or sum(item.size for item in files) < LARGE_BYTES:
        return {}
    from oomdoctor.side_by_side import read_side_by_side

    sizes = {item.path or "": item.size for item in files}
    return read_side_by_side(sizes, most_text=most_text, progress=progress)


def _outcome(
    path: str, stdin: BinaryIO | None, most_text: int, progress: Progress | None
) -> FileReading | InputError:
    try:
        return read_path(path, stdin=stdin, most_text=most_text, progress=progress)
    except InputError as fault:
        return fault


def _configs(
    given: str | Sequence[str], *, stdin: BinaryIO | None, notes: list[str], needed: bool
) -> list[Source]:
    """Read the configs that were named as such."""
    sources: list[Source] = []
    faults: list[InputError] = []
    for item in items_of(given, notes):
        if item.path is None:
            label = _label("<config>", sum(one.artifact.path is None for one in sources))
            sources.append(source_of_text(item.text, name=label))
            continue
        try:
            sources.append(read_source(item.path, stdin=stdin))
        except InputError as fault:
            _check_there(item.path, fault)
            faults.append(fault)
    _tell(faults, sources, notes, needed=needed)
    return sources


def _label(name: str, number: int) -> str:
    return name if number == 0 else f"{name[:-1]}-{number + 1}>"


def _check_there(path: str, fault: InputError) -> None:
    """Raise the fault of a path that is not there: a mistake in any case."""
    if path != "-" and not os.path.lexists(path):
        raise fault


def _tell(
    faults: Sequence[InputError], found: Sequence[object], notes: list[str], *, needed: bool
) -> None:
    """Note what cannot be read, as long as something else can be or nothing is `needed`."""
    if needed and faults and not found:
        raise faults[0]
    notes += (f"left out: {fault}" for fault in faults)
