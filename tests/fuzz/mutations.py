"""Seeded mutations of all logs under fixtures/: the same number gives the same bytes again.

    data, name, healthy = mutated(1742)          others once the fixtures have changed

Logs are cut, spliced, interleaved, re-encoded, coloured, given NUL bytes, other numbers and other
units; one in a hundred is grown to 1 MB: one line, one message over and over, only tables, only
kernel reports, only tracebacks. Logs of the healthy set are changed only in ways that leave them
healthy: they begin at a line, they end anywhere, and a zero stays a zero.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, NamedTuple

from tests.fuzz.corpus import corpus, healthy
from tests.fuzz.dull import WORDS, before

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1_000_000
LONGEST = 60_000
LARGE_EACH = 100
"""One mutation in so many is grown to a megabyte."""
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1", "cp1252", "cp437")
_UNITS = ("B", "bytes", "KB", "KiB", "kB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "EiB", "Gi", "M")
_WILD = ("-1", "0", "00", "1e400", "nan", "137", "9" * 30, "1,234.56", "1.2.3", "0x7f", "")
_ESCAPES = ("\x1b[31m", "\x1b[0m", "\x1b[1;33m", "\x1b[2K", "\x1b]0;title\x07", "\x1b[38;5;208m")
_NO_BREAKS = ("\x00", "\ufeff", "\u200b", "\x0c", "\u2028", "\x85", "\x1a")
_ODD = (*_NO_BREAKS, "\r", "\x08")


class Mutation(NamedTuple):
    """What one seed gives."""

    data: bytes
    name: str
    healthy: bool


def mutated(seed: int) -> Mutation:
    """Return the mutation of a number: one in three is of the healthy set."""
    dice = random.Random(seed)  # noqa: S311 - a seed that gives the same again
    if seed % LARGE_EACH == 0:
        return _large(dice)
    if seed % 3 == 0:
        return _healthy(dice)
    text = dice.choice(corpus()).text[:LONGEST]
    names = []
    for _ in range(dice.randint(1, 4)):
        change = dice.choice(_CHANGES)
        text = change(dice, text)[: 2 * LONGEST]
        names.append(change.__name__.strip("_"))
    data, encoding = _encoded(dice, text)
    return Mutation(data, "+".join([*names, encoding]), healthy=False)


def _healthy(dice: random.Random) -> Mutation:
    """Change healthy logs in ways that leave them healthy."""
    text = dice.choice(healthy()).text[:LONGEST]
    names = []
    for change in dice.sample(_KEEPING, dice.randint(1, 3)):
        text = change(dice, text)[: 2 * LONGEST]
        names.append(change.__name__.strip("_"))
    data, encoding = _encoded(dice, text)
    return Mutation(data, "healthy:" + "+".join([*names, encoding]), healthy=True)


def _encoded(dice: random.Random, text: str) -> tuple[bytes, str]:
    if dice.random() < 0.8:
        return text.encode("utf-8", errors="surrogatepass"), "utf-8"
    encoding = dice.choice(_ENCODINGS)
    return text.encode(encoding, errors="replace"), encoding


def _other(dice: random.Random) -> str:
    return dice.choice(corpus()).text[:LONGEST]


def _cut(dice: random.Random, text: str) -> str:
    at, to = sorted(dice.randint(0, len(text)) for _ in range(2))
    return text[at:to] or text[:at]


def _drop(dice: random.Random, text: str) -> str:
    at, to = sorted(dice.randint(0, len(text)) for _ in range(2))
    return text[:at] + text[to:]


def _splice(dice: random.Random, text: str) -> str:
    other, at = _other(dice), dice.randint(0, len(text))
    return text[:at] + other[dice.randint(0, len(other)) :] + text[at:]


def _interleave(dice: random.Random, text: str) -> str:
    return _woven(dice, text, _other(dice))


def _colour(dice: random.Random, text: str) -> str:
    return _sown(dice, text, _ESCAPES)


def _litter(dice: random.Random, text: str) -> str:
    return _sown(dice, text, _ODD)


def _litter_healthy(dice: random.Random, text: str) -> str:
    """Sow what begins no new line: half a sentence on a line of its own may say anything."""
    return _sown(dice, text, _NO_BREAKS)


def _numbers(dice: random.Random, text: str) -> str:
    def other(found: re.Match[str]) -> str:
        if dice.random() < 0.7:
            return found[0]
        return dice.choice((*_WILD, str(dice.randint(0, 10 ** dice.randint(1, 20)))))

    return re.sub(r"\d+(?:\.\d+)?", other, text)


def _units(dice: random.Random, text: str) -> str:
    def other(found: re.Match[str]) -> str:
        return found[0] if dice.random() < 0.5 else found[1] + dice.choice(_UNITS)

    return re.sub(r"(\d ?)(?:[KMGT]i?B|bytes|[KMGT]i)\b", other, text)


def _shuffle(dice: random.Random, text: str) -> str:
    return "\n".join(dice.sample(text.split("\n"), text.count("\n") + 1))


def _repeat(dice: random.Random, text: str) -> str:
    return text[: LONGEST // 4] * dice.randint(2, 4)


def _glue(dice: random.Random, text: str) -> str:
    return "".join(
        line + ("\n" if dice.random() < 0.8 else dice.choice(("", " ", "\r\n")))
        for line in text.split("\n")
    )


def _begin_later(dice: random.Random, text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[dice.randint(0, len(lines) - 1) :])


def _end_early(dice: random.Random, text: str) -> str:
    return text[: dice.randint(len(text) // 4, len(text))]


def _splice_healthy(dice: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = dice.randint(0, len(lines))
    return "\n".join([*lines[:at], *dice.choice(healthy()).text.split("\n"), *lines[at:]])


def _interleave_healthy(dice: random.Random, text: str) -> str:
    return _woven(dice, text, dice.choice(healthy()).text)


def _numbers_healthy(dice: random.Random, text: str) -> str:
    """Scale numbers of two digits or more; a count of none stays none."""
    by = dice.uniform(0.6, 1.6)

    def other(found: re.Match[str]) -> str:
        scaled = str(max(10, round(int(found[0]) * by)))
        return found[0] if scaled == "137" or dice.random() < 0.3 else scaled

    return re.sub(r"(?<![\w.:])[1-9]\d{1,11}(?![\w:])", other, text)


def _woven(dice: random.Random, one: str, other: str) -> str:
    """Return the lines of two writers as they reach one file, with or without their ranks."""
    tags = dice.choice((("", ""), ("[rank0]: ", "[rank1]: "), ("0: ", "1: "), ("(a pid=7) ", "")))
    lines = [one.split("\n"), other.split("\n")]
    places = [0, 0]
    woven = []
    while places[0] < len(lines[0]) or places[1] < len(lines[1]):
        which = dice.randint(0, 1)
        for _ in range(dice.randint(1, 3)):
            if places[which] < len(lines[which]):
                woven.append(tags[which] + lines[which][places[which]])
                places[which] += 1
    return "\n".join(woven)


def _sown(dice: random.Random, text: str, pieces: tuple[str, ...]) -> str:
    places = sorted(dice.randint(0, len(text)) for _ in range(dice.randint(1, 60)))
    parts, before = [], 0
    for at in places:
        parts += [text[before:at], dice.choice(pieces)]
        before = at
    return "".join([*parts, text[before:]])


def _large(dice: random.Random) -> Mutation:
    """Grow something to a megabyte, in one of the ways that are hard to read."""
    grow = dice.choice(_GROWTHS)
    text = grow(dice)
    text = (text * (MEGABYTE // max(1, len(text)) + 1))[:MEGABYTE]
    return Mutation(text.encode(errors="replace")[:MEGABYTE], f"1MB:{grow.__name__}", healthy=False)


def one_line(dice: random.Random) -> str:
    return re.sub(r"\s+", " ", _other(dice)) or "x"


def same_message(dice: random.Random) -> str:
    lines = [line for line in _other(dice).split("\n") if _TELLING.search(line)]
    return f"{dice.choice(lines or ['CUDA out of memory'])}\n"


def mixed_messages(dice: random.Random) -> str:
    logs = dice.sample(corpus(), 40)
    lines = [line for log in logs for line in log.text.split("\n") if _TELLING.search(line)]
    dice.shuffle(lines)
    return "\n".join(lines) + "\n"


def tables(dice: random.Random) -> str:
    return _of(dice, r"NVIDIA-SMI|ROCm|amd-smi|npu-smi")


def kernel_reports(dice: random.Random) -> str:
    return _of(dice, r"oom-kill:|invoked oom-killer|Out of memory: Kill")


def tracebacks(dice: random.Random) -> str:
    return _of(dice, r"Traceback \(most recent")


def frames_only(dice: random.Random) -> str:
    text = tracebacks(dice)
    return "\n".join(line for line in text.split("\n") if line.startswith("  ")) + "\n"


def many_ranks(dice: random.Random) -> str:
    lines = tracebacks(dice).split("\n")
    return "\n".join(f"[rank{rank}]: {line}" for line in lines for rank in range(16)) + "\n"


def damaged_many(dice: random.Random) -> str:
    text = "\n".join(log.text for log in dice.sample(corpus(), 20))
    return dice.choice(_CHANGES)(dice, text)


def no_spaces(dice: random.Random) -> str:
    return re.sub(r"\s", "", _other(dice)) or "("


def dull(dice: random.Random) -> str:
    log = _other(dice)
    return before(log, dice.choice(WORDS), MEGABYTE)


def _of(dice: random.Random, pattern: str) -> str:
    found = [log.text for log in corpus() if re.search(pattern, log.text)]
    return "\n".join(dice.sample(found, min(3, len(found)))) + "\n"


_TELLING = re.compile(r"(?i)out.of.memory|oom|killed|alloc|exhausted|Error|failed")
_CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    *(_cut, _drop, _splice, _interleave, _colour, _litter, _numbers, _units),
    *(_shuffle, _repeat, _glue),
)
_KEEPING: tuple[Callable[[random.Random, str], str], ...] = (
    *(_begin_later, _end_early, _splice_healthy, _interleave_healthy, _colour),
    *(_litter_healthy, _numbers_healthy, _repeat),
)
_GROWTHS: tuple[Callable[[random.Random], str], ...] = (
    *(one_line, same_message, mixed_messages, tables, kernel_reports, tracebacks),
    *(frames_only, many_ranks, damaged_many, no_spaces, dull),
)
