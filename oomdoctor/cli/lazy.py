"""A command group that imports a command only when it is called, and help with examples first."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import click

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Entry(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    module: str
    attribute: str
    summary: str


class Example(NamedTuple):
    """A command line, and what it does."""

    command: str
    meaning: str


class HelpWithExamples(click.Command):
    """A command whose help shows examples before the options."""

    examples: Sequence[Example] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the options."""
        write_examples(self.examples, formatter)
        super().format_options(ctx, formatter)


class LazyGroup(click.Group):
    """A group whose commands are known by name and help text alone until one is called."""

    examples: Sequence[Example] = ()
    entries: Mapping[str, Entry] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command of this name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        found = getattr(import_module(entry.module), entry.attribute)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the ones that look like what was typed."""
        name = args[0]
        if name not in self.entries and not ctx.resilient_parsing:
            raise click.UsageError(_unknown(name, self.entries, ctx), ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, the commands, then the options."""
        write_examples(self.examples, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])
        click.Command.format_options(self, ctx, formatter)


def write_examples(examples: Sequence[Example], formatter: click.HelpFormatter) -> None:
    """Write command lines with their meaning, each on lines of its own so that it can be copied."""
    if not examples:
        return
    with formatter.section("Examples"):
        indent = " " * formatter.current_indent
        for at, example in enumerate(examples):
            formatter.write("\n" if at else "")
            formatter.write(f"{indent}# {example.meaning}\n{indent}{example.command}\n")


def _unknown(name: str, names: Mapping[str, Entry], ctx: click.Context) -> str:
    if os.path.exists(name):
        return f"No such command {name!r}. Did you mean `{ctx.command_path} diagnose {name}`?"
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=2, cutoff=0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(names)}."
    return f"No such command {name!r}. {remedy}"
