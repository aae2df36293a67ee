"""Texts that announce exhausted accelerator memory, of every back end, one failure per event.

    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total ...
    RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
    ValueError: No available memory for the cache blocks. ...

The allocators' own messages are read by `torch_oom_message`; the tables of one-line texts stand in
`torch_oom_other`, `torch_disguises`, `pool_oom`, `library_oom` and `engine_oom`. This module joins
what tells of one event and counts events over the whole input.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import (
    engine_oom,
    library_oom,
    plain_oom,
    pool_oom,
    torch_disguises,
    torch_oom_other,
    torn_oom,
)
from oomdoctor.evidence.crowded_ranks import crowded_ranks
from oomdoctor.evidence.equal_cards import equal_cards
from oomdoctor.evidence.events import Event, absorb, fact, merged
from oomdoctor.evidence.haystack import LAST_LINES, MOST_LINES, haystack_of
from oomdoctor.evidence.recovery import outlived, unanswered
from oomdoctor.evidence.signs import event_of, hits, raised
from oomdoctor.evidence.work_lines import WorkLines
from oomdoctor.model.core import Reading
from oomdoctor.record import replace
from oomdoctor.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Document, Fact, Failure, Quote

_MESSAGE = (
    "out of memory",
    "outofmemoryerror",
    "tried to allocate",
    "allocation on device",
    "can not allocate memory block",
    "reserved by pytorch",
    "reserved in total",
    "already allocated",
    "total capac",
)
SIGNS = (
    *torch_oom_other.SIGNS,
    *pool_oom.SIGNS,
    *library_oom.SIGNS,
    *engine_oom.SIGNS,
    *torch_disguises.SIGNS,
)

ANCHORS = tuple(
    dict.fromkeys(
        (*_MESSAGE, *(one for sign in SIGNS for one in sign.literals), *plain_oom.LITERALS)
    )
)

_FIGURES = ("oom.requested", "oom.capacity", "oom.free")
_ASSERTED = ("device-side assert triggered", "assertion `")
_SAME_MESSAGE_LINES = 200
_WARNINGS_OPEN = 64
_GAP_LINES = 4000
_PIN_LINES = 14


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def read(document: Document) -> Reading:
    """Return a failure for every event, in order, and what counting them says."""
    haystack = haystack_of(document)
    messages = _messages(haystack)
    taken = frozenset(at for one in messages for at in _covered(document, one))
    others = [event_of(document, hit) for hit in hits(haystack, SIGNS, taken=taken)]
    torn = torn_oom.events_in(haystack, messages, taken)
    told = unanswered(haystack, _with_warnings(merged([*messages, *others, *torn])))
    events = [event for event in told if event.family != pool_oom.WARNING]
    if not any(event.failure.kind == "gpu-oom" for event in events):
        spoken = frozenset(at for event in told for at in range(event.first, event.last + 1))
        events = merged([*events, *plain_oom.events_in(haystack, spoken)])
    if not events:
        events = [event_of(document, hit) for hit in raised(haystack, SIGNS)]
    asserted = min(haystack.lines_with(_ASSERTED), default=len(document.lines))
    events = [_pinned(document, _follower(haystack, event, asserted)) for event in events]
    if any(event.family == torch_oom_other.QUOTA for event in events):
        work = WorkLines(document.lines)
        quota = torch_oom_other.QUOTA
        events = [outlived(document, one, work) if one.family == quota else one for one in events]
    if any(event.family == "ggml" for event in events):
        from oomdoctor.evidence.ggml_backend import respelled

        events = respelled(haystack, events)
    failures = tuple(event.failure for event in events)
    warned = [event.failure.line_quote for event in told if event.family == pool_oom.WARNING]
    facts = (*_counts(document, events), *_warned_facts(warned))
    return Reading(facts=facts, failures=failures, notes=tuple(_notes(haystack)))


def _warned_facts(quotes: Sequence[Quote]) -> Iterator[Fact]:
    """Say that a pool's allocator only warned; its caller went on without the memory."""
    if quotes:
        yield fact("bfc.warning", value=True, quotes=quotes[:8])


def _notes(haystack: Haystack) -> Iterator[str]:
    spoken = len(haystack.lines_with(_MESSAGE))
    if spoken > MOST_LINES:
        name = haystack.document.artifact.id
        yield (
            f"{name}: {format_count(spoken)} lines speak of memory running out: read the first"
            f" {format_count(MOST_LINES - LAST_LINES)} and the last {format_count(LAST_LINES)}"
        )


def _messages(haystack: Haystack) -> list[Event]:
    """Read the allocators' messages, each once although two streams may show it."""
    if not any(haystack.has(one) for one in _MESSAGE):
        return []
    from oomdoctor.evidence.squeeze import runs_near
    from oomdoctor.evidence.torch_oom_message import messages_in

    found: dict[tuple[object, ...], Event] = {}
    for run in runs_near(haystack, _MESSAGE):
        for event in messages_in(run):
            place = (event.first, *_place(event.failure))
            held = found.get(place)
            if held is None or len(event.failure.facts) > len(held.failure.facts):
                found[place] = event
    return list(_told_once(sorted(found.values(), key=lambda event: event.first)))


def _told_once(events: Iterable[Event]) -> Iterator[Event]:
    """Leave out what is the rest of a message: its lines carry no prefix and stand in two runs."""
    spoken: set[tuple[int, int]] = set()
    for event in events:
        figures = (one for one in event.failure.facts if one.key in _FIGURES)
        places = {(quote.line, quote.column) for one in figures for quote in one.quotes}
        if not places or not places <= spoken:
            spoken |= places
            yield event


def _covered(document: Document, event: Event) -> Iterator[int]:
    """Yield the lines that an event speaks for; other writers' lines between them are free."""
    own = (document.lines[event.first].stream, "")
    for at in range(event.first, event.last + 1):
        if document.lines[at].stream in own:
            yield at


def _place(failure: Failure) -> tuple[object, ...]:
    """Return where the back end's name stands, which tells two messages of one line apart."""
    for one in failure.facts:
        if one.key == "oom.backend":
            return tuple((quote.line, quote.column) for quote in one.quotes[:1])
    return ()


def _with_warnings(events: list[Event]) -> list[Event]:
    """Fold the C++ warning, which gives exact bytes, into the message that follows it."""
    kept: list[Event] = []
    for event in events:
        near = range(max(0, len(kept) - _WARNINGS_OPEN), len(kept))
        at = next((at for at in near if _warned_of(kept[at], event)), None)
        if at is None:
            kept.append(event)
        else:
            kept.append(absorb(event, kept.pop(at)))
    return kept


def _warned_of(warning: Event, message: Event) -> bool:
    if warning.family == "bfc":
        near = message.first - warning.last <= pool_oom.DUMP_LINES
        same_writer = warning.failure.rank == message.failure.rank
        return near and same_writer and message.family in ("tf", "xla")
    return (
        warning.family == "allocator-warning"
        and message.family != "allocator-warning"
        and message.first - warning.last <= _SAME_MESSAGE_LINES
        and _same_request(warning.failure, message.failure)
    )


def _same_request(warning: Failure, message: Failure) -> bool:
    told, asked = _figure(warning, "oom.requested"), _figure(message, "oom.requested")
    if told is None or asked is None or warning.rank not in (None, message.rank):
        return False
    return abs(told[0] - asked[0]) <= told[1] + asked[1]


def _figure(failure: Failure, key: str) -> tuple[int, float] | None:
    for one in failure.facts:
        if one.key == key and isinstance(one.value, int):
            return one.value, one.slack
    return None


def _text(failure: Failure, key: str) -> object:
    return next((one.value for one in failure.facts if one.key == key), None)


def _pinned(document: Document, event: Event) -> Event:
    """Turn a bare runtime error that pinning host memory raised into a host failure."""
    failure = event.failure
    if _text(failure, "oom.form") != "runtime" or failure.kind != "gpu-oom":
        return event
    near = document.lines[max(0, event.first - _PIN_LINES) : event.first + 1]
    pinning = r"pin_memory ?= ?True|\bpin_memory\(|Host(?:Alloc|Register)|HostAllocator"
    marks = [line for line in near if "pin memory thread" in line.text.lower()]
    marks += [line for line in near[-3:] if _compiled(pinning).search(line.text)]
    # the thread selects the card and takes a batch before it pins: that may open the card
    opens = any(
        _compiled(r"in_queue\.get\(|\bset_device\(").search(line.text) for line in near[-3:]
    )
    if not marks or opens:
        return event
    facts = tuple(one for one in failure.facts if one.key != "oom.seen")
    quotes = [document.quote(line) for line in marks[:2]]
    pinned = fact("host.pinned_failed", value=True, quotes=quotes)
    return event._replace(failure=replace(failure, kind="host-oom", facts=(*facts, pinned)))


def _follower(haystack: Haystack, event: Event, asserted: int) -> Event:
    """Mark what an assertion or a collective's time-out brought about as a consequence."""
    form = _text(event.failure, "oom.form")
    follows = form in ("cublas-handle", "cudnn-handle") and asserted < event.first
    follows = follows or (form == "exabyte" and haystack.has("collective operation timeout"))
    if not follows:
        return event
    return event._replace(failure=replace(event.failure, consequence=True))


def _counts(document: Document, events: list[Event]) -> Iterator[Fact]:
    """Yield facts of the whole input: events, failed ranks, and a repeat after a restart."""
    own = [event for event in events if event.failure.kind == "gpu-oom"]
    if not own:
        return
    work = WorkLines(document.lines)
    distinct = [event for event, again in _again(document, own, work) if not again]
    quotes = [event.failure.line_quote for event in distinct[:20]]
    yield fact("oom.events", len(distinct), quotes)
    yield from crowded_ranks(own)
    yield from equal_cards(own)
    yield from _repeats(document, distinct, work)


def _again(
    document: Document, events: Iterable[Event], work: WorkLines
) -> Iterator[tuple[Event, bool]]:
    """Tell a message that was printed once more (log line, chained traceback) from a new one."""
    last: dict[str, Event] = {}
    for event in events:
        stream = document.lines[event.first].stream
        held = last.get(stream)
        same = held is not None and _told(held.failure) == _told(event.failure)
        yield event, same and held is not None and not _worked(work, held, event)
        last[stream] = event


def _told(failure: Failure) -> tuple[object, ...]:
    keys = ("oom.form", "oom.requested", "torch.allocated", "oom.free", "oom.gpu_index")
    return tuple(_text(failure, key) for key in keys)


def _worked(work: WorkLines, first: Event, second: Event) -> bool:
    """Say whether work went on between two events: progress, a prompt, a numbered step."""
    return work.any_between(first.last + 1, min(second.first, first.last + _GAP_LINES))


def _repeats(document: Document, events: list[Event], work: WorkLines) -> Iterator[Fact]:
    """Yield whether a process met its limit again with the very same bytes allocated, if any."""
    last: dict[tuple[str, object], Event] = {}
    verdict: tuple[bool, tuple[Event, Event]] | None = None
    for event in events:
        if _figure(event.failure, "torch.allocated") is None:
            continue
        key = (document.lines[event.first].stream, _text(event.failure, "oom.gpu_index"))
        held = last.get(key)
        last[key] = event
        if held is not None and not (verdict and verdict[0]):
            bytes_held = {_text(one.failure, "torch.allocated") for one in (held, event)}
            same = len(bytes_held) == 1 and bytes_held != {0}
            verdict = (same and _worked(work, held, event), (held, event))
    if verdict:
        quotes = [one.failure.line_quote for one in verdict[1]]
        yield fact("oom.repeats_same_allocated", verdict[0], quotes)
