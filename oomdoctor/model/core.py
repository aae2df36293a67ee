"""Values of the light path: where text came from, what it says, and what a rule made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.model.enums import Kind, Maturity, Origin, Severity, Truth
from oomdoctor.record import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = bool | int | float | str
"""bytes and count are int, ratio and seconds float, enum, text and version str."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One input: a file, standard input, or a command's answer.

    `id` is what quotes name it by (the path as given, or `<stdin>`); `kind` is what `sniff` took
    it for: log, config, process-table, memory-summary, ...
    """

    id: str
    kind: str
    path: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A piece of an input, word for word; lines and columns are 1-based, end_column exclusive."""

    artifact: str
    line: int
    text: str
    column: int = 1
    end_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSpec:
    """A row of the registry: what a fact means, its kind, and how a person can obtain it.

    `obtain` is an exact command or a one-sentence action, `cost_s` what it takes in seconds.
    `closed_by` lists artifact kinds that make the fact's absence meaningful (a key that is missing
    in a parsed config is absent, a line that is missing in a log is unknown).
    """

    key: str
    kind: Kind
    doc: str
    choices: tuple[str, ...] = ()
    obtain: str | None = None
    cost_s: float = 30.0
    closed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value for a key, with its origin, half width of rounding and the places that say so.

    For a text of several lines `quotes` may hold one quote per line of the value, in order, so that
    a pattern's match can be shown where it stands. `source` says in words where a value that no
    quote shows comes from ("default of transformers 4.46", "total - free - reserved"). `rests_on`
    are the keys of the assumed facts that an assumed one was derived from; none where it is itself
    what was assumed.
    """

    key: str
    value: Value
    origin: Origin = Origin.STATED
    slack: float = 0
    quotes: tuple[Quote, ...] = ()
    source: str | None = None
    rests_on: tuple[str, ...] = ()


class LogLine(NamedTuple):
    """One logical line of a log, cleaned of ANSI, prefixes and time stamps.

    `number` is the physical line (split at line feeds only), `text` the cleaned text, `raw` what
    the file holds, `rank` the process rank if a prefix named one, `stream` the writer (prefix text
    such as `rank3` or `Actor pid=7`) by which interleaved output is taken apart, `stamp` the time
    stamp text that was stripped.
    """

    number: int
    text: str
    raw: str
    rank: int | None = None
    stream: str = ""
    stamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of one artifact as cleaned lines; `notes` tells what was cut or replaced."""

    artifact: Artifact
    lines: tuple[LogLine, ...]
    notes: tuple[str, ...] = ()

    def quote(self, line: LogLine, start: int = 0, end: int | None = None) -> Quote:
        """Quote a line, or the part `start:end` of its cleaned text where that can be found raw."""
        part = line.text[start:end]
        at = line.raw.find(part) if part else -1
        if at < 0:
            return Quote(artifact=self.artifact.id, line=line.number, text=line.raw.strip("\r\n"))
        return Quote(
            artifact=self.artifact.id,
            line=line.number,
            text=part,
            column=at + 1,
            end_column=at + 1 + len(part),
        )


MEMORY_KINDS = frozenset({"gpu-oom", "host-oom", "shm"})
"""Kinds of failures that are a shortage of memory, whosever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failure event in a log, with the facts that belong to it alone.

    `kind`: gpu-oom, host-oom, shm, assert, illegal-access, collective, other. `order` is the place
    in the input (physical line), `rank` the process rank where it is known, `line_quote` the line
    that announces it. `consequence` is True for failures that follow from another one.

    `near` is the stamp of the nearest stamped line before it where it has none of its own, `when`
    its time on the clock that all inputs share, `node` the machine where that tells two ranks of
    one number apart, `blamed` says that the launcher names it as the first to fail. `indirect` is
    one that no message announces: a counter, a plan, a table of trials, or a person tells of it.
    """

    kind: str
    order: int
    line_quote: Quote
    facts: tuple[Fact, ...] = ()
    rank: int | None = None
    stamp: str | None = None
    consequence: bool = False
    near: str | None = None
    when: float | None = None
    node: str | None = None
    blamed: bool = False
    indirect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one reader found in one document: facts of the whole input, and failure events."""

    facts: tuple[Fact, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a condition came to: its truth, the facts it read, those that could still change it.

    `quotes` are the places that made it so: of the facts it read, or of the line a pattern hit.
    """

    truth: Truth
    read: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One line of the "why" table: an evidence line, its verdict, and what it adds in nats.

    `counted` is False where a stronger line of the same group already speaks.
    """

    label: str
    verdict: Verdict
    nats: float
    group: str | None = None
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that was not ruled out: how probable, what it explains, why and why not.

    `says` is the rule's verdict sentence filled with facts; without one the title speaks.
    """

    code: str
    cause: str
    title: str
    severity: Severity
    maturity: Maturity
    probability: float
    gate: Verdict
    weights: tuple[Weight, ...] = ()
    explains_bytes: int | None = None
    quotes: tuple[Quote, ...] = ()
    against: tuple[Quote, ...] = ()
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    other_codes: tuple[str, ...] = ()
    says: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFault:
    """A rule that could not be used, and why; the other rules go on."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two sources that disagree about one fact beyond their rounding; the first one won."""

    key: str
    kept: Fact
    dropped: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What evaluating all rules on a book gave: findings before ranking, faults, and silence."""

    gates: Mapping[str, Verdict] = field(default_factory=dict)
    faults: tuple[RuleFault, ...] = ()
