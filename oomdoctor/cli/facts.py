"""`oomdoctor facts`: list the facts that rules are made of."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import complete_fact
from oomdoctor.cli.output import theme_for, write_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.facts.question import Question
    from oomdoctor.model.core import FactSpec
    from oomdoctor.render.layout import Line
    from oomdoctor.render.theme import Theme


class Facts(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor facts", "all facts"),
        Example("oomdoctor facts 'train.*'", "those of the training job"),
        Example("oomdoctor facts checkpoint", "those that speak of checkpointing"),
    )


@click.command("facts", cls=Facts)
@click.argument("pattern", required=False, shell_complete=complete_fact)
@click.option(
    "-f", "--format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(pattern: str | None, **others: str) -> int:
    """List facts: key, kind and meaning, and the question of `diagnose --ask` for it.

    PATTERN is a key with * and ?, or a word out of the key or its meaning.
    """
    rows = matching(pattern)
    if not rows:
        from oomdoctor.errors import UsageError
        from oomdoctor.facts.registry import did_you_mean

        raise UsageError(f"no fact matches {pattern!r}", hint=did_you_mean(pattern or ""))
    if others["format"] == "json":
        write_result(json.dumps([_as_dict(row) for row in rows], indent=2, sort_keys=True) + "\n")
    else:
        from oomdoctor.render.text import paint

        theme = theme_for(color="auto", width=None)
        write_result(paint(_table(rows, theme), theme))
    return int(ExitCode.DONE)


def matching(pattern: str | None) -> list[FactSpec]:
    """Return the rows whose key matches a pattern, or whose key or meaning holds a word."""
    from oomdoctor.facts.registry import specs

    rows = specs().values()
    if pattern is None:
        return list(rows)
    if any(sign in pattern for sign in "*?["):
        return [row for row in rows if fnmatchcase(row.key, pattern)]
    word = pattern.lower()
    return [row for row in rows if word in row.key or word in row.doc.lower()]


def _table(rows: Sequence[FactSpec], theme: Theme) -> list[Line]:
    from oomdoctor.facts.questions import questions_by_fact
    from oomdoctor.render.layout import Span, flow

    asked = questions_by_fact()
    widest = max(len(row.key) for row in rows)
    lines: list[Line] = []
    for row in rows:
        head = f"{row.key:<{widest}}  {row.kind.value:<7}  "
        if len(head) > theme.width // 2:
            lines.append((Span(row.key, "strong"), Span(f"  {row.kind.value}", "dim")))
            head = "    "
        parts = [Span(row.doc)]
        if row.key in asked:
            parts.append(Span(f" --ask: {asked[row.key].text}", "dim"))
        lines += flow(parts, width=theme.width, first=head)
    return lines


def _as_dict(row: FactSpec) -> dict[str, object]:
    from oomdoctor.facts.questions import questions_by_fact

    question = questions_by_fact().get(row.key)
    return {
        "key": row.key,
        "kind": row.kind.value,
        "doc": row.doc,
        "choices": list(row.choices),
        "obtain": row.obtain,
        "cost_s": row.cost_s,
        "closed_by": list(row.closed_by),
        "question": None if question is None else question.text,
        "answers": {} if question is None else _answers(question, row.key),
    }


def _answers(question: Question, key: str) -> dict[str, str]:
    """Return the answers that state `key`, each with the value it states."""
    return {
        choice.text: item.partition("=")[2]
        for choice in question.choices
        for item in choice.sets
        if item.partition("=")[0] == key
    }
