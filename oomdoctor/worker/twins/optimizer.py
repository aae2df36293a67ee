"""Optimizers: those of torch, transformers and bitsandbytes themselves, and twins of the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NoTorchError, UnsupportedError
from oomdoctor.worker.twins import low_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import nn

    from oomdoctor.model.job import OptimizerSpec

    Groups = list[dict[str, Any]]

_RATE = 1e-5
_WITHOUT_DECAY = ("bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)")
_EIGHT_BIT = ("adamw-8bit", "adam-8bit", "lion-8bit", "ademamix-8bit")
_IMPLEMENTATIONS = ("foreach", "fused", "for-loop")


def make_optimizer(
    spec: OptimizerSpec,
    model: nn.Module,
    *,
    grouped: bool,
    whole: nn.Module | None = None,
) -> Any:
    """Return the optimizer of a model's trainable weights, without states yet.

    `grouped` says that weights without decay stand in a group of their own, and that embeddings
    have no states of 8 bits, as Trainer has it. `whole` is the model that says which weights are
    matrices of hidden layers, where `model` only holds one of its weights.
    """
    if spec.offload is not None:
        raise UnsupportedError(f"optimizer states on {spec.offload} cannot be traced")
    if spec.name in ("galore", "muon"):
        return _of_model(spec, model, low_rank.hidden_matrices(whole or model))
    make = _MAKERS.get(spec.name)
    if make is None:
        raise UnsupportedError(f"the optimizer {spec.name} cannot be traced")
    groups = (
        decay_groups(model, spec.decay)
        if grouped
        else [{"params": trainable(model), "weight_decay": spec.decay}]
    )
    made = make(groups, spec)
    if grouped and spec.name in _EIGHT_BIT:
        from oomdoctor.worker.twins.eight_bit import spare_embeddings

        spare_embeddings(made, model)
    return made


def trainable(model: nn.Module) -> list[torch.Tensor]:
    """Return the weights that get gradients, each once, in the order of the model."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def decay_groups(model: nn.Module, decay: float) -> Groups:
    """Return weights with `decay`, then those without: biases and the weights of norms."""
    names = _decaying(model)
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    return [
        {"params": [weight for name, weight in named if name in names], "weight_decay": decay},
        {"params": [weight for name, weight in named if name not in names], "weight_decay": 0.0},
    ]


def _decaying(model: nn.Module) -> set[str]:
    """Return the names of weights that Trainer lets decay (trainer.py, 5.24)."""
    without = re.compile("|".join(_WITHOUT_DECAY))
    norms = [
        f"{path}." for path, one in model.named_modules() if isinstance(one, torch.nn.LayerNorm)
    ]
    return {
        name
        for name, _ in model.named_parameters()
        if not without.search(name.lower()) and not name.startswith(tuple(norms))
    }


def _how(spec: OptimizerSpec) -> dict[str, bool]:
    if spec.implementation not in _IMPLEMENTATIONS:
        raise UnsupportedError(f"no implementation {spec.implementation!r} of an optimizer")
    return {"foreach": spec.implementation == "foreach", "fused": spec.implementation == "fused"}


def _adamw(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.AdamW(groups, lr=_RATE, **_how(spec))


def _adam(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.Adam(groups, lr=_RATE, **_how(spec))


def _sgd(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.SGD(groups, lr=_RATE, **_how(spec))


def _momentum(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.SGD(groups, lr=_RATE, momentum=0.9, **_how(spec))


def _adagrad(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.Adagrad(groups, lr=_RATE, foreach=spec.implementation == "foreach")


def _rmsprop(groups: Groups, spec: OptimizerSpec) -> Any:
    return torch.optim.RMSprop(groups, lr=_RATE, foreach=spec.implementation == "foreach")


def _adafactor(groups: Groups, spec: OptimizerSpec) -> Any:  # noqa: ARG001 - one signature for all
    try:
        from transformers.optimization import Adafactor
    except ImportError as error:
        raise NoTorchError(f"transformers has no Adafactor: {error}") from error
    return Adafactor(groups, lr=_RATE, scale_parameter=False, relative_step=False)


def _lion(groups: Groups, spec: OptimizerSpec) -> Any:  # noqa: ARG001 - one signature for all
    return Lion(groups, lr=_RATE)


def _of_bitsandbytes(name: str, bits: int) -> Callable[[Groups, OptimizerSpec], Any]:
    def make(groups: Groups, spec: OptimizerSpec) -> Any:
        from oomdoctor.worker.twins.eight_bit import eight_bit

        return eight_bit(name, groups, rate=_RATE, bits=bits, paged=spec.paged)

    return make


_MAKERS: dict[str, Callable[[Groups, OptimizerSpec], Any]] = {
    "adamw": lambda groups, spec: (_of_bitsandbytes("AdamW", 32) if spec.paged else _adamw)(
        groups, spec
    ),
    "adam": _adam,
    "adamw-8bit": _of_bitsandbytes("AdamW", 8),
    "adamw-bnb": _of_bitsandbytes("AdamW", 32),
    "adam-8bit": _of_bitsandbytes("Adam", 8),
    "adafactor": _adafactor,
    "adagrad": _adagrad,
    "ademamix": _of_bitsandbytes("AdEMAMix", 32),
    "ademamix-8bit": _of_bitsandbytes("AdEMAMix", 8),
    "lion": lambda groups, spec: (_of_bitsandbytes("Lion", 32) if spec.paged else _lion)(
        groups, spec
    ),
    "lion-8bit": _of_bitsandbytes("Lion", 8),
    "rmsprop": _rmsprop,
    "sgd": _sgd,
    "sgd-momentum": _momentum,
}


def _of_model(spec: OptimizerSpec, model: nn.Module, hidden: list[torch.Tensor]) -> Any:
    """Return an optimizer that treats the matrices of hidden layers in a way of its own."""
    known = {id(weight) for weight in hidden}
    matrices = [weight for weight in trainable(model) if id(weight) in known]
    others = [weight for weight in trainable(model) if id(weight) not in known]
    if spec.name == "galore":
        return low_rank.GaloreAdamW(others, matrices, rate=_RATE, rank=spec.rank or 128)
    if not hasattr(torch.optim, "Muon"):
        raise UnsupportedError("this torch has no Muon; it came with 2.9")
    inner = [torch.optim.Muon(matrices, lr=_RATE)] if matrices else []
    rest = [torch.optim.AdamW(others, lr=_RATE, foreach=True)] if others else []
    return Several([*inner, *rest])


class Several:
    """Optimizers that step one after the other."""

    def __init__(self, optimizers: list[Any]) -> None:
        """Take them in the order of their steps."""
        self.optimizers = optimizers

    @property
    def state(self) -> dict[Any, dict[str, Any]]:
        """The states of all."""
        return {key: value for one in self.optimizers for key, value in one.state.items()}

    @property
    def param_groups(self) -> Groups:
        """The groups of all."""
        return [group for one in self.optimizers for group in one.param_groups]

    def step(self) -> None:
        """Step each."""
        for one in self.optimizers:
            one.step()

    def state_dict(self) -> dict[str, Any]:
        """Return what each would save."""
        return {str(number): one.state_dict() for number, one in enumerate(self.optimizers)}

    def load_state_dict(self, states: dict[str, Any]) -> None:
        """Give each what it saved."""
        for number, one in enumerate(self.optimizers):
            one.load_state_dict(states[str(number)])


class Lion(torch.optim.Optimizer):
    """Lion with one fp-dtype average for each weight, weight after weight."""

    def __init__(self, groups: Groups, lr: float) -> None:
        """Take groups as torch's optimizers do."""
        super().__init__(groups, {"lr": lr, "betas": (0.9, 0.99), "weight_decay": 0.0})

    @torch.no_grad()
    def step(self) -> None:
        """Take the sign of an interpolated average as the step."""
        for group in self.param_groups:
            for weight in _with_gradient(group["params"]):
                average = self.state[weight].get("exp_avg")
                if average is None:
                    average = self.state[weight]["exp_avg"] = torch.zeros_like(weight)
                self._move(weight, average, group)

    def _move(self, weight: torch.Tensor, average: torch.Tensor, group: dict[str, Any]) -> None:
        first, second = group["betas"]
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        update = average.clone().mul_(first).add(weight.grad, alpha=1 - first).sign_()
        weight.add_(update, alpha=-group["lr"])
        average.mul_(second).add_(weight.grad, alpha=1 - second)


def _with_gradient(weights: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [weight for weight in weights if weight.grad is not None]


def state_tensors(optimizer: Any) -> list[torch.Tensor]:
    """Return all tensors that the optimizer keeps."""
    found: list[torch.Tensor] = []
    pending: list[Any] = list(optimizer.state.values())
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
    return found
