"""Common key names of switches whose wrong mix a library refuses or obeys silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.claims import Claim, Convert, both, dtype, dtype_of, flag, given, text, word
from oomdoctor.configs.vocabulary_job import projected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain

INTEGERS = {"uint8": "uint8", "int8": "int8", "float64": "fp64"}


def storage(value: Plain) -> Iterator[Claim]:
    """Read the dtype of the tensors that hold packed 4-bit weights."""
    said = (scalars.as_text(value) or "").lower().removeprefix("torch.")
    name = INTEGERS.get(said) or dtype_of(said)
    if name in ("uint8", "int8", "fp16", "bf16", "fp32", "fp64"):
        yield Claim("quant.storage", name)


ROWS: tuple[tuple[str, Convert], ...] = (
    ("optim_args", both(text("optimizer.args"), projected)),
    ("ddp_find_unused_parameters find_unused_parameters", flag("dist.find_unused")),
    ("ddp_static_graph static_graph", flag("dist.static_graph")),
    ("trainable_token_indices lora_trainable_token_indices", given("lora.token_indices")),
    ("fp8 use_fp8", flag("precision.fp8")),
    (
        "bnb_4bit_quant_type quantization_type",
        word("quant.type", {"nf4": "nf4", "fp4": "fp4"}),
    ),
    ("bnb_4bit_compute_dtype", dtype("quant.compute_dtype")),
    ("bnb_4bit_quant_storage", storage),
)
