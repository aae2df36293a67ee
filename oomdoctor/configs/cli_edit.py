r"""Sets flags and environment variables of a command or shell script.

python train.py --bf16 False         ->  python train.py --bf16 True
torchrun train.py \                  ->  torchrun train.py \
      --lr 1e-4                                --lr 1e-4 \
                                               --gradient_checkpointing True
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from oomdoctor.configs import change, command_line, json_edit, scalars, shell_script, shell_text
from oomdoctor.configs.difference import nested, same
from oomdoctor.configs.setting import Lines, normal
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.shell_text import Word

WORDED = frozenset(("hf_trainer", "trl", "llamafactory", "axolotl"))  # `--flag True`, not `--flag`
OVERRIDING = frozenset(("torchtune",))  # `key=value` without dashes
SKIPPED = (
    "export",
    "set",
    "cd",
    "echo",
    "source",
    "pip",
    "conda",
    "mkdir",
    "module",
    "eval",
    "ulimit",
)


class Flag(NamedTuple):
    """A flag with its values' words, what they say, and the JSON object where they are one."""

    word: Word
    values: tuple[Word, ...]
    value: object
    mapping: str


def edit(text: str, wanted: Wanted, dialect: str) -> str | None:
    """Return the script with all wanted flags set on its main command; None if it has none."""
    for key, value in wanted.items():
        changed = _set(text, key, value, dialect)
        if changed is None:
            return None
        text = changed
    return text


def held(text: str, key: str, dialect: str) -> tuple[bool, object]:
    """Return whether a flag is given, and its value; a bare switch is true."""
    name, inner = _place(key, dialect)
    found = _find(text, name, inner)
    if found is not None and inner:
        return json_edit.held(found.mapping or "{}", ".".join(inner))
    return (False, None) if found is None else (True, found.value)


def _place(key: str, dialect: str) -> tuple[str, list[str]]:
    """Return a flag's name and what follows it in the value's own mapping."""
    key = key.lstrip("-")
    name, *inner = key.split(".") if dialect in WORDED else [key]
    return normal(name), inner


def _find(text: str, name: str, inner: list[str]) -> Flag | None:
    """Find a flag or an override `name=value`, first in the main command."""
    main = _main(text)
    for words in sorted(_commands(text), key=lambda words: words != main):
        if words[0].text.rpartition("/")[2] in SKIPPED:
            continue
        for at, word in enumerate(words):
            if _names(word) == name or _overrides(word, at) == name:
                return _flag(words, at, inner)
    return None


def _flag(words: list[Word], at: int, inner: list[str]) -> Flag:
    word = words[at]
    _, equals, said = word.text.partition("=")
    values = [] if equals else command_line.values_of(words, at + 1)
    value: object = True
    if equals:
        value = scalars.value_of(said)
    elif len(values) == 1:
        said = values[0].text
        value = scalars.value_of(said)
    elif values:
        value = [scalars.scalar_of(one.text) for one in values]
    mapping = said if said.startswith("{") else ""
    if inner:
        value = json_edit.held(mapping, ".".join(inner))[1] if mapping else None
    return Flag(word, tuple(values), value, mapping)


def _set(text: str, key: str, value: object, dialect: str) -> str | None:
    words = _main(text)
    if not words:
        return None
    name, inner = _place(key, dialect)
    found = _find(text, name, inner)
    if found is not None and inner and found.mapping:
        return _reset(text, found, f"'{json_edit.edit(found.mapping, {'.'.join(inner): value})}'")
    if not change.sets(value):
        return _ordered(text, found, value)
    flag, written = _written(key, value, dialect)
    if found is None:
        return text if written is None else _append(text, words, flag, written, dialect)
    if same(found.value, value):
        return text
    return _without(text, found) if written is None else _reset(text, found, written)


def _ordered(text: str, found: Flag | None, value: object) -> str:
    """Take a flag out, or give it another name."""
    if found is None:
        return text
    name = change.new_name(value)
    return _without(text, found) if name is None else _renamed(text, found, name)


def _reset(text: str, found: Flag, written: str) -> str:
    """Give a flag that stands there another value."""
    word = found.word
    if "=" in word.text:
        raw = _row(text, word)[word.start : word.end]
        return put(text, word, f"{raw.partition('=')[0]}={written}")
    if not found.values:
        return put(text, word, f"{word.text} {written}") if written else text
    for more in reversed(found.values[1:]):
        text = _cut(text, more)
    return put(text, found.values[0], written)


def _without(text: str, found: Flag) -> str:
    """Take a flag out with all its values."""
    for word in (*reversed(found.values), found.word):
        text = _cut(text, word)
    return text


def _renamed(text: str, found: Flag, name: str) -> str:
    """Give a flag another name, with dashes where it had them."""
    raw = _row(text, found.word)[found.word.start : found.word.end]
    old, equals, rest = raw.partition("=")
    bare = old.lstrip("-+~").rpartition(".")[2]
    new = name.replace("_", "-") if "-" in bare and "_" not in bare else name
    return put(text, found.word, f"{old[: len(old) - len(bare)]}{new}{equals}{rest}")


def _written(key: str, value: object, dialect: str) -> tuple[str, str | None]:
    """Return flag name and its written value: "" for a bare switch, None to leave the flag out."""
    key = key.lstrip("-")
    name, dot, inner = key.partition(".")
    if dot and dialect in WORDED:
        return name, f"'{json.dumps(nested(inner.split('.'), value))}'"
    if isinstance(value, bool) and dialect not in (*WORDED, *OVERRIDING):
        return key, "" if value else None
    if isinstance(value, (list, tuple)):
        return key, " ".join(quoted(str(item)) for item in value)
    return key, f"'{json.dumps(value)}'" if isinstance(value, dict) else quoted(str(value))


def quoted(word: str) -> str:
    """Write a word so that the shell takes it as it is."""
    return word if re.fullmatch(r"[\w./:=,@%+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _names(word: Word) -> str:
    if not word.text.startswith("-") or word.quoted:
        return ""
    return normal(word.text.lstrip("-").partition("=")[0])


def _overrides(word: Word, at: int) -> str:
    """Return the name of an override in Hydra's way, `optimizer.lr=1e-4`; empty for none."""
    name, equals, _ = word.text.partition("=")
    plain = equals and at and not word.quoted and not word.text.startswith("-")
    return normal(name.lstrip("+~")) if plain else ""


def _commands(text: str) -> list[list[Word]]:
    """Return the words of all commands, with their rows in the whole text."""
    made: list[list[Word]] = []
    for piece in shell_script.split("", text):
        if piece.kind != "command":
            continue
        rows = piece.lines.rows
        for words in shell_text.commands(piece.lines):
            at = 0
            while at < len(words) and shell_text.assignment(words[at]) is not None:
                at += 1
            if words[at:]:
                made.append([word._replace(row=rows[word.row][0] - 1) for word in words[at:]])
    return made


def _main(text: str) -> list[Word]:
    """Return the words of the command that trains or serves: the one with most of them."""
    best: list[Word] = []
    for words in _commands(text):
        first = words[0].text
        if first.rpartition("/")[2] in SKIPPED or first.startswith("-"):
            continue
        if len(words) > len(best):
            best = words
    return best


def _row(text: str, word: Word) -> str:
    return text.split("\n")[word.row]


def put(text: str, word: Word, written: str) -> str:
    """Return the text with something else in the place of a word and its quotes."""
    rows = text.split("\n")
    line = rows[word.row]
    start, end = _span(word)
    rows[word.row] = line[:start] + written + line[end:]
    return "\n".join(rows)


def _span(word: Word) -> tuple[int, int]:
    """Return where a word stands with its quotes, which are no part of it."""
    return (word.start - 1, word.end + 1) if word.quoted else (word.start, word.end)


def _cut(text: str, word: Word) -> str:
    rows = text.split("\n")
    line = rows[word.row].rstrip("\r")
    ended = rows[word.row][len(line) :]
    start, end = _span(word)
    head, rest = line[:start], line[end:]
    left = head.rstrip() + rest if head.strip() else head + rest.lstrip()
    if left.strip() not in ("", "\\"):
        rows[word.row] = left + ended
        return "\n".join(rows)
    del rows[word.row]
    if left.strip() == "" and word.row and rows[word.row - 1].rstrip().endswith("\\"):
        rows[word.row - 1] = rows[word.row - 1].rstrip()[:-1].rstrip() + ended
    return "\n".join(rows)


def _append(text: str, words: list[Word], flag: str, value: str, dialect: str) -> str:
    """Add a flag behind the last word; on a line of its own where the flags have theirs."""
    written = f"{flag}={value}" if dialect in OVERRIDING else f"--{flag} {value}".rstrip()
    if dialect == "accelerate" and [word.text for word in words[:2]] == ["accelerate", "launch"]:
        return put(text, words[1], f"launch {written}")  # the launcher's own stand before
    rows = text.split("\n")
    last = words[-1]
    end = _span(last)[1]
    line = rows[last.row].rstrip("\r")
    ended = rows[last.row][len(line) :]
    if last.row == words[0].row:
        rows[last.row] = f"{line[:end]} {written}{line[end:]}{ended}"
        return "\n".join(rows)
    first = next(word for word in words if word.row == last.row)
    lead = line[: len(line) - len(line.lstrip())] if first.row != words[0].row else "    "
    rest = line[end:].strip()
    rows[last.row] = f"{line[:end]} \\{ended}"
    rows.insert(last.row + 1, f"{lead}{written}" + (f" {rest}" if rest else "") + ended)
    return "\n".join(rows)


def is_command(text: str) -> bool:
    """Say whether a text holds a command whose flags can be set."""
    return bool(_main(text)) and bool(command_line.read(Lines.of_text("", text)).programs)
