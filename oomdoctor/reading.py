"""One input, read to the end: its facts and failures, or the config that it is.

What comes out can be sent between processes, so that large inputs are read side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.log_view import LogView, view_of, with_near_stamps
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.source import read_source
from oomdoctor.model.core import MEMORY_KINDS, Reading
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from typing import BinaryIO

    from oomdoctor.evidence.source import Progress, Source
    from oomdoctor.model.core import Artifact, Fact

CONFIG_KINDS = frozenset({"config", "script"})
_OF_TABLES = frozenset(("gpu.cards", "gpu.process_rows", "gpu.process_table_empty"))
"""What only the table of a tool tells: whatever code stands around it, it is no config."""
# A name with such an end settles that the text is what it looks like.
_SETTLED = (".py", ".ipynb", ".sh", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What one input gave: a log's reading and its place, or (`config` is set) a config's text."""

    artifact: Artifact
    reading: Reading
    view: LogView
    notes: tuple[str, ...] = ()
    config: Source | None = None


def read_path(
    path: str,
    *,
    stdin: BinaryIO | None = None,
    most_text: int = 0,
    progress: Progress | None = None,
) -> FileReading:
    """Read one path; InputError where it cannot be read."""
    return read_one(read_source(path, stdin=stdin, progress=progress), most_text=most_text)


def read_one(source: Source, *, most_text: int = 0) -> FileReading:
    """Read one input; of a log without a memory failure at most `most_text` lines are kept."""
    kind = source.artifact.kind
    looks = kind in CONFIG_KINDS
    name = source.artifact.id
    if looks and name.lower().endswith(_SETTLED):
        return config_reading(source, kind=kind)
    source = replace(source, artifact=replace(source.artifact, kind="log" if looks else kind))
    document = clean(source)
    reading = read_all(document)
    tables = any(fact.key in _OF_TABLES for fact in reading.facts)
    if looks and not (reading.failures or tables):
        return config_reading(source, kind=kind)
    ordered = sorted(reading.failures, key=lambda failure: failure.order)
    failures = with_near_stamps(document, ordered)
    facts = reading.facts
    if most_text and not any(failure.kind in MEMORY_KINDS for failure in failures):
        facts = tuple(_shortened(fact, most_text) for fact in facts)
    return FileReading(
        artifact=source.artifact,
        reading=replace(reading, facts=facts, failures=failures, notes=()),
        view=view_of(document),
        notes=(*source.notes, *document.notes, *reading.notes),
    )


def config_reading(source: Source, *, kind: str) -> FileReading:
    """Return an input that is a config; configs/reader reads it later, beside the others."""
    artifact = replace(source.artifact, kind=kind)
    return FileReading(
        artifact=artifact,
        reading=Reading(),
        view=LogView(artifact=artifact.id),
        notes=source.notes,
        config=replace(source, artifact=artifact),
    )


def _shortened(fact: Fact, most: int) -> Fact:
    """Keep the last lines of a text with one quote per line."""
    if fact.key != "log.text" or len(fact.quotes) <= most:
        return fact
    lines = str(fact.value).split("\n")
    if len(lines) != len(fact.quotes):
        return fact
    return replace(fact, value="\n".join(lines[-most:]), quotes=fact.quotes[-most:])


def announced(logs: list[FileReading]) -> list[FileReading]:
    """Leave out what only a counter or a table tells, where a message announces a failure."""
    told = [failure.indirect for one in logs for failure in one.reading.failures]
    if all(told) or not any(told):
        return logs
    kept = []
    for one in logs:
        failures = tuple(failure for failure in one.reading.failures if not failure.indirect)
        kept.append(replace(one, reading=replace(one.reading, failures=failures)))
    return kept
