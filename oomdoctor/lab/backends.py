"""Back ends by name, made of plain values that can be sent to another machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.model.job import CardSpec  # noqa: TC001 - read by its type when sent to a machine
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.lab.backend import Backend
    from oomdoctor.lab.places import Stop

JOB, COMMAND = "job", "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """What a back end is made of, as plain values that can be sent to another machine.

    `runs` is job or command. `folder` is that of the run, `python` the interpreter with torch,
    `environment` set on top of the trials' own; `card` is the one that is simulated.
    """

    name: str
    runs: str
    folder: str
    python: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    card: CardSpec | None = None
    settings: str = ""
    outside_bytes: int = 0


def backend_of(spec: BackendSpec, stop: Stop, environment: Mapping[str, str]) -> Backend:
    """Return a new back end; `stop` gives the reason why a trial has to end, None while it may run.

    `environment` goes on top of the spec's own: the cards of the place.
    """
    whole = {**spec.environment, **environment}
    if spec.name == "simulate":
        return _simulation(spec)
    folder = Path(spec.folder)
    if spec.runs == COMMAND:
        from oomdoctor.lab.command_trial import CommandBackend

        return CommandBackend(
            spec.name, folder=folder, environment=whole, stop=stop, python=spec.python
        )
    from oomdoctor.lab.job_trial import JobBackend

    return JobBackend(spec.name, folder=folder, environment=whole, stop=stop, python=spec.python)


def _simulation(spec: BackendSpec) -> Backend:
    from oomdoctor.lab.session import WorkerSession
    from oomdoctor.lab.simulate_trial import SimulateBackend

    if spec.runs == COMMAND:
        raise UsageError(
            "--backend simulate traces a job; a command can only be run",
            hint="give the config instead of the command, or --backend cuda, virtual or cpu",
        )
    if spec.card is None:
        raise UsageError("--backend simulate needs a card or a cap: --gpu NAME or --cap SIZE")
    return SimulateBackend(
        WorkerSession(python=spec.python),
        spec.card,
        settings=spec.settings,
        outside_bytes=spec.outside_bytes,
    )
