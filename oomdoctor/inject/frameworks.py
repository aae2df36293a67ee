"""Trainers and engines: where they evaluate and save when asked, and what counts as their step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .agent import wrap
from .phases import EVALUATE, GENERATE, SAVE

if TYPE_CHECKING:
    from typing import TypeAlias

    from .agent import Agent
    from .phases import Phases
    from .steps import Steps

Library: TypeAlias = Any


def hook(agent: Agent, phases: Phases, steps: Steps) -> None:
    """Wait for the trainers and engines that a program may import."""
    agent.when_imported(
        "transformers.trainer", lambda one: _hook_trainer(agent, phases, steps, one)
    )
    agent.when_imported("deepspeed.runtime.engine", lambda one: _hook_engine(agent, steps, one))
    for name in ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer"):
        agent.when_imported(name, lambda one: _hook_lightning(phases, one))


def _hook_trainer(agent: Agent, phases: Phases, steps: Steps, module: Library) -> None:
    """Give every Trainer a callback of ours, and tell its evaluations and saves as phases."""
    kind: Library = type("Ending", (Ending, module.TrainerCallback), {})
    make = agent.guarded(lambda trainer: kind(phases, steps, agent.settings, trainer))

    def init(original: Library, self: Library, *arguments: Library, **named: Library) -> None:
        original(self, *arguments, **named)
        callback = make(self)
        if callback is not None:
            self.add_callback(callback)

    def evaluation_loop(original: Library, *arguments: Library, **named: Library) -> Library:
        with phases.within(EVALUATE):
            return original(*arguments, **named)

    def save(original: Library, *arguments: Library, **named: Library) -> Library:
        with phases.within(SAVE):
            return original(*arguments, **named)

    settings = agent.settings
    if settings.steps is not None or settings.evaluates or settings.saves:
        wrap(module.Trainer, "__init__", init)
    wrap(module.Trainer, "evaluation_loop", evaluation_loop)
    wrap(module.Trainer, "save_model", save)
    wrap(module.Trainer, "_save_checkpoint", save)


class Ending:
    """Asks a Trainer for what the trial wants after its last step, and ends the process after it.

    Its class is joined with TrainerCallback, which is there once transformers is imported.
    """

    def __init__(self, phases: Phases, steps: Steps, settings: Library, trainer: Library) -> None:
        """Know what is asked for, and whom to ask."""
        self._phases = phases
        self._steps = steps
        self._settings = settings
        self._trainer = trainer

    def on_train_begin(self, *_: Library, **__: Library) -> None:
        """Take over from the hook of the optimizer, if there is something to ask for."""
        self._steps.driven = self._settings.evaluates or self._settings.saves

    def on_step_end(self, args: Library, state: Library, control: Library, **_: Library) -> None:
        """Ask for evaluation and save after the last step."""
        del args, state
        if not self._is_over():
            return
        if self._settings.evaluates and self._trainer.eval_dataset is not None:
            control.should_evaluate = True
        control.should_save = control.should_save or self._settings.saves
        self._steps.driven = False
        if not (control.should_evaluate or control.should_save):
            self._steps.end()

    def on_evaluate(self, args: Library, state: Library, control: Library, **_: Library) -> None:
        """End after the evaluation, unless there is a save to come."""
        del args, state
        self._phases.over.add(EVALUATE)
        if self._is_over() and not control.should_save:
            self._steps.end()

    def on_save(self, *_: Library, **__: Library) -> None:
        """End after the save."""
        self._phases.over.add(SAVE)
        if self._is_over():
            self._steps.end()

    def _is_over(self) -> bool:
        wanted = self._settings.steps
        return wanted is not None and self._steps.number >= wanted


def _hook_engine(agent: Agent, steps: Steps, module: Library) -> None:
    """Count the updates of a DeepSpeed engine: it steps its optimizer once per group of weights."""

    def update(original: Library, *arguments: Library, **named: Library) -> Library:
        steps.engine = True
        result = original(*arguments, **named)
        agent.guarded(steps.engine_stepped)()
        return result

    wrap(module.DeepSpeedEngine, "_take_model_step", update)


def _hook_lightning(phases: Phases, module: Library) -> None:
    """Tell the checkpoints of Lightning as saves; its evaluations are seen by their modules."""

    def save(original: Library, *arguments: Library, **named: Library) -> Library:
        with phases.within(SAVE):
            return original(*arguments, **named)

    wrap(module.Trainer, "save_checkpoint", save)


def hook_phases(agent: Agent, phases: Phases, torch: Library) -> None:
    """Tell saves and generations as phases."""

    def save(original: Library, *arguments: Library, **named: Library) -> Library:
        with phases.within(SAVE):
            return original(*arguments, **named)

    def generate(original: Library, *arguments: Library, **named: Library) -> Library:
        with phases.within(GENERATE):
            return original(*arguments, **named)

    wrap(torch, "save", save)
    agent.when_imported("safetensors.torch", lambda module: wrap(module, "save_file", save))
    agent.when_imported(
        "transformers.generation.utils",
        lambda module: wrap(module.GenerationMixin, "generate", generate),
    )
