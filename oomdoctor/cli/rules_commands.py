"""The commands of `oomdoctor rules`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import rules_option
from oomdoctor.cli.output import say, theme_for, write_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.layout import Line
    from oomdoctor.render.theme import Theme
    from oomdoctor.rules.shape import Rule


class Listing(HelpWithExamples):
    """`rules list` with its examples."""

    examples = (
        Example("oomdoctor rules list", "all rules"),
        Example("oomdoctor rules list ALC3", "the rules of a family"),
        Example("oomdoctor rules list logits", "rules that speak of logits"),
    )


@click.command("list", cls=Listing)
@click.argument("pattern", required=False)
@click.option("-f", "--format", "style", type=click.Choice(["text", "json"]), default="text")
@rules_option
def list_rules(pattern: str | None, style: str, rules: tuple[str, ...]) -> int:
    """List rules: code, cause and title.

    PATTERN is the start of a code, or a word out of a cause, name or title.
    """
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.rules.loader import load_rules

    ruleset = load_rules((*rule_directories(), *rules), preview=True)
    found = [rule for rule in ruleset.rules if _matches(rule, pattern)]
    if style == "json":
        write_result(json.dumps([_as_dict(rule) for rule in found], indent=2) + "\n")
    else:
        from oomdoctor.render.text import paint

        theme = theme_for(color="auto", width=None, to_file=False)
        write_result(paint(_table(found, theme), theme))
    for code, message in ruleset.faults:
        say(f"warning: {code}: {message}")
    return int(ExitCode.DONE)


def _matches(rule: Rule, pattern: str | None) -> bool:
    if pattern is None or rule.code.startswith(pattern.upper()):
        return True
    word = pattern.lower()
    return any(word in text.lower() for text in (rule.name, rule.cause or "", rule.title))


def _table(rules: Sequence[Rule], theme: Theme) -> list[Line]:
    from oomdoctor.render.layout import Span, flow

    lines: list[Line] = []
    for rule in rules:
        spans = [Span(rule.title), Span(f" [{rule.cause or 'side finding'}]", "dim")]
        lines += flow(spans, width=theme.width, first=f"{rule.code}  ")
    return lines


def _as_dict(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "cause": rule.cause,
        "title": rule.title,
        "severity": rule.severity.value,
        "maturity": rule.maturity.value,
        "since": rule.since,
    }


@click.command("test")
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
def test_rules(paths: tuple[str, ...]) -> int:
    """Check rule files: schema, types, names, inline tests, mutation, savings.

    PATHS are files or directories; without any, the rules that are shipped are checked.
    """
    from oomdoctor.authoring.check import check_paths

    return check_paths(paths)


@click.command("schema")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file.")
@click.option("--force", is_flag=True, help="Overwrite it.")
def print_schema(output: str | None, *, force: bool) -> int:
    """Print the JSON Schema of rule files, for editors and other checkers."""
    from oomdoctor.rules.schema import json_schema

    text = json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
    write_result(text, path=output, force=force)
    return int(ExitCode.DONE)


@click.command("bundle")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the bundle is stale.")
def write_bundle(directory: str | None, *, check: bool) -> int:
    """Compile the rules of DIRECTORY (those that are shipped, without it) to bundle.json."""
    from oomdoctor.rules import bundle

    home = Path(directory) if directory else bundle.rules_dir()
    if check:
        current = bundle.is_current(home)
        say(f"{home / bundle.BUNDLE} is {'current' if current else 'stale'}")
        return int(ExitCode.DONE if current else ExitCode.FINDINGS)
    say(f"written to {bundle.write(home)}")
    return int(ExitCode.DONE)
