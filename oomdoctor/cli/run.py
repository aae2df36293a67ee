"""`oomdoctor run`: a command as it is, with a bundle that says afterwards why it ended."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import click

from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.run_options import Asked, run_options, settings_of
from oomdoctor.cli.run_virtual import on_cards_of, tell_virtual, virtual_options, virtual_session
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.cli.run_virtual import AskedVirtual
    from oomdoctor.recorder.recording import Ended, Settings


class Run(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor run python train.py", "record a run, and say why it ended"),
        Example("oomdoctor run -- torchrun --nproc-per-node 8 train.py", "all ranks of a job"),
        Example("oomdoctor run --stop-after 30m -- bash job.sh", "end it when it hangs"),
        Example(
            "oomdoctor run --virtual-gpu 'RTX 4090' -- python train.py",
            "on a card that is not there",
        ),
        Example("oomdoctor show last", "look at the last run again"),
    )


@click.command("run", cls=Run, context_settings={"allow_interspersed_args": False})
@run_options
@virtual_options
def command(**values: object) -> int:
    """Run COMMAND as it is, and keep what is needed to say afterwards why it ended.

    The command has its usual input, output, signals and exit code. Its processes are watched from
    outside, Python processes from inside as well; nothing in them is changed. At its end the run
    is diagnosed; `oomdoctor show` lists the runs and opens them again.
    """
    asked = cast("Asked", values)
    with virtual_session(cast("AskedVirtual", values), asked["command"]) as session:
        words = asked["command"] if session is None else session.command
        ended = _recorded(words, on_cards_of(session, settings_of(asked)))
        if ended.problem is not None:
            return _not_started(ended, asked["command"][0])
        with suppress(KeyboardInterrupt):  # the bundle is whole but for what `show` makes up for
            tell_virtual(session, ended, quiet=asked["quiet"])
            _conclude(ended, asked)
    return ended.exit_code


def _recorded(words: tuple[str, ...], settings: Settings) -> Ended:
    """Record the run, elsewhere where no bundle can be made here; without one if need be."""
    from oomdoctor.cli.output import say
    from oomdoctor.recorder.recording import NotRecordedError, record

    try:
        return record(words, settings)
    except NotRecordedError as error:
        reason = error.message
    import tempfile

    other = Path(tempfile.gettempdir()) / f"oomdoctor-{os.getuid()}" / "runs"
    say(f"oomdoctor: no bundle can be kept in {settings.runs} ({reason}); it is kept in {other}")
    try:
        return record(words, replace(settings, runs=other))
    except NotRecordedError as error:
        say(f"oomdoctor: nor there ({error.message}): the run is not recorded")
        _become(words)


def _become(words: tuple[str, ...]) -> NoReturn:
    """Be the command itself."""
    os.execvp(words[0], words)  # noqa: S606 - the command that the user asked to run


def _not_started(ended: Ended, program: str) -> int:
    """Say that nothing ran, and leave no bundle of it."""
    import shutil

    from oomdoctor.cli.output import say

    shutil.rmtree(ended.folder, ignore_errors=True)
    say(f"error: {program}: {ended.problem}")
    return ended.exit_code


def _conclude(ended: Ended, asked: Asked) -> None:
    """Diagnose the run, and say in a line what came of it and where that stands."""
    from oomdoctor.cli.output import say

    if ended.unwritten is not None:
        end = f"exit code {ended.exit_code} after {ended.told['seconds']} s"
        say(f"oomdoctor: {end}; that is not in the bundle: {ended.unwritten} - {ended.folder}")
        return
    if not asked["diagnosis"]:
        if not asked["quiet"]:
            say(f"oomdoctor: {ended.folder}")
        return
    line = f"oomdoctor: not diagnosed - {ended.folder}"
    with suppress(Exception):  # the exit code is that of the command, whatever becomes of us
        from oomdoctor.cli.run_end import conclude

        line = conclude(ended.folder).line
    if not asked["quiet"]:
        say(line)
