"""The file of an interview: what was asked about and every answer, written after each one.

{"schema": 1, "oomdoctor": "0.1.0", "files": ["/home/me/crash.log"], "config": [], "facts": [],
 "answers": [{"question": "when", "facts": ["run.phase=eval"], "text": "", "pasted": false}]}
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import InputError, Location
from oomdoctor.reason.interview import Answer
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = 1
MOST_BYTES = 64 * 1024**2
_ERRORS = "surrogateescape"
"""How names of files are kept that are no UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What an interview is about, and its answers."""

    files: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()


def write(session: Session, path: str) -> None:
    """Write a session, whole or not at all, for its owner alone."""
    from oomdoctor import __version__

    content = {
        "schema": SCHEMA,
        "oomdoctor": __version__,
        "files": list(session.files),
        "config": list(session.config),
        "facts": list(session.facts),
        "answers": [_as_dict(answer) for answer in session.answers],
    }
    folder = Path(path).resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=".interview-", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors=_ERRORS, newline="\n") as file:
                file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink()
            raise
    except OSError as error:
        raise InputError(
            f"cannot keep the answers: {error.strerror}", location=Location(path=path)
        ) from error


def read(path: str) -> Session:
    """Read a session; InputError where the file is none."""
    try:
        content = json.loads(_content(path))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", location=Location(path=path)) from error
    except (ValueError, RecursionError) as error:
        raise InputError("this is no interview", location=Location(path=path)) from error
    if not isinstance(content, dict) or "answers" not in content:
        raise InputError("this is no interview", location=Location(path=path))
    if content.get("schema") != SCHEMA:
        raise InputError(
            f"an interview of schema {content.get('schema')!r}, this version knows {SCHEMA}",
            location=Location(path=path),
            hint="update oomdoctor, or start anew",
        )
    try:
        return Session(
            files=_paths(content.get("files")),
            config=_paths(content.get("config")),
            facts=_texts(content.get("facts")),
            answers=tuple(_answer(one) for one in content["answers"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError("a damaged interview", location=Location(path=path)) from error


def default_path(environ: Mapping[str, str]) -> str:
    """Return where a new interview is kept: the user's state folder, a name by the clock."""
    base = environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    name = time.strftime("interview-%Y%m%d-%H%M%S")
    return str(folder / "oomdoctor" / f"{name}-{os.getpid()}.json")


def _as_dict(answer: Answer) -> dict[str, object]:
    return {
        "question": answer.question,
        "facts": list(answer.facts),
        "text": answer.text,
        "pasted": answer.pasted,
        "drops": list(answer.drops),
    }


def _answer(content: Mapping[str, Any]) -> Answer:
    return Answer(
        question=str(content["question"]),
        facts=_texts(content.get("facts")),
        text="".join(_texts([content.get("text") or ""])),
        pasted=bool(content.get("pasted")),
        drops=_texts(content.get("drops")),
    )


def _content(path: str) -> str:
    """Return the text of a regular file of a bearable size; ValueError where it is none."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise ValueError(path)
        return file.read(MOST_BYTES).decode("utf-8", _ERRORS)


def _paths(values: object) -> tuple[str, ...]:
    """Return paths as they were written: of files that may be there, or standard input."""
    found = _texts(values, errors=_ERRORS)
    for path in found:
        if "\0" in path or (path != "-" and not Path(path).is_absolute()):
            raise ValueError(path)
    return found


def _texts(values: object, *, errors: str = "replace") -> tuple[str, ...]:
    """Return a list of texts; TypeError or ValueError where it is none."""
    if not isinstance(values, (list, type(None))):
        raise TypeError(type(values).__name__)
    if not all(isinstance(value, str) for value in values or ()):
        raise TypeError("a text is expected")
    return tuple(value.encode("utf-8", errors).decode("utf-8", errors) for value in values or ())
