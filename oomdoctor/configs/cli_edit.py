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

from oomdoctor.configs import command_line, scalars, shell_text
from oomdoctor.configs.difference import nested, same
from oomdoctor.configs.setting import Lines, normal

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.shell_text import Word

WORDED = frozenset(("hf_trainer", "trl", "llamafactory", "axolotl"))  # `--flag True`, not `--flag`
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


def edit(text: str, wanted: Wanted, dialect: str) -> str | None:
    """Return the script with all wanted flags set on its main command; None if it has none."""
    for key, value in wanted.items():
        changed = _set(text, key, value, dialect)
        if changed is None:
            return None
        text = changed
    return text


def set_variables(text: str, wanted: Wanted) -> str:
    """Return the script with all wanted environment variables exported."""
    for name, value in wanted.items():
        text = _export(text, name, str(value))
    return text


def _set(text: str, key: str, value: object, dialect: str) -> str | None:
    words = _main(text)
    if not words:
        return None
    name, written = _written(key, value, dialect)
    at = next((i for i, w in enumerate(words) if _names(w) == normal(name)), None)
    if at is None:
        return text if written is None else _append(text, words, f"--{name} {written}".rstrip())
    flag = words[at]
    after = words[at + 1] if at + 1 < len(words) else None
    if "=" in flag.text or (after is not None and not after.quoted and after.text[:1] == "-"):
        after = None
    held: object = True
    if "=" in flag.text or after is not None:
        held = scalars.value_of(after.text if after else flag.text.partition("=")[2])
    if same(held, value):
        return text
    return _cut(text, flag) if written is None else _reset(text, flag, after, written)


def _reset(text: str, flag: Word, after: Word | None, written: str) -> str:
    """Give a flag that stands there another value."""
    if "=" in flag.text:
        raw = _row(text, flag)[flag.start : flag.end]
        return _put(text, flag, f"{raw.partition('=')[0]}={written}")
    if after is not None:
        return _put(text, after, written)
    return _put(text, flag, f"{flag.text} {written}") if written else text


def _written(key: str, value: object, dialect: str) -> tuple[str, str | None]:
    """Return flag name and its written value: "" for a bare switch, None to leave the flag out."""
    key = key.lstrip("-")
    name, dot, inner = key.partition(".")
    if dot and dialect in WORDED:
        return name, f"'{json.dumps(nested(inner.split('.'), value))}'"
    if isinstance(value, bool) and dialect not in WORDED:
        return key, "" if value else None
    if isinstance(value, (list, tuple)):
        return key, " ".join(_quoted(str(item)) for item in value)
    return key, f"'{json.dumps(value)}'" if isinstance(value, dict) else _quoted(str(value))


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:=,@%+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _names(word: Word) -> str:
    if not word.text.startswith("-") or word.quoted:
        return ""
    return normal(word.text.lstrip("-").partition("=")[0])


def _main(text: str) -> list[Word]:
    """Return the words of the command that trains or serves: the one with most of them."""
    best: list[Word] = []
    for words in shell_text.commands(Lines.of_text("", text)):
        rest = [word for word in words if shell_text.assignment(word) is None]
        if rest and rest[0].text.rpartition("/")[2] not in SKIPPED and len(rest) > len(best):
            best = rest
    return best


def _row(text: str, word: Word) -> str:
    return text.split("\n")[word.row]


def _put(text: str, word: Word, written: str) -> str:
    rows = text.split("\n")
    line = rows[word.row]
    start, end = word.start, word.end
    if word.quoted:  # the quotes stand outside the word
        start, end = start - 1, end + 1
    rows[word.row] = line[:start] + written + line[end:]
    return "\n".join(rows)


def _cut(text: str, word: Word) -> str:
    rows = text.split("\n")
    line = rows[word.row]
    rest = line[word.end :]
    left = (
        line[: word.start].rstrip() + rest
        if line[: word.start].strip()
        else line[: word.start] + rest.lstrip()
    )
    if left.strip() in ("", "\\"):
        del rows[word.row]
        if left.strip() == "" and word.row and rows[word.row - 1].rstrip().endswith("\\"):
            rows[word.row - 1] = rows[word.row - 1].rstrip()[:-1].rstrip()
    else:
        rows[word.row] = left
    return "\n".join(rows)


def _append(text: str, words: list[Word], written: str) -> str:
    """Add a flag behind the last word; on a line of its own where the flags have theirs."""
    rows = text.split("\n")
    last = words[-1]
    end = last.end + 1 if last.quoted else last.end
    line = rows[last.row]
    if last.row == words[0].row:
        rows[last.row] = f"{line[:end]} {written}{line[end:]}"
        return "\n".join(rows)
    first = next(word for word in words if word.row == last.row)
    lead = line[: len(line) - len(line.lstrip())] if first.row != words[0].row else "    "
    rest = line[end:].strip()
    rows[last.row] = f"{line[:end]} \\"
    rows.insert(last.row + 1, f"{lead}{written}" + (f" {rest}" if rest else ""))
    return "\n".join(rows)


def _export(text: str, name: str, value: str) -> str:
    """Change the assignment of a variable where the script has one, or export it in front."""
    lines = Lines.of_text("", text)
    for words in shell_text.commands(lines):
        for word in words:
            pair = shell_text.assignment(word)
            if pair is not None and pair[0] == name and not word.quoted:
                new = merged(pair[1], value, name)
                return text if new == pair[1] else _put(text, word, f"{name}={_quoted(new)}")
    rows = text.split("\n")
    at = 0
    while at < len(rows) and (rows[at].startswith("#") or not rows[at].strip()):
        at += 1
    rows.insert(min(at, len(rows) - 1) if rows[-1] == "" else at, f"export {name}={_quoted(value)}")
    return "\n".join(rows)


def merged(old: str, new: str, name: str) -> str:
    """Return a variable's new value; options of the allocator that it does not name are kept."""
    from oomdoctor.facts import alloc_conf

    if name not in alloc_conf.NAMES:
        return new
    options = dict(alloc_conf.options(old))
    options.update(alloc_conf.options(new))
    return ",".join(f"{option}:{value}" for option, value in options.items()) or new


def is_command(text: str) -> bool:
    """Say whether a text holds a command whose flags can be set."""
    return bool(_main(text)) and bool(command_line.read(Lines.of_text("", text)).programs)
