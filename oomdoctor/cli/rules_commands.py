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
    """List rules: code, title, and the cause or (for lint) the name.

    PATTERN is the start of a code, or a word out of a cause, name or title.
    """
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.rules.loader import ALL, load_rules

    ruleset = load_rules((*rule_directories(), *rules), preview=True, bundles=ALL)
    found = [rule for rule in ruleset.rules if _matches(rule, pattern)]
    if style == "json":
        write_result(json.dumps([_as_dict(rule) for rule in found], indent=2) + "\n")
    else:
        from oomdoctor.render.text import paint

        theme = theme_for(color="auto", width=None)
        write_result(paint(_table(found, theme), theme))
        if not found:
            say(f"no rule matches {pattern!r}; `oomdoctor rules list` shows all")
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
        about = rule.cause or f"{'lint' if rule.category else 'side finding'}: {rule.name}"
        spans = [Span(rule.title), Span(f" [{about}]", "dim")]
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


@click.command("new")
@click.argument("code")
@click.argument("name")
@click.argument("directory", required=False, type=click.Path(file_okay=False))
def new_rule(code: str, name: str, directory: str | None) -> int:
    """Write the skeleton of rule CODE called NAME below DIRECTORY (here, without it).

    It has the shape of a rule and says what to fill in; `oomdoctor rules test` tells when it is
    done. CODE is three letters and four digits, NAME names the problem and not the cure.
    """
    from oomdoctor.authoring.scaffold import write_template

    say(f"written to {write_template(code.upper(), name, Path(directory or '.'))}")
    return int(ExitCode.DONE)


@click.command("docs")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    required=True,
    help="The directory that the pages are written to.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a page is stale.")
@rules_option
def write_docs(output: str, rules: tuple[str, ...], *, check: bool) -> int:
    """Write a Markdown page for each rule, and an index of them."""
    from oomdoctor.authoring.page import markdown_page
    from oomdoctor.rules.loader import ALL, load_rules

    ruleset = load_rules(rules, preview=True, bundles=ALL)
    pages = {
        f"{rule.code}.md": markdown_page(rule, ruleset.causes.get(rule.cause or ""))
        for rule in ruleset.rules
    }
    index = [f"- [{rule.code}]({rule.code}.md) {rule.title}" for rule in ruleset.rules]
    pages["README.md"] = "\n".join(["# Rules", "", *index, ""])
    folder = Path(output)
    stale = [name for name, text in pages.items() if not _holds(folder / name, text)]
    if check:
        say(f"{len(stale)} stale pages{': ' if stale else ''}{', '.join(stale[:5])}")
        return int(ExitCode.FINDINGS if stale else ExitCode.DONE)
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).write_text(pages[name], encoding="utf-8", newline="\n")
    say(f"{len(pages)} pages in {folder}, {len(stale)} of them written")
    return int(ExitCode.DONE)


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


@click.command("schema")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file.")
@click.option("--force", is_flag=True, help="Overwrite it.")
def print_schema(output: str | None, *, force: bool) -> int:
    """Print the JSON Schema of rule files, for editors and other checkers."""
    from oomdoctor.authoring.schema import schema_text

    write_result(schema_text(), path=output, force=force)
    return int(ExitCode.DONE)


@click.command("bundle")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the bundle is stale.")
def write_bundle(directory: str | None, *, check: bool) -> int:
    """Compile the rules of DIRECTORY (those that are shipped, without it) to their bundles."""
    from oomdoctor.rules import bundle, stored

    home = Path(directory) if directory else bundle.rules_dir()
    if check:
        current = bundle.is_current(home)
        say(f"{home / stored.BUNDLE} (with {stored.LINT}) is {'current' if current else 'stale'}")
        return int(ExitCode.DONE if current else ExitCode.FINDINGS)
    for path in bundle.write(home):
        say(f"written to {path}")
    return int(ExitCode.DONE)
