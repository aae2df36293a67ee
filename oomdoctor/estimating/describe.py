"""From what was asked to the job: configs read once, flags on top, changes on top of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.estimating.book import Configs, book_of, disagreements, read_configs
from oomdoctor.estimating.cards import cards_of
from oomdoctor.estimating.flags import changes_of, facts_of_changes, replaced_by
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Fact
    from oomdoctor.model.job import CardSpec, Job
    from oomdoctor.model.serving import ServingSpec


class Described(NamedTuple):
    """A job, its facts, what was assumed for it, and how it is served if it is a server."""

    job: Job
    book: FactBook
    assumptions: tuple[str, ...]
    serving: ServingSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where jobs come from: configs and what a person states; `flags` are names of those given."""

    configs: Configs
    given: tuple[Fact, ...] = ()
    flags: tuple[str, ...] = ()

    def book(self) -> FactBook:
        """Return what is stated and read, before anything follows from it."""
        return book_of(self.configs, self.given, replaced=replaced_by(self.flags))

    def described(self, changes: str | None = None) -> Described:
        """Return the job, with `changes` of a what-if; UsageError names what is missing."""
        named = {} if changes is None else changes_of(changes)
        return self.with_facts(facts_of_changes(named), flags=tuple(named))

    def with_facts(self, changed: Sequence[Fact], *, flags: Sequence[str] = ()) -> Described:
        """Return the job with facts that outrank what else is stated."""
        _check(changed)
        keys = {fact.key for fact in changed}
        gone = replaced_by(flags)
        given = [fact for fact in self.given if fact.key not in keys and not _starts(fact, gone)]
        replaced = (*replaced_by(self.flags), *gone, *keys)
        made = job_of_book(book_of(self.configs, [*changed, *given], replaced=replaced))
        told = tuple(note for one in self.configs.readings for note in _named(one))
        return made._replace(assumptions=(*told, *made.assumptions))


def _named(reading: ConfigReading) -> Iterator[str]:
    """Yield what a reader of a config noted, with the name of the file."""
    for note in reading.notes:
        yield f"{reading.source_id}, {note}"


def _starts(fact: Fact, starts: tuple[str, ...]) -> bool:
    return bool(starts) and fact.key.startswith(starts)


def _check(stated: Sequence[Fact]) -> None:
    """Refuse numbers that no job has, which a default would stand in for."""
    from oomdoctor.memory.jobs_check import fault_of_stated

    for fact in stated:
        fault = fault_of_stated(fact)
        if fault is not None:
            raise UsageError(f"there is no such job: {fault}")


def source_of(
    paths: Sequence[str],
    *,
    given: Sequence[Fact] = (),
    flags: Sequence[str] = (),
    stdin: BinaryIO | None = None,
) -> Source:
    """Read the configs of a job."""
    _check(given)
    configs = read_configs(paths, stdin=stdin)
    return Source(configs=configs, given=tuple(given), flags=tuple(flags))


def job_of_book(book: FactBook) -> Described:
    """Return the job that a book describes; UsageError says what it lacks."""
    from oomdoctor.memory.jobs import completed, job_of_completed
    from oomdoctor.memory.jobs_task import with_framework
    from oomdoctor.memory.serving_names import engine_of, named

    book = with_framework(named(book))
    full = completed(book)
    engine = engine_of(full)
    if engine is not None:
        from oomdoctor.memory.serving_spec import serving_of

        server = serving_of(full, engine)
        if server.spec is None or server.missing:
            raise _unknown(server.missing)
        _check_width(server.spec.job)
        said = (*disagreements(book), *server.assumptions)
        return Described(server.spec.job, book, said, server.spec)
    reading = job_of_completed(full, supposes=True)
    if reading.job is None:
        raise _unknown(reading.missing)
    return Described(reading.job, book, (*disagreements(book), *reading.assumptions))


def _check_width(job: Job) -> None:
    """Refuse to count for a server a network whose own config names no width."""
    from oomdoctor.memory.formula_shape import shape_of

    if job.model.source == "config.json" and shape_of(job.model.config).hidden <= 1:
        raise _unknown((f"the width of the layers of {job.model.name}, which its config lacks",))


def _unknown(missing: Sequence[str]) -> UsageError:
    lacking = "; ".join(missing) or "nothing says what is trained or run"
    return UsageError(
        f"the job is not known well enough: {lacking}",
        hint="give a config, --model NAME or config.json, or --fact KEY=VALUE",
    )


def cards_asked(names: Sequence[str], book: FactBook) -> tuple[CardSpec, ...]:
    """Return the cards of --gpu, else the one that the configs name; none where neither does."""
    if names:
        return cards_of(names)
    name, total = book.value("gpu.name"), book.value("gpu.total") or book.value("oom.capacity")
    if isinstance(name, str):
        try:
            return cards_of([name])
        except UsageError:
            pass
    return cards_of([f"{total} B"]) if isinstance(total, int) else ()


def settings_of(book: FactBook) -> str:
    """Return the allocator's settings that a job's configs make, as the text of the variable."""
    found = []
    for key, name, write in _SETTINGS:
        value = book.value(key)
        if value is not None:
            found.append(f"{name}:{write(value)}")
    return ",".join(found)


def _mib(value: object) -> str:
    return str(int(value) >> 20) if isinstance(value, (int, float)) else str(value)


_SETTINGS = (
    ("alloc.expandable_segments", "expandable_segments", str),
    ("alloc.max_split_size", "max_split_size_mb", _mib),
    ("alloc.gc_threshold", "garbage_collection_threshold", str),
    ("alloc.fraction", "per_process_memory_fraction", str),
)
