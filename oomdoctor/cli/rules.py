"""`oomdoctor rules`: list, test, write and publish diagnostic rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from oomdoctor.cli.lazy import Entry, Example, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = "oomdoctor.cli.rules_commands"
COMMANDS: Mapping[str, Entry] = {
    "list": Entry(HOME, "list_rules", "List codes, causes and titles."),
    "test": Entry(HOME, "test_rules", "Check rules: schema, types, inline tests, mutation."),
    "new": Entry(HOME, "new_rule", "Write the skeleton of a new rule."),
    "docs": Entry(HOME, "write_docs", "Write a Markdown page for each rule."),
    "schema": Entry(HOME, "print_schema", "Print the JSON Schema of rule files."),
    "bundle": Entry(HOME, "write_bundle", "Compile all rules to the bundle that is loaded."),
}


class Rules(LazyGroup):
    """The group with its commands and examples."""

    entries = COMMANDS
    examples = (
        Example("oomdoctor rules list ACT2", "the rules of a family"),
        Example("oomdoctor rules test my-rules/", "check rules of your own"),
        Example("oomdoctor rules new ACT2042 my-problem my-rules/", "start a rule"),
    )


@click.group("rules", cls=Rules)
def group() -> None:
    """List, test, write and publish diagnostic rules."""
