"""The user's own command: what follows `--`, with placeholders for the values of the axes.

-- python train.py --bs {batch} --max_len {seq}
--edit train.yaml:micro_batch_size={batch} -- accelerate launch train.py train.yaml
"""

from __future__ import annotations

import re
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.lazy import HelpWithExamples
from oomdoctor.model.trial import CommandSpec, FileEdit
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.model.trial import Value

KEPT, GIVEN = "oomdoctor.command", "oomdoctor.given"
"""Where the context keeps the user's command, and all words for the file that starts it again."""
_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


class TakesCommand(HelpWithExamples):
    """A command that takes the user's own behind `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put what stands behind the first `--` aside, then read the options."""
        ctx.meta[GIVEN] = tuple(args)
        if "--" in args:
            at = args.index("--")
            ctx.meta[KEPT] = tuple(args[at + 1 :])
            args = args[:at]
            if not ctx.meta[KEPT]:
                raise click.UsageError("no command stands behind --", ctx)
        return super().parse_args(ctx, args)


def command_given() -> tuple[str, ...]:
    """Return the words behind `--`; none where nobody gave a command."""
    context = click.get_current_context(silent=True)
    words: tuple[str, ...] = () if context is None else context.meta.get(KEPT, ())
    return words


class EditGiven(NamedTuple):
    """A key of a config file that trials set in a copy: FILE:KEY=TEXT, with placeholders."""

    path: str
    key: str
    text: str


class CommandTemplate(NamedTuple):
    """A command with its placeholders, and edits with theirs."""

    arguments: tuple[str, ...]
    edits: tuple[EditGiven, ...]
    folder: str

    def at(self, values: Mapping[str, Value]) -> CommandSpec:
        """Return the command at the values of a trial."""
        return CommandSpec(
            arguments=tuple(_filled(word, values) for word in self.arguments),
            folder=self.folder,
            edits=tuple(
                FileEdit(path=one.path, key=one.key, value=_value(one.text, values))
                for one in self.edits
            ),
        )


def template_of(
    arguments: Sequence[str], edits: Iterable[str], axes: Sequence[str]
) -> CommandTemplate:
    """Return the template; UsageError where an axis changes nothing, or a placeholder is none."""
    given = tuple(_edit(text) for text in edits)
    texts = [*arguments, *(one.text for one in given)]
    used = {name for text in texts for name in _HOLE.findall(text)}
    for name in axes:
        if name not in used:
            raise click.UsageError(
                f"--axis {name}: nothing in the command says {{{name}}}, so it would change"
                f" nothing; put {{{name}}} into the command or an --edit"
            )
    return CommandTemplate(tuple(arguments), given, str(Path.cwd()))


def check_edits(template: CommandTemplate, values: Mapping[str, Value]) -> tuple[str, ...]:
    """Make the edits of one trial and throw them away; InputError where one cannot be made.

    Return notes on keys that the configs do not have: perhaps nothing reads them.
    """
    if not template.edits:
        return ()
    from oomdoctor.lab.edits import keys_added, with_copies

    command = template.at(values)
    with TemporaryDirectory() as folder:
        with_copies(command, Path(folder))
    added = keys_added(command)
    return tuple(f"Not in the file before, trials add it: {one}" for one in added)


def check_start(program: str, path: str | None = None) -> None:
    """Raise UsageError where no trial could start: no such program is here, or in `path`."""
    if not _HOLE.search(program) and which(program, path=path) is None:
        raise click.UsageError(
            f"{program!r} cannot be started: no program of that name is here, or it may not be run"
        )


def _edit(text: str) -> EditGiven:
    place, equals, value = text.partition("=")
    path, colon, key = place.rpartition(":")
    if not (equals and colon and path and key.strip()):
        raise click.UsageError(
            f"--edit {text!r}: expected FILE:KEY=VALUE, as train.yaml:micro_batch_size={{batch}}"
        )
    if not Path(path).is_file():
        raise click.UsageError(f"--edit {text!r}: there is no file {path}")
    return EditGiven(path, key.strip(), value.strip())


def _filled(text: str, values: Mapping[str, Value]) -> str:
    """Return a text with the values in it; braces around anything else stay."""
    return _HOLE.sub(lambda hole: _shown(values.get(hole[1], hole[0])), text)


def _value(text: str, values: Mapping[str, Value]) -> Value:
    """Return what an edit sets: a number stays one."""
    whole = _HOLE.fullmatch(text)
    if whole and whole[1] in values:
        return values[whole[1]]
    filled = _filled(text, values)
    if re.fullmatch(r"-?\d+", filled):
        return int(filled)
    return float(filled) if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", filled) else filled


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
