"""Runs the trials of a user's unmodified command: on a card, a virtual one, or counted on the host.

The hooks of `inject/` get into its processes through the environment; whoever ends a trial, nothing
of it is left when `run` returns.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.lab import classify
from oomdoctor.lab.classify import Ending
from oomdoctor.lab.edits import with_copies
from oomdoctor.lab.groups import Group
from oomdoctor.lab.host_use import HostUse
from oomdoctor.lab.keys import key_of
from oomdoctor.lab.listening import Listener
from oomdoctor.lab.output_log import OutputLog, tail_of
from oomdoctor.lab.told import Told
from oomdoctor.model.trial import CRASH, HOST_OOM, REFUSED, TIMEOUT, OomIdentity, TrialResult
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.trial import CommandSpec, TrialSpec

LONGEST_S = 600.0
CPU = "cpu"
HOOKS = Path(__file__).resolve().parents[1] / "inject" / "hooks"
_LOOK_S = 0.1
_AFTER_OOM_S = 10.0  # that a program has to fail of, until it is ended: ranks may wait for one
_AFTER_ERROR_S = 20.0
_AFTER_DONE_S = 10.0
_COUNTED = "tensors of the host are counted as if they stood on a card; what an operator needs "
_COUNTED += "inside itself, and the allocator's rounding, are not"
# nothing of a trial goes to a service where its owner looks for real runs
_QUIET = {"WANDB_MODE": "disabled", "COMET_MODE": "disabled", "PYTHONUNBUFFERED": "1"}


class CommandBackend:
    """Each trial is the command in a group of its own; `name` is cuda, virtual or cpu.

    `folder` is that of the run. `environment` is set on top of the trial's own. `stop` is asked
    several times a second; a reason ends the trial as refused. `kernel_kills` counts what the
    kernel killed for memory.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        stop: Callable[[], str | None] = lambda: None,
        python: str | None = None,
        kernel_kills: Callable[[], int | None] = classify.kernel_kills,
    ) -> None:
        """Start nothing yet; the command names its interpreter itself, so `python` is not used."""
        del python
        self.name = name
        self._folder = folder
        self._environment = dict(environment or {})
        self._stop = stop
        self._kernel_kills = kernel_kills

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Run one trial to its end."""
        if spec.command is None:
            raise ValueError("a trial of a command needs a command")
        folder = self._folder / "trials" / key_of(spec)
        command = with_copies(spec.command, folder / "configs")
        path = folder / "output.log"
        before = self._kernel_kills()
        began = time.monotonic()
        with Listener() as listener, OutputLog(path) as output:
            environment = self._environment_of(spec, command, listener.path)
            with Group(
                command.arguments,
                folder=Path(command.folder),
                environment=environment,
                output=output.writes_to,
            ) as group:
                output.given_away()
                trial = _Trial(spec, group, listener, output, self._stop, hear)
                cut = trial.wait(began + (spec.seconds or LONGEST_S))
            trial.hear(listener.rest())
        seconds = time.monotonic() - began
        after = self._kernel_kills()
        kills = None if before is None or after is None else after - before
        ending = cut or classify.ending_of(
            trial.told,
            code=group.code,
            kills=kills,
            output=tail_of(path),
            device=self._device,
            is_capped=spec.cap_bytes is not None,
        )
        return self._result(spec, trial, ending, seconds, path)

    @property
    def _device(self) -> str:
        return CPU if self.name == CPU else "cuda"

    def _environment_of(self, spec: TrialSpec, command: CommandSpec, line: str) -> dict[str, str]:
        """Return the environment of the command: its own, ours, and the way in for the hooks."""
        found = {**os.environ, **_QUIET, **command.environment, **self._environment}
        if self.name == CPU:
            found["CUDA_VISIBLE_DEVICES"] = ""
        wanted = {
            "device": self._device,
            "steps": spec.steps,
            "evaluates": spec.evaluates,
            "saves": spec.saves,
            "cap_bytes": spec.cap_bytes,
            "hooks": {name: dict(given) for name, given in command.hooks.items()},
        }
        paths = [
            str(HOOKS),
            *(
                one
                for one in (
                    self._environment.get("PYTHONPATH"),
                    command.environment.get("PYTHONPATH"),
                    None if "PYTHONPATH" in command.environment else os.environ.get("PYTHONPATH"),
                )
                if one
            ),
        ]
        return {
            **found,
            "PYTHONPATH": ":".join(dict.fromkeys(":".join(paths).split(":"))),
            "OOMDOCTOR_TRIAL": json.dumps(wanted),
            "OOMDOCTOR_TRIAL_SOCKET": line,
        }

    def _result(
        self, spec: TrialSpec, trial: _Trial, ending: Ending, seconds: float, path: Path
    ) -> TrialResult:
        told = trial.told
        phases = told.phases()
        step, tokens = told.step_seconds(), told.tokens_per_step()
        hooks = spec.command.hooks if spec.command else {}
        counted = self.name == CPU and bool(told.speakers)
        return TrialResult(
            key=key_of(spec),
            values=spec.values,
            backend=self.name,
            outcome=ending.outcome,
            reason=ending.reason,
            identity=ending.identity,
            phases=phases,
            allocated_bytes=_highest([one.allocated_bytes for one in phases]),
            reserved_bytes=_highest([one.reserved_bytes for one in phases]),
            device_bytes=_highest([one.device_bytes for one in phases]),
            host_bytes=_highest([trial.host_bytes(), *(one.host_bytes for one in phases)]),
            requested_bytes=ending.requested_bytes,
            steps=told.steps,
            seconds=seconds,
            step_seconds=step,
            tokens_per_second=tokens / step if tokens and step else None,
            rank=ending.rank,
            ranks=told.ranks,
            exit_code=trial.code(),
            killed=ending.killed,
            output_path=str(path),
            assumptions=(*((_COUNTED,) if counted else ()), *dict.fromkeys(told.notes)),
            held_bytes=told.held_bytes(),
            held_sites=tuple(dict.fromkeys(told.held_sites)),
            interventions={name: told.interventions.get(name, 0) for name in hooks},
            versions=told.versions,
        )


class _Trial:
    """One trial under way: what was told so far, and whether it has to be ended."""

    def __init__(
        self,
        spec: TrialSpec,
        group: Group,
        listener: Listener,
        output: OutputLog,
        stop: Callable[[], str | None],
        say: Callable[[str], None],
    ) -> None:
        self.told = Told()
        self._spec = spec
        self._group = group
        self._listener = listener
        self._output = output
        self._stop = stop
        self._say = say
        self._said = ""
        self._use = HostUse(group.keeper_pid) if group.keeper_pid is not None else None
        self._decided: float | None = None
        listener.also(output, self._take_output)
        if group.fileno() >= 0:
            listener.also(group, lambda: group.hear(0.0))

    def wait(self, deadline: float) -> Ending | None:
        """Wait for the end; how it was ended, if something from outside had to end it."""
        try:
            while not self._group.is_over():
                self.hear(self._listener.wait(_LOOK_S))
                cut = self._cut(deadline)
                if cut is not None:
                    return cut
                if self._may_be_ended():
                    return None
        finally:
            self._listener.no_more(self._output)
            self._listener.no_more(self._group)
        if self._group.problem is not None:
            reason = f"the command does not start: {self._group.problem}"
            return Ending(outcome=CRASH, reason=reason)
        if self._group.lost and not (self.told.ooms or self.told.is_done):
            reason = "the process that keeps the command was killed"
            return Ending(outcome=CRASH, reason=reason, killed=True)
        return None

    def hear(self, messages: list[dict[str, object]]) -> None:
        """Take in messages, and say where the trial is."""
        for message in messages:
            self.told.hear(message)
        if messages:
            text = f"step {self.told.steps}" if self.told.steps else "loading"
            if text != self._said:
                self._said = text
                self._say(text)

    def host_bytes(self) -> int | None:
        """Return the highest sum of what the processes held on the host."""
        return self._use.peak_bytes or None if self._use is not None else None

    def code(self) -> int | None:
        """Return the exit code; None where the command was ended by us."""
        return self._group.code

    def _cut(self, deadline: float) -> Ending | None:
        """Return why the trial is over, though the command is not."""
        reason = self._stop()
        if reason is not None:
            return Ending(outcome=REFUSED, reason=reason)
        cap = self._spec.host_cap_bytes
        if self._use is not None:
            self._use.look()
        if self._use is not None and cap is not None and self._use.peak_bytes > cap:
            held = format_size(self._use.peak_bytes)
            return Ending(
                outcome=HOST_OOM,
                reason=f"its processes held {held} on the host, more than the {format_size(cap)} "
                "that they were given",
                identity=OomIdentity(backend=classify.HOST, exception="cap"),
            )
        if time.monotonic() > deadline and not self.told.ooms:
            where = f" after {self.told.steps} steps" if self.told.steps else ""
            if not self.told.speakers:
                where = f": {classify.UNWATCHED}"
            return Ending(outcome=TIMEOUT, reason=f"it did not end within its time{where}")
        return None

    def _may_be_ended(self) -> bool:
        """Say whether it is known what comes of the trial, and the program had time to end."""
        now = time.monotonic()
        if any(one.went_on for one in self.told.speakers.values()):
            return True
        if self.told.is_done:
            patience = _AFTER_DONE_S
        elif self.told.ooms:
            patience = _AFTER_OOM_S
        elif any(one.failed for one in self.told.workers):
            patience = _AFTER_ERROR_S
        else:
            return False
        self._decided = self._decided or now
        return now > self._decided + patience

    def _take_output(self) -> None:
        if not self._output.read() and self._output.is_closed:
            self._listener.no_more(self._output)


def _highest(figures: list[int | None]) -> int | None:
    return max((one for one in figures if one is not None), default=None)
