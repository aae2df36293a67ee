"""Sets environment variables in a shell script: where it exports them, or in front.

export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import change, shell_text
from oomdoctor.configs.cli_edit import put, quoted
from oomdoctor.configs.setting import Lines

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted


def set_variables(text: str, wanted: Wanted) -> str:
    """Return the script with all wanted environment variables exported."""
    for name, value in wanted.items():
        new = change.new_name(value)
        if change.removes(value) or new is not None:
            text = _ordered(text, name, new)
        else:
            text = _export(text, name, str(value))
    return text


def _ordered(text: str, name: str, new: str | None) -> str:
    """Take the assignment of a variable out, or give the variable another name."""
    for words in shell_text.commands(Lines.of_text("", text)):
        for word in words:
            pair = shell_text.assignment(word)
            if pair is None or pair[0] != name or word.quoted:
                continue
            if new is not None:
                raw = text.split("\n")[word.row][word.start : word.end]
                return put(text, word, new + raw[len(name) :])
            alone = [one for one in words if one.text not in ("export", "declare", "-x")] == [word]
            rows = text.split("\n")
            if alone:
                return "\n".join([*rows[: word.row], *rows[word.row + 1 :]])
            line = rows[word.row]
            rows[word.row] = line[: word.start] + line[word.end :].lstrip(" ")
            return "\n".join(rows)
    return text


def _export(text: str, name: str, value: str) -> str:
    """Change the assignment of a variable where the script has one, or export it in front."""
    lines = Lines.of_text("", text)
    for words in shell_text.commands(lines):
        for word in words:
            pair = shell_text.assignment(word)
            if pair is not None and pair[0] == name and not word.quoted:
                new = merged(pair[1], value, name)
                return text if new == pair[1] else put(text, word, f"{name}={quoted(new)}")
    rows = text.split("\n")
    at = 0
    while at < len(rows) and (rows[at].startswith("#") or not rows[at].strip()):
        at += 1
    ended = "\r" if "\r\n" in text else ""
    written = f"export {name}={quoted(value)}{ended}"
    rows.insert(min(at, len(rows) - 1) if rows[-1] == "" else at, written)
    return "\n".join(rows)


def merged(old: str, new: str, name: str) -> str:
    """Return a variable's new value; options of the allocator that it does not name are kept."""
    from oomdoctor.facts import alloc_conf

    if name not in alloc_conf.NAMES:
        return new
    options = dict(alloc_conf.options(old))
    options.update(alloc_conf.options(new))
    return ",".join(f"{option}:{value}" for option, value in options.items()) or new
