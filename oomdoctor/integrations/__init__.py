"""The flight recorder for those who prefer code: a context manager, callbacks, a cell magic.

    from oomdoctor.integrations import recording

    with recording("run-folder") as run:
        train()
    print(run.report)

    from oomdoctor.integrations import TrainerRecorder      # transformers and TRL
    Trainer(..., callbacks=[TrainerRecorder()])

    from oomdoctor.integrations import LightningRecorder
    lightning.Trainer(callbacks=[LightningRecorder()])

    %load_ext oomdoctor.integrations.ipython
    %%oomdoctor

Each writes the bundle that `oomdoctor run` writes, by the same recorder, and says at the end why
memory ran out. Under `oomdoctor run` they leave everything to it. A library is imported where its
own name here is asked for, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.integrations.session import Session, recording

if TYPE_CHECKING:
    from oomdoctor.integrations.lightning_callback import LightningRecorder
    from oomdoctor.integrations.trainer_callback import TrainerRecorder

__all__ = ["LightningRecorder", "Session", "TrainerRecorder", "recording"]


def __getattr__(name: str) -> Any:
    """Import a callback with the library that it is for."""
    if name == "TrainerRecorder":
        from oomdoctor.integrations.trainer_callback import TrainerRecorder

        return TrainerRecorder
    if name == "LightningRecorder":
        from oomdoctor.integrations.lightning_callback import LightningRecorder

        return LightningRecorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
