r"""Shell lines as words with their places: quotes, continuations, variables, several commands.

N=8
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node $N train.py \
        --output_dir "my out" && echo done   # comment
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.configs.setting import Lines
    from oomdoctor.model.core import Quote

MAX_WORDS = 20_000


class Word(NamedTuple):
    """A word of a command: its text after quotes and variables, and where it stands."""

    text: str
    row: int
    start: int
    end: int
    quoted: bool = False


@cache
def _token() -> re.Pattern[str]:
    part = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|\$\{[^}\s]*\}|[<>]&\d?|&>>?|[^\s\"'\\;|&#]|(?<=\S)#"
    return re.compile(
        rf"(?P<word>(?:{part})+)|(?P<break>&&|\|\||;|\||&)|(?P<comment>#.*)|(?P<other>\S)"
    )


@cache
def _variable() -> re.Pattern[str]:
    return re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)


def commands(lines: Lines) -> Iterator[list[Word]]:
    """Split lines into commands of words; a backslash at the end joins the next line."""
    current: list[Word] = []
    words = 0
    closer = ""
    for row, (_, line) in enumerate(lines.rows):
        if words >= MAX_WORDS:
            break
        text = _without_directive(line.rstrip())
        joined = text.endswith("\\")
        text = text[:-1] if joined else text
        after = lines.rows[row + 1][1] if row + 1 < len(lines.rows) else ""
        text, closer = _unwrapped(text, closer, after)
        joined = joined or bool(closer)
        for found in _token().finditer(text[:65536]):
            if found["word"] and words < MAX_WORDS:
                words += 1
                current.append(_word(found["word"], row, *found.span()))
            elif found["break"] and current:
                yield current
                current = []
        if not joined and current:
            yield current
            current = []
    if current:
        yield current


@cache
def _list() -> re.Pattern[str]:
    named = r"\s*(?:(?:export|local|readonly|declare(?:\s+-\w+)*)\s+)?[A-Za-z_]\w*\+?="
    return re.compile(rf"{named}(?:(\()|([\"'])(?=\s*--?[A-Za-z]|\s*$))")


def _unwrapped(text: str, closer: str, after: str) -> tuple[str, str]:
    """Blank out what makes flags the content of a variable: `ARGS=(`, `ARGS="` and their ends.

    `closer` is what ends the list that an earlier line has begun; the new one is returned.
    """
    start = 0
    if not closer:
        found = _list().match(text) if "=" in text else None
        if found is None:
            return text, ""
        start = found.end()
        rest = text[start:].strip()
        if found[2] and not rest and not after.lstrip().startswith("-"):
            return text, ""  # a text over several lines
        closer = ")" if found[1] else found[2]
        text = " " * start + text[start:]
    at = _end_of_list(text, start, closer)
    return (text, closer) if at is None else (f"{text[:at]} {text[at + 1 :]}", "")


def _end_of_list(text: str, start: int, closer: str) -> int | None:
    if closer != ")":
        at = text.find(closer, start)
        return at if at >= 0 else None
    found = re.search(r"\)\s*(?:[#;&].*)?$", text[start:])
    return start + found.start() if found else None


def _without_directive(line: str) -> str:
    """Blank out what makes a job manager's option a comment: `#SBATCH --gres=gpu:8`."""
    for mark in ("#SBATCH", "#PBS"):
        if line.startswith(mark):
            return " " * len(mark) + line[len(mark) :]
    return line


def _word(raw: str, row: int, start: int, end: int) -> Word:
    quoted = raw[0] in "\"'" and raw[-1] == raw[0] and len(raw) > 1
    plain = re.sub(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'", lambda m: m[1] or m[2] or "", raw)
    inset = 1 if quoted else 0
    return Word(re.sub(r"\\(.)", r"\1", plain), row, start + inset, end - inset, quoted)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put known variables in; unknown ones stay as they are written."""
    if "$" not in text:
        return text

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return variables.get(name, found[3] if found[3] is not None else found[0])

    return _variable().sub(value, text)


def assignment(word: Word) -> tuple[str, str] | None:
    """Return name and value of `NAME=value`; None for any other word."""
    found = _assignment().match(word.text)
    return (found[1], found[2].strip("\"'")) if found else None


def quote(word: Word, lines: Lines) -> Quote:
    """Quote a word where it stands."""
    return lines.quote(word.row, word.start, word.end)


def quote_value(word: Word, lines: Lines, *, mark: str = "=") -> Quote:
    """Quote what stands behind the first `=` of a word."""
    raw = lines.rows[word.row][1][word.start : word.end]
    at = raw.find(mark)
    start = word.start + at + len(mark) if at >= 0 else word.start
    end = word.end
    line = lines.rows[word.row][1]
    if end - start >= 2 and line[start] in "\"'" and line[end - 1] == line[start]:
        start, end = start + 1, end - 1
    return lines.quote(word.row, start, end)
