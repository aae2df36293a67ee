"""A quantised base: linear layers of bitsandbytes in the place of a model's own, filled in order.

transformers replaces the layers while the model has no storage yet, then brings one weight after
the other to the card in 16 bits and quantises it there (integrations/bitsandbytes.py of 5.24).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NoTorchError, UnsupportedError
from oomdoctor.worker.twins.build import Storing, fill
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from oomdoctor.model.job import QuantSpec

_OUTLIER_THRESHOLD = 6.0  # BitsAndBytesConfig's llm_int8_threshold
_FOUR_BIT = ("nf4", "fp4")


def replace_linears(model: nn.Module, quant: QuantSpec) -> None:
    """Put bitsandbytes' layers in the place of linear ones, but not of the output layer."""
    bnb = _bitsandbytes()
    if quant.kind not in (*_FOUR_BIT, "int8"):
        raise UnsupportedError(f"weights quantised by {quant.kind} cannot be traced")
    left_alone = _left_alone(model)
    conv1d = _conv1d()
    for path, module in list(model.named_modules()):
        if path in left_alone or not (
            type(module) is torch.nn.Linear or isinstance(module, conv1d)
        ):
            continue
        rows, columns = module.weight.shape
        if isinstance(module, conv1d):
            rows, columns = columns, rows
        with torch.device("meta"):
            made = _layer(bnb, quant, columns, rows, module.bias is not None)
        made.requires_grad_(requires_grad=False)
        model.set_submodule(path, made)
    _mark(model, quant)


def _bitsandbytes() -> Any:
    try:
        import bitsandbytes
    except ImportError as error:
        raise NoTorchError(
            f"bitsandbytes is not there: {error}", hint="pip install bitsandbytes"
        ) from error
    return bitsandbytes


def _conv1d() -> Any:
    from transformers.pytorch_utils import Conv1D

    return Conv1D


def _layer(bnb: Any, quant: QuantSpec, columns: int, rows: int, bias: object) -> Any:
    if quant.kind == "int8":
        return bnb.nn.Linear8bitLt(
            columns, rows, bool(bias), has_fp16_weights=False, threshold=_OUTLIER_THRESHOLD
        )
    return bnb.nn.Linear4bit(
        columns,
        rows,
        bool(bias),
        dtype_of(quant.compute_dtype),
        compress_statistics=quant.double,
        quant_type=quant.kind,
    )


def _left_alone(model: Any) -> set[str]:
    """Return the paths that transformers does not quantise: output, tied and last modules."""
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    names = {*tied, *tied.values(), list(dict(model.named_parameters()))[-1]}
    output = model.get_output_embeddings()
    outputs = {path for path, module in model.named_modules() if module is output}
    strict = set(getattr(model, "_keep_in_fp32_modules", None) or ())
    named = {path for path, _ in model.named_modules() if path.rpartition(".")[2] in strict}
    return {name.removesuffix(".weight") for name in names} | (outputs - {""}) | named


def _mark(model: Any, quant: QuantSpec) -> None:
    """Set what Trainer and PEFT look at."""
    model.is_quantized = True
    setattr(model, "is_loaded_in_8bit" if quant.kind == "int8" else "is_loaded_in_4bit", True)


class QuantisedStoring(Storing):
    """Gives weights storage as `Storing` does, and quantises those of bitsandbytes' layers."""

    def store(self, device: torch.device) -> None:
        """Put the weights on the device, each quantised before the next one is there."""
        bnb = _bitsandbytes()
        with _tables(bnb):
            for module in self._model.modules():
                if isinstance(module, bnb.nn.Linear4bit):
                    _quantise_4bit(bnb, module, device)
                elif isinstance(module, bnb.nn.Linear8bitLt):
                    _quantise_8bit(bnb, module, device)
                else:
                    continue
                if module.bias is not None and module.bias.is_meta:
                    bias = torch.zeros(module.bias.shape, dtype=module.bias.dtype, device=device)
                    module.bias = torch.nn.Parameter(bias, requires_grad=False)
        super().store(device)


def _quantise_4bit(bnb: Any, module: Any, device: torch.device) -> None:
    old = module.weight
    value = torch.empty(old.shape, dtype=old.dtype, device=device)
    fill(value)
    settings = {**old.__dict__, "module": module}
    module.weight = bnb.nn.Params4bit(value, requires_grad=False, **settings).to(device)


def _quantise_8bit(bnb: Any, module: Any, device: torch.device) -> None:
    """Quantise as Int8Params does on its way from the host to the card, without the host's copy."""
    value = torch.empty(module.weight.shape, dtype=module.weight.dtype, device=device)
    half = torch.empty(value.shape, dtype=torch.float16, device=device)
    fill(half)
    rows, scales, _ = bnb.functional.int8_vectorwise_quant(half)
    module.weight = bnb.nn.Int8Params(
        rows, requires_grad=False, has_fp16_weights=False, CB=rows, SCB=scales
    )


@contextmanager
def _tables(bnb: Any) -> Iterator[None]:
    """Forget the table of 8-bit values afterwards: the next job may have another device."""
    known = bnb.functional.name2qmap
    before = dict(known)
    known.clear()
    try:
        yield
    finally:
        known.clear()
        known.update(before)


def prepare(model: Any, *, checkpointing: str | None) -> None:
    """Cast what is not quantised to fp32, as PEFT's prepare_model_for_kbit_training does."""
    for weight in model.parameters():
        weight.requires_grad = False
    for weight in model.parameters():
        if weight.dtype in (torch.float16, torch.bfloat16):
            weight.data = weight.data.to(torch.float32)
    if checkpointing == "reentrant":
        model.enable_input_require_grads()
