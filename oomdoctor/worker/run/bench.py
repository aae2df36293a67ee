"""What the phases of one run share: the model, its optimizer, and what a loop keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.worker.twins.adapter import is_adapted
from oomdoctor.worker.twins.optimizer import trainable

if TYPE_CHECKING:
    import torch
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.recipe import Recipe
    from oomdoctor.worker.run.strategy import Strategy


class Bench:
    """A job that is being run.

    `model` is what the loop calls: wrapped where the strategy or autocast wraps it. `kept` holds
    what the local variables of a training loop hold between its lines, by their names: dropping
    one of them is what frees its tensors.
    """

    def __init__(
        self,
        job: Job,
        device: torch.device,
        observer: Observer,
        *,
        recipe: Recipe,
        strategy: Strategy,
    ) -> None:
        """Begin with nothing on the device."""
        self.job = job
        self.device = device
        self.observer = observer
        self.recipe = recipe
        self.strategy = strategy
        self.model: Any = None
        self.reference: Any = None
        self.optimizer: Any = None
        self.scaler: Any = None
        self.kept: dict[str, Any] = {}
        self._phase = ""

    def phase(self, name: str) -> None:
        """Begin a phase."""
        self._phase = name
        self.observer.phase(name)

    def part(self, name: str) -> None:
        """Begin a part of the phase."""
        self.observer.phase(self._phase, name)

    @property
    def trained(self) -> list[torch.Tensor]:
        """The weights that get gradients."""
        return trainable(self.model)

    @property
    def like_trainer(self) -> bool:
        """Whether the loop is that of transformers' Trainer or stands on it."""
        return self.job.framework in ("transformers", "trl")

    def tag_weights(self, model: nn.Module) -> None:
        """Tell which tensors are weights and which belong to an adapter."""
        self.observer.model(model)
        adapted = is_adapted(model)
        weights: list[torch.Tensor] = [*model.buffers()]
        adapter: list[torch.Tensor] = []
        for weight in model.parameters():
            (adapter if adapted and weight.requires_grad else weights).append(weight)
            state = getattr(weight, "quant_state", None)
            weights.extend(_tables(state))
            scales = getattr(weight, "SCB", None)
            weights.extend([] if scales is None else [scales])
        self.observer.tag(weights, "weights")
        self.observer.tag(adapter, "adapter")

    def tag_gradients(self) -> None:
        """Tell which tensors are gradients."""
        grads = [weight.grad for weight in self.trained if weight.grad is not None]
        self.observer.tag(grads, "gradient")


def _tables(state: Any) -> list[torch.Tensor]:
    """Return the scales and tables of a weight that bitsandbytes quantised."""
    if state is None:
        return []
    inner = _tables(getattr(state, "state2", None))
    own = (getattr(state, name, None) for name in ("absmax", "code", "offset"))
    return [one for one in own if one is not None and hasattr(one, "untyped_storage")] + inner
