"""Options that several commands share, spelled once."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from click.shell_completion import CompletionItem

F = TypeVar("F", bound="Callable[..., object]")
SHARED = ("markdown", "html")  # what goes to others: names and secrets are taken out of it
SEVERITIES = ("info", "warning", "error")
_START = 4096
_OF_A_SNAPSHOT = (b"segments", b"device_traces")


def complete_fact(_ctx: object, _param: object, incomplete: str) -> list[CompletionItem]:
    """Complete a fact key (also before `=`)."""
    from click.shell_completion import CompletionItem

    from oomdoctor.facts.registry import specs

    return [
        CompletionItem(key, help=spec.doc)
        for key, spec in specs().items()
        if key.startswith(incomplete)
    ]


def complete_code(_ctx: object, _param: object, incomplete: str) -> list[CompletionItem]:
    """Complete a rule's code."""
    from click.shell_completion import CompletionItem

    from oomdoctor.rules.loader import ALL, load_rules

    return [
        CompletionItem(rule.code, help=rule.title)
        for rule in load_rules(preview=True, bundles=ALL).rules
        if rule.code.lower().startswith(incomplete.lower())
    ]


def complete_name(_ctx: object, _param: object, incomplete: str) -> list[CompletionItem]:
    """Complete what `explain` explains: a code, a cause, or a fact."""
    from click.shell_completion import CompletionItem

    from oomdoctor.rules.loader import load_rules

    causes = [
        CompletionItem(name, help=cause.definition)
        for name, cause in load_rules(preview=True).causes.items()
        if name.startswith(incomplete)
    ]
    codes = complete_code(None, None, incomplete)
    return [*codes, *causes, *complete_fact(None, None, incomplete)]


def input_options(function: F) -> F:
    """Add the inputs, --config and --fact."""
    for option in (
        click.option(
            "--fact",
            multiple=True,
            metavar="KEY=VALUE",
            shell_complete=complete_fact,
            help="Something you know, such as gpu.name='RTX 4090'; outranks the inputs.",
        ),
        click.option(
            "--config",
            multiple=True,
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, allow_dash=True),
            help="A training or serving config, or a script; may be given again.",
        ),
        click.argument(
            "files",
            nargs=-1,
            metavar="[FILE|DIR|-]...",
            type=click.Path(exists=True, allow_dash=True),
        ),
    ):
        function = option(function)
    return function


def check_inputs(given: Sequence[str], *, what: str = "a log", needed: bool = True) -> None:
    """Refuse a command line without any input, and standard input that is given twice."""
    if needed and not given:
        raise click.UsageError(f"no input: give {what}, a directory, or - for standard input")
    if given.count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")


def is_run(path: str) -> bool:
    """Say whether an input is the bundle of a recorded run."""
    return os.path.isfile(os.path.join(path, "run.json"))


def is_snapshot(path: str) -> bool:
    """Say whether an input is a memory snapshot of PyTorch: a pickle, or JSON, also with gzip."""
    if not os.path.isfile(path):  # what comes through a pipe can be read only once
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
    except (OSError, ValueError):
        return False
    if start.startswith(b"\x1f\x8b"):
        import zlib

        try:
            start = zlib.decompressobj(31).decompress(start, _START)
        except zlib.error:
            return False
    if start.startswith(b"\x80"):
        return any(word in start for word in _OF_A_SNAPSHOT)
    key = start.lstrip().removeprefix(b"{").lstrip()
    return any(key.startswith(b'"%b"' % word) for word in _OF_A_SNAPSHOT)


def standard_input() -> BinaryIO | None:
    """Return the bytes of standard input, None in a process that was started without it."""
    return sys.stdin.buffer if sys.stdin is not None else None


def output_options(function: F) -> F:
    """Add --output, --force, --color and --width."""
    for option in (
        click.option(
            "--width", metavar="N", type=click.IntRange(min=40), help="Columns of the text page."
        ),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Colour; auto obeys NO_COLOR and FORCE_COLOR, then asks the terminal.",
        ),
        click.option("--force", is_flag=True, help="Overwrite the file of --output."),
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False),
            help="Write to this file instead of standard output.",
        ),
    ):
        function = option(function)
    return function


def rules_option(function: F) -> F:
    """Add --rules."""
    return click.option(
        "--rules",
        "rules",
        multiple=True,
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="A directory of further rules; may be given again.",
    )(function)


def rule_options(function: F) -> F:
    """Add --rules, --preview and --strict-rules."""
    for option in (
        click.option("--strict-rules", is_flag=True, help="Exit 3 if a rule could not be used."),
        click.option("--preview", is_flag=True, help="Let sandbox rules speak, too."),
        rules_option,
    ):
        function = option(function)
    return function


def selection_options(function: F) -> F:
    """Add --select and --ignore."""
    for option in (
        click.option(
            "--ignore",
            multiple=True,
            metavar="CODE",
            shell_complete=complete_code,
            help="Leave the rules out whose code starts so; may be given again.",
        ),
        click.option(
            "--select",
            multiple=True,
            metavar="CODE",
            shell_complete=complete_code,
            help="Use only the rules whose code starts so; may be given again.",
        ),
    ):
        function = option(function)
    return function


def talk_options(function: F) -> F:
    """Add --quiet and --verbose."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Say more, and show tracebacks."),
        click.option("-q", "--quiet", is_flag=True, help="Only the verdict; no notes."),
    ):
        function = option(function)
    return function


def codes_of(values: tuple[str, ...]) -> tuple[str, ...]:
    """Split comma-separated codes and spell them in capitals."""
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code)
