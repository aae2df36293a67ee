"""What runs trials: one method, so that a search does not know where its trials run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.trial import TrialResult, TrialSpec


class Backend(Protocol):
    """Runs a trial in a fresh process, or computes what would come of it."""

    name: str

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Run one trial to its end; `hear` is told where it is.

        Whatever goes wrong inside a trial is an outcome; only GuardError and KeyboardInterrupt
        leave this method.
        """
