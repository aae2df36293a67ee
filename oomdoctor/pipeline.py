"""From inputs to a diagnosis: reads logs, tables and configs, then asks the rules."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

from oomdoctor.errors import InputError, Location
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.sniff import kind_of
from oomdoctor.evidence.source import read_source, source_of_text
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.given import parse_given
from oomdoctor.reason.conclude import conclude
from oomdoctor.reason.timeline import first_failure, timeline_facts
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.evidence.source import Source
    from oomdoctor.model.core import Artifact, Fact, Failure, Quote
    from oomdoctor.model.plan import Diagnosis

_LONGEST_PATH = 4096
CONFIG_KINDS = frozenset({"config", "script"})
# Texts that every input adds to; all other facts have one best source.
_SETTLED = (".py", ".ipynb", ".sh", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf")
_JOINED = ("log.text", "job.text")


class Gathered:
    """Everything that the inputs gave, in input order; filled by `gather`."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.facts: list[Fact] = []
        self.config_facts: list[Fact] = []
        self.failures: list[Failure] = []
        self.readings: list[ConfigReading] = []
        self.artifacts: list[Artifact] = []
        self.closes: set[str] = set()
        self.notes: list[str] = []


def diagnose(
    inputs: str | Sequence[str],
    *,
    config: str | Mapping[str, object] | Sequence[str] | None = None,
    facts: Sequence[str] = (),
    rules: Sequence[str] = (),
    preview: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    stdin: BinaryIO | None = None,
) -> Diagnosis:
    """Diagnose logs, tables and configs.

    `inputs` is a path, several paths, "-" for standard input, or the text itself; `config` a path,
    several paths, the text or a mapping. `facts` are "KEY=VALUE" strings that outrank everything
    read, `rules` are directories with further rules, `preview` lets sandbox rules speak.
    `select` and `ignore` are starts of codes: of the rules that may speak, and that may not.
    """
    from oomdoctor.rules.loader import load_rules
    from oomdoctor.rules.selection import selected

    given = parse_given(facts)
    gathered = gather(inputs, config=config, stdin=stdin)
    ruleset = load_rules(tuple(rules), preview=preview)
    ruleset = selected(ruleset, select=select, ignore=ignore)
    book = assemble(gathered, given)
    return conclude(
        book,
        ruleset=ruleset,
        failures=gathered.failures,
        readings=gathered.readings,
        artifacts=gathered.artifacts,
        notes=gathered.notes,
        sources=derived_sources(),
    )


def gather(
    inputs: str | Sequence[str],
    *,
    config: str | Mapping[str, object] | Sequence[str] | None = None,
    stdin: BinaryIO | None = None,
) -> Gathered:
    """Read all inputs and configs; what cannot be understood becomes a note."""
    gathered = Gathered()
    for source in _sources(inputs, name="<text>", stdin=stdin, notes=gathered.notes):
        kind = kind_of(source)
        if kind in CONFIG_KINDS and not _hides_failure(source):
            _add_config(gathered, source, kind=kind)
        else:
            _add_log(gathered, source, kind="log" if kind in CONFIG_KINDS else kind)
    if isinstance(config, Mapping):
        config = json.dumps(config, indent=1, default=str) + "\n"
    needed = not gathered.artifacts
    for source in _sources(
        config or (), name="<config>", stdin=stdin, notes=gathered.notes, needed=needed
    ):
        _add_config(gathered, source, kind="config")
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
    book = book.add(_join_texts([*gathered.facts, *gathered.config_facts]), closes=gathered.closes)
    book = book.add(timeline_facts(gathered.failures, first))
    book = derive(book.add(assumed(book)))
    try:
        return physics.derive(book)
    except Exception as fault:  # noqa: BLE001 - physics adds to an answer and never prevents it
        gathered.notes.append(f"sizes were not derived: {type(fault).__name__}: {fault}")
        return book


def derived_sources() -> Mapping[str, Sequence[str]]:
    """Return for each derived fact the facts it is derived from."""
    from oomdoctor.facts import derive

    return {step.key: step.reads for step in derive.STEPS}


def _hides_failure(source: Source) -> bool:
    """Say whether a nameless text that looks like code or settings holds a failure all the same.

    A short traceback without its header is mostly lines of Python; a file's name settles it.
    """
    if source.artifact.id.lower().endswith(_SETTLED):
        return False
    return bool(read_all(clean(source)).failures)


def _add_log(gathered: Gathered, source: Source, *, kind: str) -> None:
    source = replace(source, artifact=replace(source.artifact, kind=kind))
    document = clean(source)
    reading = read_all(document)
    gathered.artifacts.append(source.artifact)
    gathered.facts += reading.facts
    gathered.failures += sorted(reading.failures, key=lambda failure: failure.order)
    gathered.closes |= set(reading.closes)
    gathered.notes += [*source.notes, *document.notes, *reading.notes]


def _add_config(gathered: Gathered, source: Source, *, kind: str) -> None:
    from oomdoctor.configs.reader import read_config

    artifact = replace(source.artifact, kind=kind)
    gathered.artifacts.append(artifact)
    gathered.notes += source.notes
    try:
        readings = read_config(source.text, name=artifact.id, path=artifact.path)
    except InputError as fault:
        gathered.notes.append(f"config left out: {fault}")
        return
    for reading in readings:
        gathered.readings.append(reading)
        gathered.config_facts += reading.facts
        gathered.closes |= set(reading.closes)
        gathered.notes += (f"{artifact.id}: {note}" for note in reading.notes)


def _own_facts(failure: Failure) -> tuple[Fact, ...]:
    """Return the facts of the primary failure; each is quoted at least by its first line."""
    return tuple(
        fact if fact.quotes else replace(fact, quotes=(failure.line_quote,))
        for fact in failure.facts
    )


def _join_texts(facts: Sequence[Fact]) -> list[Fact]:
    """Join the whole-text facts of several inputs into one, with one quote per line."""
    joined: dict[str, Fact] = {}
    others: list[Fact] = []
    for fact in facts:
        if fact.key not in _JOINED:
            others.append(fact)
            continue
        held = joined.get(fact.key)
        joined[fact.key] = fact if held is None else _joined(held, fact)
    return [*others, *joined.values()]


def _joined(one: Fact, other: Fact) -> Fact:
    value = f"{one.value}\n{other.value}"
    quotes: tuple[Quote, ...] = (*one.quotes, *other.quotes)
    aligned = len(quotes) == value.count("\n") + 1
    return replace(one, value=value, quotes=quotes if aligned else ())


def _sources(
    given: str | Sequence[str],
    *,
    name: str,
    stdin: BinaryIO | None,
    notes: list[str],
    needed: bool = True,
) -> list[Source]:
    """Read every item: a text as it stands, a directory file by file, anything else as a path.

    What cannot be read is noted as long as something else can be, or nothing is `needed`; a path
    that is not there is a mistake in any case.
    """
    items = [given] if isinstance(given, str) else list(given)
    sources: list[Source] = []
    faults: list[InputError] = []
    for item in items:
        if is_text(item):
            number = sum(one.artifact.path is None for one in sources)
            label = name if number == 0 else f"{name[:-1]}-{number + 1}>"
            sources.append(source_of_text(item, name=label))
            continue
        for path in _once(_files(item), sources, notes):
            sources += _read(path, stdin, faults)
    if needed and faults and not sources:
        raise faults[0]
    notes += (f"left out: {fault}" for fault in faults)
    return sources


def _read(path: str, stdin: BinaryIO | None, faults: list[InputError]) -> list[Source]:
    """Read one path; what is there but cannot be read goes to `faults`."""
    try:
        return [read_source(path, stdin=stdin)]
    except InputError as fault:
        if path != "-" and not os.path.lexists(path):
            raise
        faults.append(fault)
        return []


def _files(item: str) -> list[str]:
    """Return a path as it is, or the files of a directory that have something in them."""
    if item == "-" or not os.path.isdir(item):
        return [item]
    try:
        with os.scandir(item) as entries:
            paths = sorted(entry.path for entry in entries if _has_text(entry))
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror}", location=Location(path=item)
        ) from None
    if not paths:
        raise InputError(f"no readable file in {item}", hint="give the log file itself")
    return paths


def _has_text(entry: os.DirEntry[str]) -> bool:
    """Say whether a directory's entry is a file; those of size 0 are empty, or may never end."""
    try:
        return not entry.name.startswith(".") and entry.is_file() and entry.stat().st_size > 0
    except OSError:
        return False


def _once(paths: Sequence[str], held: Sequence[Source], notes: list[str]) -> Iterator[str]:
    """Yield the paths that have not been read yet: a log read twice would fail twice."""
    known = {os.path.realpath(one.artifact.path) for one in held if one.artifact.path}
    for path in paths:
        if path != "-" and os.path.realpath(path) in known:
            notes.append(f"{path}: given twice, read once")
        else:
            yield path


def is_text(item: str) -> bool:
    """Say whether a string is the text itself: longer than a path, line feeds, or words; no file.

    A name with a line feed in it is a path where such a file is.
    """
    if item == "-" or not item.strip():
        return item != "-"
    if len(item) > _LONGEST_PATH:
        return True
    try:
        if os.path.lexists(item):
            return False
    except (OSError, ValueError):
        return True
    return "\n" in item or item.count(" ") >= 3 or ": " in item
