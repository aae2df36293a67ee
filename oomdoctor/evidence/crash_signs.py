"""Signs that a run ended badly, for inputs in which no reader knows a failure and no stack ends.

    ValueError: Expected input batch_size (32) to match target batch_size (31).
    [INFO] [launch.py:315:sigkill_handler] Killing subprocess 4711
    torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
      exitcode  : 1 (pid: 4711)
    Segmentation fault (core dumped)
    Process finished with exit code 1

They say that there is a failure and not which. A launcher that ends its children without any
message, while main memory was nearly full, is what the kernel's killing leaves in a log.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.frames import exception_of
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.progress_lines import parse_progress
from oomdoctor.model.core import Fact, Failure
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, LogLine

FULL = 0.80
"""Main memory that is fuller than this may have made the kernel kill."""

LONGEST = 600
_GENERAL = frozenset({"Error", "Exception", "Failure", "Exit", "SystemExit", "KeyboardInterrupt"})
_LAUNCHER = (
    r"\bKilling subprocess \d+|\bChildFailedError\b|\bexit ?code\s*: -?[1-9]\d* \(pid"
    r"|\(exitcode: -?[1-9]\d*\)|exits with return code = -?[1-9]|\bProcessExitedException\b"
    r"|Sending process \d+ closing signal SIGTERM|\bProcessRaisedException\b"
    r"|\bCalledProcessError: Command .*returned non-zero exit status [1-9]"
)
_CRASH = (
    r"^\s*(?:\S{1,40} )?(?:Segmentation fault|Aborted|Bus error|Floating point exception)\b"
    r"|\(core dumped\)|^\s*Fatal Python error:|\bSIGSEGV\b|\bSIGABRT\b|double free or corruption"
    r"|^\s*terminate called |^\s*what\(\): |process finished with exit code -?[1-9]"
    r"|\bexited with exit code [1-9]|returned non-zero exit status [1-9]"
    r"|kernel (?:appears to have )?died|\bdied with <Signals\."
    r"|^\s*Traceback \(most recent call last\)"
)
_WORDS = (
    "killing subprocess",
    "childfailederror",
    "exitcode",
    "exit code",
    "exit status",
    "return code",
    "closing signal",
    "exception",
    "error",
    "fault",
    "aborted",
    "core dumped",
    "sigsegv",
    "sigabrt",
    "double free",
    "terminate called",
    "what():",
    "kernel",
    "<signals.",
    "traceback",
    "failure",
    "exhausted",
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def crash_failures(document: Document, facts: Sequence[Fact]) -> Iterator[Failure]:
    """Yield one failure for the plainest sign: an exception's name, a crash, a launcher's word."""
    signs: dict[str, LogLine] = {}
    told = frozenset(haystack_of(document).lines_with(_WORDS))
    for index, line in enumerate(document.lines):
        kind = _sign(line) if index in told else None
        if kind is not None:
            signs.setdefault(kind, line)
        elif signs and _goes_on(line):
            signs.clear()
    for kind in ("exception", "crash", "launcher"):
        if kind in signs:
            if kind == "launcher":
                yield _told_by_launcher(document, signs[kind], facts)
            else:
                yield _failure(document, signs[kind], "other")
            return


def _sign(line: LogLine) -> str | None:
    text = line.text[:LONGEST]
    lowered = text.lower()
    if not any(word in lowered for word in _WORDS):
        return None
    if _compiled(_LAUNCHER).search(text):
        return "launcher"
    named = exception_of(text)
    if named is not None and named[0] is not None and named[0].rpartition(".")[2] not in _GENERAL:
        return "exception" if ":" in text or "." in named[0] else None
    return "crash" if _compiled(_CRASH).search(text) else None


def _goes_on(line: LogLine) -> bool:
    """Say whether the run works after the sign, so that it was survived."""
    found = parse_progress(line)
    return found is not None and (found.step or 0) > 0


def _told_by_launcher(document: Document, line: LogLine, facts: Sequence[Fact]) -> Failure:
    """Return a kill where main memory was nearly full, a crash by its signal, else a lost worker.

    A launcher that names neither signal nor exception leaves open what its child ran into.
    """
    full = next((fact for fact in facts if fact.key == "host.used_share"), None)
    if full is not None and isinstance(full.value, float) and full.value >= FULL:
        killed = Fact(
            key="host.killed",
            value=True,
            origin=Origin.DERIVED,
            quotes=(document.quote(line), *full.quotes),
            source="the launcher ended its children without a message, main memory nearly full",
        )
        return _failure(document, line, "host-oom", killed)
    crashed = any(fact.key == "launch.signal" for fact in facts)
    return _failure(document, line, "other" if crashed else "lost")


def _failure(document: Document, line: LogLine, kind: str, told: Fact | None = None) -> Failure:
    quote = document.quote(line)
    return Failure(
        kind=kind,
        order=line.number,
        line_quote=quote,
        facts=(told or Fact(key="failure.other", value=True, quotes=(quote,)),),
        rank=line.rank,
        stamp=line.stamp,
    )
