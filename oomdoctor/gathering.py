"""What many inputs come to: ranks, machines and times of their failures, and whose facts count.

The input of the first failure speaks first, then what belongs to no rank (kernel, job manager,
tables), then the other ranks; of these only what holds for the whole job. The order in which the
inputs were given changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.inputs import natural
from oomdoctor.reading import announced
from oomdoctor.reason.file_names import rotation_of
from oomdoctor.reason.timeline import first_failure, in_time, mark_consequences
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.model.core import Artifact, Fact, Failure
    from oomdoctor.reading import FileReading
    from oomdoctor.reason.clock import Clock
    from oomdoctor.reason.places import Place
    from oomdoctor.reason.roll_call import RankLog

# Texts that every input adds to; all other facts have one best source.
JOINED = ("log.text", "job.text", "job.settings", "job.calls", "job.open")
MOST_LINES = 4000
MOST_CHARS = 512 * 1024
_LEAST_LINES = 60
_APART_S = 600
_OF_THE_JOB = (
    *("env.", "model.", "train.", "data.", "dist.", "lora.", "quant.", "optimizer.", "alloc.conf"),
    *("attention.", "serve.", "eval.", "job.", "compile.", "save.", "loss.", "ref.", "gen."),
    *("gpu.name", "gpu.total", "gpu.driver", "gpu.cuda", "gpu.count", "host.ram_total"),
)
"""Starts of the keys that hold for all ranks; `host.` and `gpu.` otherwise speak of one machine."""


class Gathered:
    """Everything that the inputs gave; filled by `gather`."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.facts: list[Fact] = []
        self.config_facts: list[Fact] = []
        self.failures: list[Failure] = []
        self.readings: list[ConfigReading] = []
        self.artifacts: list[Artifact] = []
        self.logs: list[RankLog] = []
        self.closes: set[str] = set()
        self.notes: list[str] = []


def add_inputs(gathered: Gathered, inputs: Sequence[FileReading]) -> None:
    """Add all inputs, whatever order they were given in."""
    ordered = sorted(inputs, key=_place_in_order)
    logs = announced([one for one in ordered if one.config is None])
    for one in inputs:
        gathered.artifacts.append(one.artifact)
    for one in ordered:
        gathered.notes += one.notes
        gathered.closes |= set(one.reading.closes)
        if one.config is not None:
            add_config(gathered, one)
    if len(logs) > 1:
        logs = _joined(gathered, logs)
    elif logs:
        gathered.logs = _rank_logs(logs, {})
    gathered.failures += [failure for one in logs for failure in one.reading.failures]
    gathered.facts += _facts_of(gathered, logs)


def add_config(gathered: Gathered, given: FileReading) -> None:
    """Add an input that is a config; what cannot be understood becomes a note."""
    from oomdoctor.configs.reader import read_config

    source = given.config
    if source is None:
        return
    artifact = source.artifact
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


def _place_in_order(one: FileReading) -> tuple[object, ...]:
    name = one.artifact.id
    return (natural(name.rpartition("/")[0]), -rotation_of(name), natural(name))


def _joined(gathered: Gathered, logs: Sequence[FileReading]) -> list[FileReading]:
    """Give the failures of several logs their rank, machine and time."""
    from oomdoctor.reason.clock import Clock, Told
    from oomdoctor.reason.places import places_of

    views = {one.artifact.id: one.view for one in logs}
    clock = Clock({name: Told(view.stamps, view.boots) for name, view in views.items()})
    places = places_of(list(views.values()))
    blamed = {entry.rank for view in views.values() for entry in view.blamed if entry.root}
    joined = [_placed(one, places[one.artifact.id], clock, blamed) for one in logs]
    gathered.logs = _rank_logs(joined, places)
    gathered.notes += clock.notes
    gathered.notes += _notes_on_ranks(places, joined)
    gathered.notes += _notes_on_time(joined, clock)
    return joined


def _placed(one: FileReading, place: Place, clock: Clock, blamed: set[int]) -> FileReading:
    failures = []
    for failure in one.reading.failures:
        rank = failure.rank if failure.rank is not None else place.rank
        failures.append(
            replace(
                failure,
                rank=rank,
                node=place.node if rank is not None else None,
                when=clock.when(one.artifact.id, failure.stamp or failure.near),
                blamed=rank is not None and rank in blamed,
            )
        )
    return replace(one, reading=replace(one.reading, failures=tuple(failures)))


def _rank_logs(logs: Sequence[FileReading], places: Mapping[str, Place]) -> list[RankLog]:
    from oomdoctor.reason.roll_call import RankLog

    found = []
    for one in logs:
        view, place = one.view, places.get(one.artifact.id)
        found.append(
            RankLog(
                artifact=one.artifact.id,
                rank=place.rank if place else None,
                node=place.node if place else None,
                by=place.by if place else "",
                ending=view.ending,
                last_stamp=view.last_stamp,
                world=view.world,
                blamed=view.blamed,
            )
        )
    return found


def _notes_on_ranks(places: Mapping[str, Place], logs: Sequence[FileReading]) -> list[str]:
    """Say how the ranks of the logs were found."""
    ways: dict[str, list[str]] = {}
    for one in logs:
        place = places[one.artifact.id]
        if place.rank is not None:
            ways.setdefault(place.by, []).append(f"{one.artifact.id} is rank {place.rank}")
    return [
        f"{named[0]}: {how}" + (f" (so for {len(named)} inputs)" if len(named) > 1 else "")
        for how, named in ways.items()
    ]


def _notes_on_time(logs: Sequence[FileReading], clock: Clock) -> list[str]:
    """Say which inputs have no time to compare, and which tables were made at another time."""
    failures = [failure for one in logs for failure in one.reading.failures]
    first = first_failure(failures)
    notes = []
    untimed = [
        one.artifact.id
        for one in logs
        if one.reading.failures and all(one.when is None for one in one.reading.failures)
    ]
    if untimed and len({failure.line_quote.artifact for failure in failures}) > 1:
        more = f" and {len(untimed) - 3} more" if len(untimed) > 3 else ""
        listed = ", ".join(untimed[:3])
        notes.append(f"order unknown: no time stamp compares with the others' in {listed}{more}")
    for one in logs:
        taken = one.view.taken
        when = clock.time_of(one.artifact.id, taken) if taken is not None else None
        if when is None or first is None or first.when is None:
            continue
        apart = when - first.when
        if abs(apart) > _APART_S:
            side = "after" if apart > 0 else "before"
            minutes = round(abs(apart) / 60)
            notes.append(f"{one.artifact.id}: taken {minutes} minutes {side} the first failure")
    return notes


def _facts_of(gathered: Gathered, logs: Sequence[FileReading]) -> list[Fact]:
    """Return the facts of all logs, those of the first failure's input first."""
    if len(logs) < 2:
        return [fact for one in logs for fact in one.reading.facts]
    first = first_failure(gathered.failures)
    lead = first.line_quote.artifact if first else ""
    echoes = {
        (quote.artifact, quote.line)
        for failure in mark_consequences(in_time(gathered.failures))
        if failure.consequence
        for quote in (failure.line_quote, *(q for fact in failure.facts for q in fact.quotes))
    }
    places = {log.artifact: (log.node, log.rank) for log in gathered.logs}
    own = places.get(lead, (None, None))
    own = (first.node, first.rank) if first is not None and first.rank is not None else own
    ranked = [log for log in gathered.logs if log.rank is not None]
    if own[1] is None and ranked and not lead:
        own = (ranked[0].node, ranked[0].rank)
    ordered = sorted(logs, key=lambda one: _nearness(one, lead, own, places))
    moment = _moment_keys(logs, lead, first)
    facts: list[Fact] = []
    for one in ordered:
        place = places[one.artifact.id]
        peer = one.artifact.id != lead and place[1] is not None and place != own
        facts += [
            fact
            for fact in one.reading.facts
            if (not peer or fact.key in JOINED or fact.key.startswith(_OF_THE_JOB))
            and not _only_echoes(fact, echoes, lead)
            and not (fact.key in moment and one.artifact.id != lead)
        ]
    return joined_texts(facts)


def _moment_keys(logs: Sequence[FileReading], lead: str, first: Failure | None) -> set[str]:
    """Return what the first failure's input says of its moment; others speak of another one."""
    said = {fact.key for fact in first.facts} if first is not None else set()
    for one in logs:
        if one.artifact.id == lead:
            said |= {fact.key for fact in one.reading.facts}
    return {key for key in said if key.startswith(("run.", "trace."))}


def _nearness(
    one: FileReading,
    lead: str,
    own: tuple[str | None, int | None],
    places: Mapping[str, tuple[str | None, int | None]],
) -> int:
    if one.artifact.id == lead:
        return 0
    place = places[one.artifact.id]
    if place[1] is None:
        return 2
    return 1 if place == own else 3


def _only_echoes(fact: Fact, echoes: set[tuple[str, int]], lead: str) -> bool:
    """Say whether only lines that follow from another input's failure state a fact."""
    if fact.key in JOINED or not fact.quotes or fact.quotes[0].artifact == lead:
        return False
    return all((quote.artifact, quote.line) in echoes for quote in fact.quotes)


def joined_texts(facts: Sequence[Fact]) -> list[Fact]:
    """Join the whole-text facts of several inputs into one, with one quote per line."""
    texts: dict[str, list[Fact]] = {}
    others: list[Fact] = []
    for fact in facts:
        if fact.key in JOINED:
            texts.setdefault(fact.key, []).append(fact)
        else:
            others.append(fact)
    return [*others, *(_one_text(parts) for parts in texts.values())]


def _one_text(parts: Sequence[Fact]) -> Fact:
    """Join texts, the first one whole; of many others the last lines of each."""
    lines_left = MOST_LINES - str(parts[0].value).count("\n")
    chars_left = MOST_CHARS - len(str(parts[0].value))
    values = [str(parts[0].value)]
    quotes = list(parts[0].quotes)
    for at, part in enumerate(parts[1:], start=1):
        share = max(_LEAST_LINES, lines_left // (len(parts) - at))
        lines = str(part.value).split("\n")
        kept = lines[-share:]
        while len(kept) > 1 and sum(map(len, kept)) > max(chars_left, 4096):
            kept = kept[len(kept) // 2 :]
        aligned = len(part.quotes) == len(lines)
        quotes += part.quotes[-len(kept) :] if aligned else part.quotes
        values.append("\n".join(kept))
        lines_left -= len(kept)
        chars_left -= len(values[-1])
    value = "\n".join(values)
    whole = len(quotes) == value.count("\n") + 1
    return replace(parts[0], value=value, quotes=tuple(quotes) if whole else ())
