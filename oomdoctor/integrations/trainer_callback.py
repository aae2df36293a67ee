"""A callback of transformers' Trainer (and TRL's) that records its training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from oomdoctor.integrations.session import Session

if TYPE_CHECKING:
    import os


class TrainerRecorder(TrainerCallback):
    """Records from the beginning of `train` to its end, or to the exception that ends it.

    An exception that somebody catches is no end: the recording goes on until the process ends, or
    until the Trainer trains again.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, say: bool = True) -> None:
        """Record nothing yet; the folder is that of the bundle."""
        self.session: Session | None = None
        self._folder = folder
        self._say = say

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **more: Any
    ) -> None:
        """Begin to record."""
        del state, control, more
        from oomdoctor.inject.recording.arguments import of_model, without_secrets

        if self.session is not None:
            self.session.end()
        self.session = Session(self._folder, say=self._say)
        self.session.tell_arguments(
            {
                "framework": "transformers",
                "class": type(args).__name__.replace("Arguments", "").replace("Config", "Trainer"),
                "arguments": without_secrets(args.to_dict()),
                "model": of_model(model),
            }
        )

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Diagnose what was recorded."""
        del args, state, control, more
        if self.session is not None:
            self.session.end()
