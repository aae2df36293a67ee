"""A command on virtual cards: the environment that it gets, and what is to be said at its end.

with Session(Wanted(cards=cards_named("RTX 4090 x2"))) as session:
    run(["python", "train.py"], environment={**os.environ, **session.environment})
    for sentence in session.report().sentences(): ...
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.record import NamedTuple, dataclass, replace
from oomdoctor.units import format_size
from oomdoctor.virtual.build import build
from oomdoctor.virtual.environment import PREFIX, environment_of
from oomdoctor.virtual.outside import with_outside
from oomdoctor.virtual.python import python_of, with_venv
from oomdoctor.virtual.report import VirtualReport
from oomdoctor.virtual.run import site_packages_of
from oomdoctor.virtual.unmodelled import read_log
from oomdoctor.virtual.usage import read_usage
from oomdoctor.virtual.wheels import torch_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from oomdoctor.virtual.card import VirtualCard

SHARED_MEMORY = Path("/dev") / "shm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a virtual run is like.

    `others_bytes` are a stranger's on every card, `context_bytes` are each process's own (None: as
    usual), from the driver's allocation `fail_at` on there is no more. `venv` has the CUDA build of
    torch, if the command's own does not. After `steps` optimizer steps the run ends, with one
    evaluation and one save where they are wanted. Rows are stretched to `tokens`; of a mask that
    nobody knows the share `rows` is true; `seed` shuffles experts.
    """

    cards: tuple[VirtualCard, ...]
    venv: Path | None = None
    others_bytes: int = 0
    context_bytes: int | None = None
    fail_at: int | None = None
    steps: int | None = None
    evaluates: bool = False
    saves: bool = False
    tokens: int | None = None
    longest_first: bool = False
    rows: float | None = None
    seed: int | None = None

    def trial(self) -> dict[str, object]:
        """Return what is asked of the hooks inside the program; empty where nothing is."""
        hooks: dict[str, object] = {}
        if self.tokens is not None:
            hooks["stretch-rows"] = {"tokens": self.tokens}
        if self.longest_first:
            hooks["longest-first"] = {}
        asked = {
            "steps": self.steps,
            "evaluates": self.evaluates,
            "saves": self.saves,
            "hooks": hooks,
        }
        return {"device": "cuda", **asked} if any(asked.values()) else {}


class Played(NamedTuple):
    """The folder with the libraries that play cards for one build of torch, and its version."""

    libraries: Path
    torch: tuple[int, int] | None


def played_for(python: str, *, base: Mapping[str, str] = os.environ) -> Played:
    """Build the library for the torch of an interpreter.

    InputError where that cannot be done, with what to do instead.
    """
    site = site_packages_of(python)
    return Played(build(site, environment=base), torch_version(site))


class Session:
    """A run's own folder, its environment, and what it left behind."""

    def __init__(
        self,
        wanted: Wanted,
        command: Sequence[str],
        *,
        played: Played | None = None,
        base: Mapping[str, str] = os.environ,
    ) -> None:
        """Find the Python of the command and build the library for its torch, unless it is given.

        InputError or UsageError where that cannot be done, with what to do instead.
        """
        if wanted.evaluates and wanted.steps is None:
            raise UsageError("an evaluation after the last step needs to know it: --steps N")
        if wanted.saves and wanted.steps is None:
            raise UsageError("a save after the last step needs to know it: --steps N")
        self.cards = tuple(
            replace(
                with_outside(card, context_bytes=wanted.context_bytes),
                others_bytes=wanted.others_bytes,
            )
            for card in wanted.cards
        )
        for card in self.cards:
            if card.others_bytes >= card.total_bytes:
                raise UsageError(
                    f"others cannot hold {format_size(card.others_bytes)} of {card.name}, which "
                    f"has {format_size(card.total_bytes)}",
                    hint="give what they hold of each card, such as --others 3GiB",
                )
        self._wanted = wanted
        base = dict(base) if wanted.venv is None else with_venv(wanted.venv, base)
        # who starts it looks for it in the path of its own
        self.command = (shutil.which(command[0], path=base.get("PATH")) or command[0], *command[1:])
        if played is None:
            played = played_for(python_of(command, base), base=base)
        self._torch = played.torch
        self._folder = Path(tempfile.mkdtemp(prefix="oomdoctor-virtual-"))
        shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else self._folder
        self.usage = shared / f"{self._folder.name}-usage"
        self.environment = self._environment(played.libraries, base)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        self.usage.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def words(self) -> str:
        """Return the cards in a few words: `2 x NVIDIA L4, Tesla T4`."""
        names = [card.name for card in self.cards]
        counts = {name: names.count(name) for name in names}
        return ", ".join(name if n == 1 else f"{n} x {name}" for name, n in counts.items())

    def report(self) -> VirtualReport:
        """Return what is known of the run so far."""
        log = self._folder / "log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return VirtualReport(
            cards=self.cards,
            usage=read_usage(self.usage, len(self.cards)),
            unmodelled=read_log(text),
            torch=self._torch,
        )

    def _environment(self, libraries: Path, base: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the command that differ from ours."""
        wanted = self._wanted
        scratch = self._folder / "checkpoints"
        scratch.mkdir()
        found = environment_of(
            self.cards,
            libraries=libraries,
            log=self._folder / "log",
            usage=self.usage,
            fail_at=wanted.fail_at,
            base=base,
        )
        found[f"{PREFIX}SCRATCH"] = str(scratch)
        if wanted.rows is not None:
            found[f"{PREFIX}ROWS"] = str(wanted.rows)
        if wanted.seed is not None:
            found[f"{PREFIX}SEED"] = str(wanted.seed)
        if wanted.trial():
            found["OOMDOCTOR_TRIAL"] = json.dumps(wanted.trial())
        # nothing of a virtual run goes to a service where its owner looks for real ones
        found.update(WANDB_MODE="disabled", COMET_MODE="disabled")
        return {name: value for name, value in found.items() if os.environ.get(name) != value}
