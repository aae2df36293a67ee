"""Runs a command as if nobody watched, and keeps a bundle of the run.

    ended = record(["python", "train.py"], Settings(runs=Path(".oomdoctor/runs")))
    ended.exit_code     # that of the command, as a shell tells it

The command has our standard input, session and process group; its two streams pass through a
process that copies them. What the recorder cannot write, it leaves out: the command goes on.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.errors import OomdoctorError
from oomdoctor.probe import processes
from oomdoctor.record import dataclass, field
from oomdoctor.recorder import command as commands
from oomdoctor.recorder import places, run_file
from oomdoctor.recorder.kernel import Kernel
from oomdoctor.recorder.output_file import last_output
from oomdoctor.recorder.progress import Progress
from oomdoctor.recorder.sampling import Sampler
from oomdoctor.recorder.signals import PASSED_ON, Signals
from oomdoctor.recorder.streams import Streams
from oomdoctor.recorder.way_in import environment_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from oomdoctor.recorder.cards import Look
    from oomdoctor.recorder.signals import Received
    from oomdoctor.recorder.stopping import Stopping

HANG_S = 600.0
_DRAIN_S = 10.0  # that output may take to be copied after the end of the command
_QUIET_S = 0.3  # without any more of it
_LOOK_S = 0.02
_MOST_SIGNALS = 100


class NotRecordedError(OomdoctorError):
    """No bundle can be made, so that the command was not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is recorded.

    `silent_s` is how long nothing may be printed and no step be made until that is noted,
    `stop_after_s` until the command is ended; None: never. `inside` are settings for what is
    injected, `virtual` names the virtual card that `environment` puts the command on, and `look`
    tells its use (None: the machine's own cards are asked).
    """

    runs: Path
    silent_s: float = HANG_S
    stop_after_s: float | None = None
    inject: bool = True
    inside: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    virtual: str | None = None
    look: Look | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that has ended: its bundle, its exit code as a shell tells it, what run.json says.

    `problem` says why the command could not be started, `unwritten` why run.json lacks its end.
    """

    folder: Path
    exit_code: int
    told: Mapping[str, object]
    problem: str | None = None
    unwritten: str | None = None


def record(command: Sequence[str], settings: Settings) -> Ended:
    """Run a command to its end; NotRecordedError where no bundle can be made: nothing has run."""
    environ = {**os.environ, **settings.environment}
    try:
        folder = places.new_bundle(settings.runs, command)
        told = run_file.at_start(folder, command, environ=environ, virtual=settings.virtual)
        run_file.write(folder, told)
        run_file.reserve(folder)
    except OSError as error:
        raise NotRecordedError(error.strerror or str(error)) from error
    inside = environment_of(folder, settings.inside, base=environ) if settings.inject else environ
    with Signals() as signals:
        streams = Streams()
        copier = streams.start_copying(folder)
        kernel = Kernel()
        try:
            pid = commands.start(
                command, environment=inside, ends=streams.ends, mask=signals.before
            )
        except OSError as error:
            streams.give_away()
            _drained(copier, folder)
            problem = error.strerror or "it does not start"
            code = commands.code_of_failure(error)
            return Ended(folder=folder, exit_code=code, told=told, problem=problem)
        streams.give_away()
        run = _Run(folder, command, pid, told, settings)
        status = run.wait(signals, streams)
        _drained(copier, folder)
        unwritten = run.end(status, kernel)
    return Ended(
        folder=folder,
        exit_code=commands.shell_code(status),
        told=run.told,
        unwritten=unwritten,
    )


class _Run:
    """One command under way."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        pid: int,
        told: dict[str, object],
        settings: Settings,
    ) -> None:
        self.told = told
        self._folder = folder
        self._pid = pid
        self._settings = settings
        self._began = time.monotonic()
        # the command runs by now: what is not needed to start it is imported here
        from oomdoctor.recorder.cards import cards_here, cards_told_by
        from oomdoctor.recorder.configs import copy_configs

        self._cards = cards_here() if settings.look is None else cards_told_by(settings.look)
        self._sampler = Sampler(folder, pid, began=self._began, cards=self._cards)
        self._progress = Progress(folder, self._sampler)
        self._stopping: Stopping | None = None
        self._signals: list[dict[str, object]] = []
        self._silent = False
        self._cards_told = False
        self._largest_bytes: int | None = None
        own = processes.stat(pid)
        told["process"] = {"pid": pid, "start": own.start_ticks if own else None}
        with suppress(OSError):
            told["configs"] = copy_configs(command, folder / places.CONFIGS)
            run_file.write(folder, told)

    def wait(self, signals: Signals, streams: Streams) -> int:
        """Look at the command from time to time until it has ended; return how it did."""
        with suppress(Exception):
            self._sampler.look()
        while True:
            ended, status, use = os.wait4(self._pid, os.WNOHANG)
            if ended:
                # what a process was before its exec counts as well: what we hold
                own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                self._largest_bytes = use.ru_maxrss << 10 if use.ru_maxrss > own else None
                return status
            with suppress(Exception):  # whatever becomes of us, the command goes on
                self._look()
            received = signals.wait(self._sampler.wait_s() or _LOOK_S)
            if received is not None:
                self._handle(received, streams)

    def _look(self) -> None:
        self._sampler.look()
        self._look_for_silence()
        if not self._cards_told and self._cards is not None and self._cards.first:
            self._cards_told = True
            self.told["machine"] = run_file.machine_told(self._cards.first)
            self._write()

    def end(self, status: int, kernel: Kernel) -> str | None:
        """Complete the bundle with how the command ended; return why that could not be written."""
        if self._cards is not None:
            self._cards.stop()
        self._sampler.close()
        with suppress(Exception):
            self._look_for_silence()
        code = os.waitstatus_to_exitcode(status)
        printed = last_output(self._folder)
        now = time.time()
        self.told.update(
            ended=run_file.stamp(now),
            seconds=round(time.monotonic() - self._began, 3),
            exit_code=commands.shell_code(status),
        )
        if self._largest_bytes is not None:
            self.told["largest_process_bytes"] = self._largest_bytes
        if code < 0:
            self.told["signal"] = -code
        if printed is not None:
            self.told["last_output_s"] = round(now - printed, 1)
        if self._stopping is not None:
            self.told["stopped"] = True
        with suppress(Exception):
            self.told["kernel_kills"] = kernel.kills(self._sampler.groups)
            kernel.keep_lines(self._folder, abnormal=code != 0)
        try:
            run_file.write_end(self._folder, self.told)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _handle(self, received: Received, streams: Streams) -> None:
        if received.number == signal.SIGWINCH:
            streams.resize()
            self._send(received.number)
        elif received.number in PASSED_ON:
            passed = not received.by_kernel and not processes.is_below(received.sender, self._pid)
            if passed:
                self._send(received.number)
            if len(self._signals) < _MOST_SIGNALS:
                self._signals.append(self._described(received, passed=passed))
                self.told["signals"] = self._signals
                self._write()

    def _described(self, received: Received, *, passed: bool) -> dict[str, object]:
        sender = None if received.by_kernel else processes.stat(received.sender)
        told: dict[str, object] = {
            "t": round(time.monotonic() - self._began, 3),
            "signal": received.number,
            "passed_on": passed,
        }
        if received.by_kernel:
            told["terminal"] = True
        elif sender is not None:
            told["sender"] = sender.name
        return told

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _look_for_silence(self) -> None:
        seconds = self._progress.silent_s()
        if self._stopping is not None:
            self._stopping.go_on(self._sampler.live())
        after = self._settings.stop_after_s
        if after is not None and seconds > after and self._stopping is None:
            self._note_silence(seconds)
            from oomdoctor.recorder.stopping import Stopping

            self._stopping = Stopping(self._pid)
        if seconds > self._settings.silent_s and not self._silent:
            self._silent = True
            self._note_silence(seconds)
        elif self._silent and seconds < self._settings.silent_s and self._stopping is None:
            self._silent = False
            self.told["silences"] = [*self._earlier(), self.told.pop("silence")]
            self._write()

    def _earlier(self) -> list[object]:
        found = self.told.get("silences")
        return list(found) if isinstance(found, list) else []

    def _note_silence(self, seconds: float) -> None:
        self.told["silence"] = self._progress.silence(seconds)
        self._write()

    def _write(self) -> None:
        with suppress(OSError):
            run_file.write(self._folder, self.told)


def _drained(copier: int, folder: Path) -> None:
    """Wait until all output is copied: what the command left behind may hold its streams open."""
    began = time.monotonic()
    while time.monotonic() < began + _DRAIN_S:
        with suppress(ChildProcessError):
            if os.waitpid(copier, os.WNOHANG)[0]:
                return
        silent_s = time.time() - (last_output(folder) or 0.0)
        if time.monotonic() > began + _QUIET_S and silent_s > _QUIET_S:
            return
        time.sleep(_LOOK_S / 10)
