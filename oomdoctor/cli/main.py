"""The entry point: a lazy group of commands, and what happens when one of them fails.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

import click

from oomdoctor import __version__
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Entry, Example, LazyGroup
from oomdoctor.errors import OomdoctorError

PROGRAM = "oomdoctor"
COMPLETE_VAR = "_OOMDOCTOR_COMPLETE"
ISSUES = "Please report it with the command, the input (redacted) and the traceback of -v."
COMMANDS = {
    "diagnose": Entry(
        "oomdoctor.cli.diagnose",
        "command",
        "Say which kind of out-of-memory logs and configs show, why, and what to change.",
    ),
    "lint": Entry(
        "oomdoctor.cli.lint",
        "command",
        "Check configs before launch: will it fit, will it run, is it right?",
    ),
    "data": Entry(
        "oomdoctor.cli.data",
        "command",
        "Count the tokens of a data set: lengths, padding, packing, the peak batch.",
    ),
    "estimate": Entry(
        "oomdoctor.cli.estimate",
        "command",
        "Predict the peak of a job without a card: what it is made of, where it fits.",
    ),
    "plan": Entry("oomdoctor.cli.plan", "command", "Find the settings that fit a model on a card."),
    "bisect": Entry(
        "oomdoctor.cli.bisect",
        "command",
        "Find the exact batch or length at which memory runs out, by few real trials.",
    ),
    "confirm": Entry(
        "oomdoctor.cli.confirm",
        "command",
        "Prove a cause by experiment, or refute it: as it is, treated, and a control.",
    ),
    "snapshot": Entry(
        "oomdoctor.cli.snapshot", "group", "Say what a memory snapshot shows: leaks, peak, holes."
    ),
    "run": Entry(
        "oomdoctor.cli.run",
        "command",
        "Run a command as it is, and say afterwards why it ended.",
    ),
    "show": Entry(
        "oomdoctor.cli.show",
        "command",
        "List the recorded runs, or open one of them again.",
    ),
    "watch": Entry(
        "oomdoctor.cli.watch",
        "command",
        "Watch the memory of what runs: does it grow, how, and until when?",
    ),
    "collect": Entry(
        "oomdoctor.cli.collect",
        "command",
        "Put inputs and diagnosis into a bundle without names and secrets.",
    ),
    "explain": Entry("oomdoctor.cli.explain", "command", "Explain a rule, a cause, or a fact."),
    "rules": Entry(
        "oomdoctor.cli.rules", "group", "List, test, write and publish diagnostic rules."
    ),
    "facts": Entry("oomdoctor.cli.facts", "command", "List the facts that rules are made of."),
    "completion": Entry(
        "oomdoctor.cli.completion", "command", "Print the completion script of a shell."
    ),
}


class Main(LazyGroup):
    """The root of all commands."""

    entries = COMMANDS
    examples = (
        Example("oomdoctor diagnose crash.log --config train.yaml", "why did this run die?"),
        Example("nvidia-smi | oomdoctor diagnose crash.log -", "add what the card says"),
        Example("oomdoctor explain logits-vocab-fp32", "what is this cause?"),
    )


@click.group(
    cls=Main,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 answered, 1 findings at --fail-on, 2 wrong use, 3 failure, "
    "4 not enough evidence, 5 refused by the safety guard.",
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """Say which kind of out-of-memory a log shows, why, and what to change."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    One answer makes hardly any garbage in cycles, so looking for it is put off.
    """
    gc.set_threshold(1_000_000)
    code = run(sys.argv[1:] if arguments is None else arguments)
    if sys.gettrace() is None and sys.getprofile() is None:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """Leave at once: taking all objects apart one by one is a tenth of the time of a short run."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # what could not be told by now never can
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line; return the exit code, with failures told on standard error."""
    if sys.stdout is None or sys.stderr is None:
        from oomdoctor.cli.output import open_streams

        open_streams()
    talkative = any(_is_verbose(one) for one in arguments)
    try:
        answer = cli.main(
            arguments, prog_name=PROGRAM, complete_var=COMPLETE_VAR, standalone_mode=False
        )
        sys.stdout.flush()
    except click.ClickException as error:
        return _tell(_usage(error), None, code=ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        from oomdoctor.cli.output import silence_stdout

        silence_stdout()
        return int(ExitCode.DONE)
    except OomdoctorError as error:
        return _tell(f"error: {error}", error if talkative else None, code=error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last resort of the program
        return _tell_of_fault(error, talkative=talkative)
    return answer if isinstance(answer, int) else int(ExitCode.DONE)


def _tell_of_fault(error: Exception, *, talkative: bool) -> int:
    """Tell of what nobody foresaw; all that looks for a folder which is gone fails alike."""
    if isinstance(error, FileNotFoundError) and not _has_folder():
        return _tell("error: the current folder is gone", None, code=ExitCode.USAGE)
    text = f"internal error: {type(error).__name__}: {error}\n  hint: {ISSUES}"
    return _tell(text, error if talkative else None, code=ExitCode.FAULT)


def _has_folder() -> bool:
    """Say whether the folder that this runs in is still there."""
    from pathlib import Path

    with suppress(FileNotFoundError):
        return bool(Path.cwd())
    return False


def _usage(error: click.ClickException) -> str:
    """Say what is wrong with a command line, and where its help is; of a bare group its help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # click 8.1 has no such class
        return error.format_message()
    message = f"error: {error.format_message()}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    return f"{message}\n  hint: `{context.command_path} --help` shows how it is used"


def _is_verbose(argument: str) -> bool:
    short = argument.startswith("-") and not argument.startswith("--")
    return argument == "--verbose" or (short and set(argument[1:]) == {"v"})


def _tell(message: str, error: Exception | None, *, code: int) -> int:
    """Print a message on standard error; with `error` also the traceback."""
    from oomdoctor.cli.output import say

    if error is not None:
        import traceback

        say("".join(traceback.format_exception(error)).rstrip("\n"))
    say(message)
    return int(code)
