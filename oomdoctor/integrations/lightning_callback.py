"""A callback of Lightning's Trainer that records fits, validations, tests and predictions."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oomdoctor.integrations.session import Session

if TYPE_CHECKING:
    import os


class Hooks:
    """Records from the setup of a stage to its teardown, or to its exception.

    Joined with the Callback of the Lightning that the program uses: there are two packages.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, say: bool = True) -> None:
        """Record nothing yet; the folder is that of the bundle."""
        self.session: Session | None = None
        self._folder = folder
        self._say = say

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to record."""
        del stage
        from oomdoctor.inject.recording.arguments import of_lightning

        if self.session is None or not self.session.is_open:
            self.session = Session(self._folder, say=self._say)
            self.session.tell_arguments(of_lightning(trainer, pl_module))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Tell of the exception that ends the stage, and diagnose."""
        del trainer, pl_module
        if self.session is not None:
            self.session.end(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Diagnose what was recorded."""
        del trainer, pl_module, stage
        if self.session is not None:
            self.session.end()


def recorder_class() -> Any:
    """Return the callback's class, of the Lightning that is imported."""
    alone = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
    library = import_module("pytorch_lightning" if alone else "lightning.pytorch")
    return type("LightningRecorder", (Hooks, library.Callback), {"__doc__": Hooks.__doc__})


LightningRecorder = recorder_class()
