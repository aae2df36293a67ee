"""A recording of this very process, from where it is asked for to where it ends.

with recording("run-folder") as run:
train()
run.report
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.inject.recording.whole import Recording

_RUN = "OOMDOCTOR_RUN"
_INJECTED = "_oomdoctor_inject"


class Session:
    """One recording in this process; under `oomdoctor run` it does nothing, for that records.

    `folder` is the bundle, `line` says after the end what came of it, `report` is the whole text.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, say: bool = True) -> None:
        """Record from here on; without a folder, below `.oomdoctor/runs`."""
        self.line = ""
        self.report = ""
        self.folder: Path | None = None
        self._say = say
        self._inside: Recording | None = None
        self._told: dict[str, object] = {}
        self._began = time.monotonic()
        if is_recorded():
            self.folder = Path(os.environ[_RUN])
            return
        self._begin(folder)

    @property
    def is_open(self) -> bool:
        """Whether this session itself records."""
        return self._inside is not None

    def tell_arguments(self, told: Mapping[str, object]) -> None:
        """Write what a framework was asked for; nothing that fails here is the program's matter."""
        if self._inside is not None:
            with suppress(Exception):
                self._inside.tell_arguments(dict(told))

    def end(self, error: BaseException | None = None) -> None:
        """Record no more, diagnose, and say what came of it; once."""
        inside, self._inside = self._inside, None
        if inside is None:
            return
        atexit.unregister(self._end_at_exit)
        if error is not None:
            inside.tell_error(error)
        inside.stop()
        with suppress(Exception):  # a diagnosis that fails leaves the bundle as it is
            self._conclude(error)
        if self._say and self.line:
            sys.stderr.write(f"{self.line}\n")

    def _begin(self, folder: str | os.PathLike[str] | None) -> None:
        from oomdoctor.inject.recording.whole import Recording
        from oomdoctor.recorder import run_file

        command = [sys.executable, *sys.argv]
        self.folder = _made(folder, command)
        self._told = run_file.at_start(
            self.folder,
            command,
            environ=os.environ,
            virtual=os.environ.get("OOMDOCTOR_VIRTUAL_NAME"),
        )
        run_file.write(self.folder, self._told)
        run_file.reserve(self.folder)
        self._inside = Recording(str(self.folder), os.environ)
        atexit.register(self._end_at_exit)

    def _end_at_exit(self) -> None:
        value = getattr(sys, "last_value", None)
        self.end(value if isinstance(value, BaseException) else None)

    def _conclude(self, error: BaseException | None) -> None:
        from oomdoctor.cli.run_end import conclude, text_of
        from oomdoctor.recorder import run_file
        from oomdoctor.recorder.places import OUTPUT_FILE

        folder = self.folder
        if folder is None:
            return
        if error is not None:
            lines = traceback.format_exception(type(error), error, error.__traceback__)
            with suppress(OSError):
                run_file.write_whole(folder / OUTPUT_FILE, "".join(lines))
        self._told.update(
            ended=run_file.stamp(time.time()),
            seconds=round(time.monotonic() - self._began, 3),
            exit_code=0 if error is None else 1,
        )
        run_file.write_end(folder, self._told)
        examined, self.line = conclude(folder)
        self.report = text_of(examined)


@contextmanager
def recording(
    folder: str | os.PathLike[str] | None = None, *, say: bool = True
) -> Iterator[Session]:
    """Record a block, and diagnose it at its end; an exception goes on as it came."""
    session = Session(folder, say=say)
    try:
        yield session
    except BaseException as error:
        session.end(error)
        raise
    session.end()


def is_recorded() -> bool:
    """Say whether the process was started by `oomdoctor run`."""
    injected: Any = sys.modules.get(_INJECTED)
    return injected is not None and bool(os.environ.get(_RUN))


def _made(folder: str | os.PathLike[str] | None, command: list[str]) -> Path:
    """Return the folder of the bundle, made; a bundle that is there already is left alone."""
    from oomdoctor.recorder.places import is_bundle, new_bundle, runs_folder

    if folder is None:
        return new_bundle(runs_folder(None), command)
    wanted = Path(folder).absolute()
    number = 1
    found = wanted
    while is_bundle(found):
        number += 1
        found = wanted.with_name(f"{wanted.name}-{number}")
    found.mkdir(parents=True, exist_ok=True)
    return found
