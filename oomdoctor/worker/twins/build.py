"""A model without its weights: built on no device, then given storage where a job wants it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.observer import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer

_AUTO_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "reward": "AutoModelForSequenceClassification",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "masked-lm": "AutoModelForMaskedLM",
    "embedding": "AutoModel",
    "image-classification": "AutoModelForImageClassification",
    "token-classification": "AutoModelForTokenClassification",
}
_STORED_SPREAD = 0.02
_LARGE = 256 << 20
"""Bytes of weights that stay without values on the host: pages that nobody wrote are not there."""


def empty_model(
    config: Any, *, task: str, dtype: torch.dtype, observer: Observer | None = None
) -> nn.Module:
    """Return the model of a config on the meta device, its floating weights in one dtype.

    A model that has no such attention gets the eager one, as from `from_pretrained`.
    """
    auto = _auto_class(config, task)
    attention = config._attn_implementation
    try:
        model = _built(auto, config, dtype, attention)
    except (ValueError, ImportError) as error:
        if "Unrecognized configuration class" in str(error):
            wanted = auto.__name__.removeprefix("AutoModel")
            raise UnsupportedError(
                f"transformers has no model of the type {config.model_type!r} that is {wanted}"
            ) from error
        if attention == "eager" or "attention" not in str(error):
            raise UnsupportedError(_first_line(error)) from error
        (observer or Silent()).assume(f"eager attention: this model has none called {attention}")
        model = _built(auto, config, dtype, "eager")
    if hasattr(model, "tie_weights"):  # left out with the initialisation
        model.tie_weights()
    model.eval()
    return model


def _built(auto: Any, config: Any, dtype: torch.dtype, attention: str) -> Any:
    """Build a model; whatever its code makes of a config that does not fit is our error."""
    with defaults(dtype), torch.device("meta"), _without_initialisation():
        try:
            return auto.from_config(config, attn_implementation=attention)
        except (ValueError, ImportError):
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {_first_line(error)}"
            raise UnsupportedError(f"the model cannot be built from its config: {said}") from error


def task_of(job: Job) -> str:
    """Return the task, told apart from others of its name by the class that the config names."""
    named = job.model.architecture or job.model.config.get("architectures") or ""
    if job.task == "classification" and "ForTokenClassification" in str(named):
        return "token-classification"
    return job.task


def _auto_class(config: Any, task: str) -> Any:
    from transformers.models.auto import modeling_auto

    name = _AUTO_CLASSES.get(task, "AutoModelForCausalLM")
    if name == "AutoModelForCausalLM" and getattr(config, "is_encoder_decoder", False):
        name = "AutoModelForSeq2SeqLM"
    if name == "AutoModelForCausalLM" and getattr(config, "vision_config", None) is not None:
        name = "AutoModelForImageTextToText"
    return getattr(modeling_auto, name)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@contextmanager
def defaults(dtype: torch.dtype) -> Iterator[None]:
    """Let what is made in the block have a dtype where nobody gives one."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _without_initialisation() -> Iterator[None]:
    """Leave out what fills weights: it needs seconds for a large model, and no memory of a card."""
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # transformers 4
        from transformers.modeling_utils import no_init_weights
    with no_init_weights():
        yield


def fp32_names(model: nn.Module, dtype: torch.dtype) -> Callable[[str], bool]:
    """Return a test for the names of weights that transformers keeps in fp32."""
    patterns = list(getattr(model, "_keep_in_fp32_modules_strict", None) or ())
    if dtype == torch.float16:
        patterns += list(getattr(model, "_keep_in_fp32_modules", None) or ())
    if dtype == torch.float32 or not patterns:
        return lambda _: False
    any_of = re.compile("|".join(rf"(?:^|\.){re.escape(one)}(?:$|\.)" for one in patterns))
    return lambda name: any_of.search(name) is not None


class Storing:
    """Gives the weights of a model storage, one after the other, each once even where tied."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Take a model on the meta device and the dtype of its weights."""
        self._model = model
        self._keeps_fp32 = fp32_names(model, dtype)
        self._made: dict[int, torch.Tensor] = {}
        self._large = stored_bytes(model, {}) > _LARGE

    def store(self, device: torch.device) -> None:
        """Put every weight and buffer that has no storage yet on the device."""
        for prefix, module in self._model.named_modules():
            for name, weight in list(module._parameters.items()):
                if weight is not None and weight.is_meta:
                    path = f"{prefix}.{name}" if prefix else name
                    module._parameters[name] = self._weight(path, weight, device)
        for module in self._model.modules():
            for name, buffer in list(module._buffers.items()):
                if buffer is not None and buffer.is_meta:
                    module._buffers[name] = self._buffer(buffer, device)

    def _weight(self, path: str, weight: Any, device: torch.device) -> Any:
        if id(weight) not in self._made:
            dtype = weight.dtype
            if dtype.is_floating_point and self._keeps_fp32(path):
                dtype = torch.float32
            made = torch.empty(weight.shape, dtype=dtype, device=device)
            if not (self._large and device.type == "cpu"):
                fill(made)
            self._made[id(weight)] = torch.nn.Parameter(made, requires_grad=weight.requires_grad)
        return self._made[id(weight)]

    def _buffer(self, buffer: torch.Tensor, device: torch.device) -> torch.Tensor:
        if id(buffer) not in self._made:
            self._made[id(buffer)] = torch.zeros(buffer.shape, dtype=buffer.dtype, device=device)
        return self._made[id(buffer)]


def fill(tensor: torch.Tensor) -> None:
    """Write small numbers into a tensor."""
    if tensor.dtype.is_floating_point:
        with torch.no_grad():
            tensor.normal_(0.0, _STORED_SPREAD)


def stored_bytes(model: nn.Module, sizes: Mapping[str, float]) -> int:
    """Return the bytes of what a checkpoint holds, as transformers counts them before it reads.

    `sizes` has the bytes of an element where it is not that of its dtype, by class of parameter.
    """
    saved = {id(one): one for one in model.state_dict(keep_vars=True).values()}
    total = 0.0
    for tensor in saved.values():
        size = sizes.get(type(tensor).__name__, tensor.element_size())
        total += tensor.numel() * size
    return int(total)
