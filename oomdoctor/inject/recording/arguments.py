"""Writes what a framework was asked for, as soon as its trainer or engine is made.

{"framework": "transformers", "class": "Trainer", "arguments": {"per_device_train_batch_size": 2},
 "model": {"class": "LlamaForCausalLM", "parameters": 123, "trainable": 123, "dtypes": {...}}}
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from ..agent import wrap
from ..interventions.of_models import unwrapped
from .line import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..agent import Agent
    from .line import FileLine

Library: TypeAlias = Any
_SECRET = re.compile(r"token$|secret|password|api_?key|credential", re.IGNORECASE)
_MOST_TEXT = 2000
_LIGHTNING = (
    "accumulate_grad_batches", "max_epochs", "max_steps", "val_check_interval", "precision",
    "num_devices", "num_nodes", "world_size", "gradient_clip_val", "limit_val_batches",
)  # fmt: skip


class Arguments:
    """The arguments of one process, each time a framework makes something of them."""

    def __init__(self, agent: Agent, line: FileLine) -> None:
        """Wait for the frameworks."""
        self._agent = agent
        self._line = line
        wanted = (
            ("transformers.trainer", "Trainer", "__init__", of_trainer),
            ("deepspeed.runtime.engine", "DeepSpeedEngine", "__init__", of_engine),
            ("lightning.pytorch.trainer.trainer", "Trainer", "_run", of_lightning),
            ("pytorch_lightning.trainer.trainer", "Trainer", "_run", of_lightning),
        )
        for module, kind, name, read in wanted:
            agent.when_imported(module, self._after(kind, name, read))
        self._pid: int | None = None
        agent.before_root.append(self._saw_root)

    def _saw_root(self, module: Library, *_: Library) -> None:
        """Write of the first model that is called, where no framework has told of one."""
        if self._pid != os.getpid() and next(module.parameters(), None) is not None:
            self.write({"framework": None, "arguments": {}, "model": of_model(unwrapped(module))})

    def write(self, found: dict[str, object]) -> None:
        """Write the file of this process anew."""
        self._pid = os.getpid()
        text = json.dumps(found, indent=1, default=lambda one: str(one)[:_MOST_TEXT])
        write_whole(os.path.join(self._line.folder(), "arguments.json"), text)

    def _after(
        self, kind: str, name: str, read: Callable[..., dict[str, object]]
    ) -> Callable[[Library], None]:
        """Return a patch that reads what a method has made; a framework calls it before it runs."""
        is_init = name == "__init__"

        def around(original: Library, own: Library, *given: Library, **named: Library) -> Library:
            note = self._agent.guarded(lambda: self.write(read(own, *given)))
            if not is_init:
                note()
            result = original(own, *given, **named)
            if is_init:
                note()
            return result

        return lambda module: wrap(getattr(module, kind), name, around)


def of_trainer(trainer: Library, *_: Library) -> dict[str, object]:
    """Return the arguments and the model of a Trainer of transformers, or of TRL."""
    return {
        "framework": "transformers",
        "class": type(trainer).__name__,
        "arguments": without_secrets(trainer.args.to_dict()),
        "model": of_model(getattr(trainer, "model", None)),
    }


def of_engine(engine: Library, *_: Library) -> dict[str, object]:
    """Return the config and the model of a DeepSpeed engine."""
    config = getattr(getattr(engine, "_config", None), "_param_dict", None) or {}
    return {
        "framework": "deepspeed",
        "class": type(engine).__name__,
        "arguments": without_secrets(config),
        "model": of_model(getattr(engine, "module", None)),
    }


def of_lightning(trainer: Library, module: Library = None, *_: Library) -> dict[str, object]:
    """Return the settings of a Trainer of Lightning with those of its module."""
    found = {name: getattr(trainer, name, None) for name in _LIGHTNING}
    found["strategy"] = type(getattr(trainer, "strategy", None)).__name__
    found["hparams"] = without_secrets(dict(getattr(module, "hparams", None) or {}))
    return {
        "framework": "lightning",
        "class": type(trainer).__name__,
        "arguments": found,
        "model": of_model(module),
    }


def of_model(model: Library) -> dict[str, object] | None:
    """Return the class, the counts and the config of a model."""
    if model is None:
        return None
    dtypes: dict[str, int] = {}
    trainable = 0
    for one in model.parameters():
        count = int(getattr(one, "ds_numel", None) or one.numel())
        dtypes[str(one.dtype)] = dtypes.get(str(one.dtype), 0) + count
        trainable += count if one.requires_grad else 0
    found: dict[str, object] = {
        "class": type(model).__name__,
        "parameters": sum(dtypes.values()),
        "trainable": trainable,
        "dtypes": dtypes,
        "gradient_checkpointing": _checkpoints(model),
    }
    config: Library = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        found["config"] = without_secrets(config.to_dict())
    return found


def _checkpoints(model: Library) -> bool:
    """Say whether a model checkpoints activations; the older of two names warns where both are."""
    for name in ("is_activation_checkpointing", "is_gradient_checkpointing"):
        if hasattr(type(model), name):
            return bool(getattr(model, name))
    return False


def without_secrets(data: object) -> object:
    """Return plain data without the values of what is named like a secret."""
    if isinstance(data, dict):
        return {
            str(key): "<left out>"
            if one and isinstance(one, str) and _SECRET.search(str(key))
            else without_secrets(one)
            for key, one in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [without_secrets(one) for one in data]
    return data
