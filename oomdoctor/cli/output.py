"""Where a result goes, and what the stream it goes to can show."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location, OomdoctorError
from oomdoctor.render.theme import Theme, colour_wanted, unicode_wanted, width_wanted

if TYPE_CHECKING:
    from typing import TextIO

_MOST_DIGITS = 6


def theme_for(
    *, color: str, width: int | None, to_file: bool = False, stream: TextIO | None = None
) -> Theme:
    """Decide colour, character set and width for a stream (standard output) or a file."""
    stream = sys.stdout if stream is None else stream
    terminal = not to_file and stream.isatty()
    return Theme(
        width=width_wanted(width, columns=None if to_file else _columns(stream)),
        colour=colour_wanted(color, environ=os.environ, terminal=terminal)
        if not to_file
        else color == "always",
        unicode=to_file or unicode_wanted(stream.encoding, environ=os.environ),
    )


def _columns(stream: TextIO) -> int | None:
    """Return the columns of a stream: COLUMNS where it is set, else what a terminal says."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and len(given) < _MOST_DIGITS and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def say(text: str) -> None:
    """Print a message on standard error, with all that could act on a terminal neutralised."""
    from oomdoctor.render.escape import visible

    ascii_only = not unicode_wanted(sys.stderr.encoding, environ=os.environ)
    shown = [visible(line, ascii_only=ascii_only) for line in text.split("\n")]
    with suppress(OSError):  # nobody can be told that standard error is full or gone
        print(*shown, sep="\n", file=sys.stderr)  # noqa: T201 - this is where messages are printed


def write_result(text: str, *, path: str | None = None, force: bool = False) -> None:
    """Write a result to standard output, or to a file that is overwritten only with --force."""
    if path is None or path == "-":
        _write_stdout(text)
        return
    try:
        with open(path, "w" if force else "x", encoding="utf-8", newline="\n") as file:
            _write_whole(text, file, path)
    except FileExistsError as error:
        raise InputError(
            "the output file exists",
            location=Location(path=path),
            hint="choose another name, or give --force",
        ) from error
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", location=Location(path=path)) from error


def hand_over(text: str, *, path: str | None, force: bool, quiet: bool) -> None:
    """Write a result where it was asked for, and say where a file is unless all is to be quiet."""
    write_result(text, path=path, force=force)
    if path not in (None, "-") and not quiet:
        say(f"written to {path}")


def _write_whole(text: str, file: TextIO, path: str) -> None:
    """Write a file; leave no half of one where the disk is full."""
    try:
        file.write(text)
        file.flush()
    except OSError:
        if os.path.isfile(path):
            with suppress(OSError):
                os.unlink(path)
        raise


def silence_stdout() -> None:
    """Point standard output at nowhere, so that nothing fails when the interpreter flushes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_stdout(text: str) -> None:
    """Write to standard output; a reader that went away (`| head`) is no failure."""
    try:
        sys.stdout.write(_encodable(text, sys.stdout.encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        raise OomdoctorError(f"cannot write to standard output: {error.strerror}") from error


def _encodable(text: str, encoding: str | None) -> str:
    r"""Return `text` with the characters that the stream cannot carry as `\xe9` or `\u65e5`."""
    if text.isascii():
        return text
    name = encoding or "ascii"
    return text.encode(name, errors="backslashreplace").decode(name)


def open_streams() -> None:
    """Give a process that was started without a stream (`>&-`) one that leads nowhere."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
