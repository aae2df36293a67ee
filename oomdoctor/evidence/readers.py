"""All readers on one document: facts of the whole input, and failures with their stacks.

Each module of `READERS` has `ANCHORS`, lower-case literals of which one must occur, and
`read(document) -> Reading`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from oomdoctor.evidence.attach import attached, locate
from oomdoctor.evidence.crash_signs import crash_failures
from oomdoctor.evidence.doors import DOORS
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.phase_text import phase_before
from oomdoctor.evidence.progress import progress_facts
from oomdoctor.evidence.python_traceback import facts_of, stacks
from oomdoctor.evidence.wrapped import opens
from oomdoctor.model.core import Fact, Failure, Reading
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.evidence.stacks import Stack
    from oomdoctor.model.core import Document

READERS: tuple[str, ...] = (
    "torch_oom",
    "torch_lookalikes",
    "kernel_kill",
    "job_accounts",
    "containers",
    "host_signs",
    "host_tables",
    "host_use",
    "launch_report",
    "megatron_memory",
    "host_processes",
    "torch_summary",
    "torch_stats",
    "nvidia_smi",
    "nvidia_smi_full",
    "nvidia_smi_list",
    "nvidia_smi_query",
    "nvidia_smi_xml",
    "rocm_smi",
    "amd_smi",
    "xpu_smi",
    "npu_smi",
    "gpustat",
    "nvitop",
    "fuser",
    "packages",
    "environment",
    "vllm_log",
    "engine_says",
    "ggml_log",
    "ollama_log",
    "engine_name",
    "bfc_dump",
    "tf_device",
    "xla_report",
    "growth",
    "trials",
    "parameters",
    "engine_prefix",
    "data_sizes",
)
TEXT_LINES = 2000
TEXT_CHARS = 256 * 1024
LINES_AFTER_FAILURE = 200
MOST_CUT_LINES = 400
MOST_TRACED = 64
"""Of so many failures the traceback and phase are read; the others are only counted."""
_MEMORY_WORDS = ("memory", "alloc", "errno", "exhausted")
_NO_FAILURES = (
    *("Warning", "KeyboardInterrupt", "SystemExit", "StopIteration"),
    *("ChildFailedError", "CalledProcessError", "ProcessExitedException"),
)


class Reader(Protocol):
    """What a reader module offers."""

    ANCHORS: tuple[str, ...]

    def read(self, document: Document, /) -> Reading:
        """Return what the document says."""


def read_all(document: Document) -> Reading:
    """Run the readers whose anchors occur; one that raises becomes a note, the others go on."""
    haystack = haystack_of(document)
    merged = _merged([_run(name, document, haystack) for name in READERS])
    return _with_traces(document, _with_cut_messages(document, merged))


def _with_cut_messages(document: Document, reading: Reading) -> Reading:
    """Take a message of one line that was cut into several for what it is."""
    if len(document.lines) > MOST_CUT_LINES:
        return reading
    from oomdoctor.evidence.cut_signs import joined

    failures = joined(document, reading.failures)
    own = [one.line_quote for one in failures if one.kind == "gpu-oom"]
    counted = any(fact.key == "oom.events" for fact in reading.facts)
    told = () if counted or not own else (Fact(key="oom.events", value=len(own), quotes=(*own,)),)
    return replace(reading, failures=failures, facts=(*reading.facts, *told))


def _run(name: str, document: Document, haystack: Haystack) -> Reading:
    door = DOORS.get(name)
    if door is not None and not _opens(document, haystack, door):
        return Reading()
    try:
        reader = cast("Reader", import_module(f"oomdoctor.evidence.{name}"))
        if _opens(document, haystack, reader.ANCHORS):
            return reader.read(document)
    except Exception as fault:  # noqa: BLE001 - one reader's bug must not hide what others find
        note = f"{document.artifact.id}: reader {name} failed: {type(fault).__name__}: {fault}"
        return Reading(notes=(note,))
    return Reading()


def _opens(document: Document, haystack: Haystack, literals: Sequence[str]) -> bool:
    return any(map(haystack.has, literals)) or opens(document, literals)


def _merged(readings: Sequence[Reading]) -> Reading:
    failures = [failure for reading in readings for failure in reading.failures]
    return Reading(
        facts=tuple(fact for reading in readings for fact in reading.facts),
        failures=tuple(sorted(failures, key=lambda failure: failure.order)),
        notes=tuple(note for reading in readings for note in reading.notes),
        closes=tuple(dict.fromkeys(kind for reading in readings for kind in reading.closes)),
    )


def _with_traces(document: Document, reading: Reading) -> Reading:
    """Attach stacks, phases and steps to the failures, and add the facts of the whole text."""
    if not document.lines:
        return reading
    found = stacks(document)
    failures = reading.failures
    if all(failure.kind == "peer" for failure in failures):
        refused = _refused(document) if not failures else ()
        failures = (*failures, *(refused or _not_of(failures, _uncaught(document, found))))
    failures = failures or _indirect(document)
    failures = failures or tuple(crash_failures(document, reading.facts))
    located = locate(document, failures, found)
    leading = _leading(failures)
    complete = tuple(
        attached(document, one) if position in leading else one.failure
        for position, one in enumerate(located)
    )
    first = located[0].at if located else None
    shared = () if complete else tuple(_end_facts(document, found))
    closes = reading.closes
    if any(one.stack is not None and one.stack.complete for one in located):
        closes = (*closes, "traceback")
    return replace(
        reading,
        facts=(*reading.facts, *shared, _text_fact(document, first)),
        failures=complete,
        closes=closes,
    )


def _indirect(document: Document) -> tuple[Failure, ...]:
    """Return the shortage that no message announces: counted, planned, or in a table."""
    haystack = haystack_of(document)
    if haystack.has("failed to fit params"):
        from oomdoctor.evidence.ggml_fit import unfitted

        return tuple(unfitted(document))
    if not haystack.has("oom"):
        return ()
    from oomdoctor.evidence.counted_ooms import counted
    from oomdoctor.evidence.result_tables import failures_of

    return tuple(counted(document)) or tuple(failures_of(document))


def _refused(document: Document) -> tuple[Failure, ...]:
    """Return the refusal of memory that a text tells in words no reader knows."""
    haystack = haystack_of(document)
    if not any(map(haystack.has, _MEMORY_WORDS)):
        return ()
    from oomdoctor.evidence.plain_refusal import refusals

    return tuple(refusals(document))


def _not_of(told: Sequence[Failure], more: Iterable[Failure]) -> Iterator[Failure]:
    """Yield the failures that end on lines of their own: a broken connection is told twice."""
    lines = {failure.order for failure in told}
    return (failure for failure in more if failure.order not in lines)


def _leading(failures: Sequence[Failure]) -> frozenset[int]:
    """Return which failures are looked at closely: the first ones, those that ended a run first."""
    places = sorted(range(len(failures)), key=lambda at: (_minor(failures[at]), at))
    return frozenset(places[:MOST_TRACED])


def _minor(failure: Failure) -> bool:
    return failure.kind == "other" or any(fact.key == "oom.caught" for fact in failure.facts)


def _uncaught(document: Document, found: Sequence[Stack]) -> Iterable[Failure]:
    """Make failures of exceptions that no reader knew, so that the answer can name them."""
    for stack in found:
        name = stack.exception
        if stack.ending is None or name is None or not stack.frames or name.endswith(_NO_FAILURES):
            continue
        line = document.lines[stack.ending]
        quote = document.quote(line)
        yield Failure(
            kind="other",
            order=line.number,
            line_quote=quote,
            facts=(Fact(key="failure.other", value=True, quotes=(quote,)),),
            rank=line.rank,
            stamp=line.stamp,
        )


def _end_facts(document: Document, found: Sequence[Stack]) -> Iterable[Fact]:
    """Say where a run was whose log just ends: a kill leaves no message in it."""
    stack = next((stack for stack in found if stack.frames), None)
    facts = () if stack is None else facts_of(document, stack)
    yield from facts
    held = {fact.key for fact in facts}
    end = len(document.lines)
    told = phase_before(document, end)
    if told is not None and "run.phase" not in held:
        yield Fact(key="run.phase", value=told.phase, quotes=(document.quote(told.line),))
    yield from (fact for fact in progress_facts(document, end - 1) if fact.key not in held)


def _text_fact(document: Document, failure: int | None) -> Fact:
    """Return log.text with one quote per line: what leads up to the first failure, and its wake."""
    lines = document.lines
    end = len(lines)
    if failure is not None and (end > TEXT_LINES or _size(document) > TEXT_CHARS):
        end = min(end, failure + 1 + LINES_AFTER_FAILURE)
    start = max(0, end - TEXT_LINES)
    room = TEXT_CHARS
    first = end
    for index in range(end - 1, start - 1, -1):
        room -= len(lines[index].text) + 1
        if room < 0 and first < end:
            break
        first = index
    chosen = lines[first:end]
    return Fact(
        key="log.text",
        value="\n".join(line.text for line in chosen),
        quotes=tuple(document.quote(line) for line in chosen),
    )


def _size(document: Document) -> int:
    return sum(len(line.text) + 1 for line in document.lines)
