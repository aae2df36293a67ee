"""Writers of configs in every syntax, with comments, anchors, odd quotes, tabs, trailing blanks.

Each takes settings by dotted key and writes them so that there is something to lose in an edit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor.configs.difference import nested

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Raw(str):
    """Code that is written as it is, without quotes."""

    __slots__ = ()


def tree(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nest settings by the dots in their keys."""
    made: dict[str, Any] = {}
    for key, value in settings.items():
        if key.startswith("="):  # a name that has a dot in it
            made[key[1:]] = value
            continue
        merge(made, nested(key.split("."), value))
    return made


def merge(into: dict[str, Any], new: Any) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def as_yaml(settings: Mapping[str, Any]) -> str:
    rows = ["# head: with a colon", "", "x_unused: &base {inner: [1, 2]}  # an anchor"]
    rows += yaml_rows(tree(settings), 0)
    rows += ["x_alias: *base", "x_text: |", "  several", "", "  lines # none", "# tail", ""]
    return "\n".join(rows)


def yaml_rows(settings: Mapping[str, Any], indent: int) -> Iterator[str]:
    lead = " " * indent
    for at, (key, value) in enumerate(settings.items()):
        name = {2: f"'{key}'", 5: f'"{key}"'}.get(at % 7, key)
        tail = ("  # why", "", "   ", " # 'odd' \"quotes\"", "", "", " #")[at % 7]
        anchor = f"&a{indent}x{at} " if at % 7 == 1 else ""
        if at % 4 == 3:
            yield f"{lead}# about {key}: x"
        if isinstance(value, dict):
            yield f"{lead}{name}:{tail}"
            yield from yaml_rows(value, indent + 2)
        else:
            yield f"{lead}{name}: {anchor}{yaml_value(value, at)}{tail}"


def yaml_value(value: Any, at: int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(value) + "]"
    if isinstance(value, str):
        return (value, f"'{value}'", f'"{value}"')[at % 3]
    return repr(value)


def as_json(settings: Mapping[str, Any]) -> str:
    text = json.dumps(tree(settings), indent="\t", separators=(" ,", " : "))
    return text.replace(' ,\n\t"', ',\n\n\t"', 1) + "  \n"


def as_toml(settings: Mapping[str, Any]) -> str:
    rows = ["# head", "title = 'x # no comment'\t# tab", ""]
    for section, inner in tree(settings).items():
        rows.append(f"[{section}]  # of {section}")
        for at, (key, value) in enumerate(inner.items()):
            written = f"'{value}'" if isinstance(value, str) and at % 2 else json.dumps(value)
            rows.append(f"{'  ' * (at % 2)}{key} = {written}" + ("  # why", "", "\t", " #")[at % 4])
        rows += ["x_list = [", '  "a", # one', "]", ""]
    return "\n".join([*rows, "# tail", ""])


def as_flags(settings: Mapping[str, Any], command: str, *, dashes: bool = False) -> str:
    rows = ["#!/bin/bash", "# launch: --seed 1", "set -e", "export OMP_NUM_THREADS=4", ""]
    flags = [command, *flag_words(tree(settings), dashes=dashes)]
    tails = (" \\", " \\", "  \\")
    rows += [f"{flag}{tails[at % 3]}" for at, flag in enumerate(flags)]
    return "\n".join([*rows, "\t--x_last 'one two'  # end", "echo done", ""])


def flag_words(settings: Mapping[str, Any], *, dashes: bool) -> Iterator[str]:
    for at, (key, value) in enumerate(settings.items()):
        name = f"{'  ' if at % 2 else chr(9)}--{key.replace('_', '-') if dashes else key}"
        if isinstance(value, dict):
            yield f"{name} '{json.dumps(value)}'"
        elif isinstance(value, list):
            yield f"{name} {' '.join(value)}"
        elif dashes and isinstance(value, bool):
            yield name
        else:
            said = f'"{value}"' if isinstance(value, str) and at % 2 else str(value)
            yield f"{name}={said}" if at % 3 == 2 else f"{name} {said}"


def as_python(calls: Mapping[str, Mapping[str, Any]], head: str) -> str:
    """Write calls; a key with a dot goes into a dictionary."""
    rows = ["#!/usr/bin/env python", '"""A script: bf16=False."""', head, "", "LENGTH = 3  # é"]
    for number, (name, settings) in enumerate(calls.items()):
        rows.append(f"v{number} = {name}(")
        rows.append("    # fp16=True, as it was")
        for at, (key, value) in enumerate(tree(settings).items()):
            equals = " = " if at % 5 == 4 else "="
            rows.append(f"    {key}{equals}{code(value)}," + ("  # why", "", "   ", "\t#")[at % 4])
        rows += [")", ""]
    return "\n".join([*rows, "print('é', LENGTH)  # tail", ""])


def code(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {code(item)}' for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(code(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def as_assignments(settings: Mapping[str, Any]) -> str:
    rows = ["# a run: batch_size = 1", "import time", ""]
    for at, (key, value) in enumerate(settings.items()):
        written = repr(value) if at % 2 else code(value)
        rows.append(f"{key} = {written}" + ("  # why", "", "   ", "\t# tab")[at % 4])
        rows += ["", f"# {key}"] if at % 3 == 2 else []
    return "\n".join([*rows, "run_name = 'x' + str(time.time())", ""])


def as_sections(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a config of torchtitan: calls inside a call."""
    rows = ["from torchtitan.config import TrainingConfig", "", "def ours():"]
    rows.append("    return Trainer.Config(")
    for section, settings in tree(sections).items():
        rows.append(f"        {section}=Some{section.title()}.Config(  # {section}")
        for at, (key, value) in enumerate(settings.items()):
            rows.append(f"            {key}={code(value)}," + ("  # why", "", "  ")[at % 3])
        rows.append("        ),")
    return "\n".join([*rows, "    )", ""])


def as_defaults(settings: Mapping[str, Any], head: str) -> str:
    """Write a script whose flags have the settings as their defaults."""
    rows = [head, "parser = argparse.ArgumentParser()"]
    for at, (key, value) in enumerate(settings.items()):
        rows.append(f'parser.add_argument("--{key}", type={type(value).__name__},')
        rows.append(f"    default={code(value)}" + (",  # why", ", help='x')", ")")[at % 3])
        rows += [")"] if at % 3 == 0 else []
    return "\n".join([*rows, "args = parser.parse_args()", ""])


def as_notebook(text: str) -> str:
    """Put a script into cells of a notebook, a list of lines and a single text."""
    rows = text.splitlines(keepends=True)
    middle = next(i for i, row in enumerate(rows) if row.startswith("v0"))
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# bf16=True\n", "words"]},
        {"cell_type": "code", "outputs": [], "source": ["!pip list\n", *rows[:middle]]},
        {"cell_type": "code", "metadata": {"x": 1.50}, "source": rows[middle:]},
    ]
    return json.dumps({"cells": cells, "nbformat": 4}, indent=1) + "\n"
