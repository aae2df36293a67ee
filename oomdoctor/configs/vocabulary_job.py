"""Common key names that only the description of a job reads: labels, layers, ranks, lengths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.claims import Claim, Convert, count, flag, given, text, when_true, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain

VARIANTS = {name: name for name in ("orpo", "simpo", "cpo", "ipo", "rloo")}
variant = word("train.variant", VARIANTS)
_ADAPTERS = {
    **dict.fromkeys(("lora", "qlora", "loraconfig"), "lora"),
    **dict.fromkeys(("oft", "boft", "hra"), "oft"),
    "ia3": "ia3",
    **dict.fromkeys(("prompt_tuning", "prefix_tuning", "p_tuning", "llama-adapter"), "prompt"),
    **dict.fromkeys(("adalora", "loha", "lokr", "vera", "xlora", "vblora", "fourierft"), "other"),
}
adapter_kind = word("lora.kind", _ADAPTERS)


def projected(value: Plain) -> Iterator[Claim]:
    """Read the rank out of `optim_args: rank=128, update_proj_gap=200`."""
    found = re.search(r"\brank\s*[=:]\s*(\d{1,6})\b", scalars.as_text(value) or "")
    if found is not None and int(found[1]):
        yield Claim("optimizer.rank", int(found[1]))


def offloaded(value: Plain) -> Iterator[Claim]:
    """Read a way of checkpointing that moves what it keeps: `unsloth`, `offload`."""
    if (scalars.as_text(value) or "").lower() in ("unsloth", "offload", "offload_disk"):
        yield Claim("train.offloads_activations", value=True)


def implementation(value: Plain) -> Iterator[Claim]:
    """Read `optimizer.implementation` of torchtitan: fused, foreach, for-loop."""
    said = (scalars.as_text(value) or "").lower().replace("_", "-")
    if said.startswith("fused"):
        said = "fused"
    if said in ("fused", "foreach", "for-loop"):
        yield Claim("optimizer.kind", said)


ROWS: tuple[tuple[str, Convert], ...] = (
    ("num_labels num_classes n_classes number_of_labels", count("model.labels")),
    (
        """
        layers_to_transform lora_layers_to_transform peft_layers_to_transform
        finetune_layers
        """,
        text("lora.layers"),
    ),
    ("galore_rank apollo_rank optim_target_rank", count("optimizer.rank")),
    ("use_galore use_apollo", when_true(Claim("optimizer.name", "galore_adamw"))),
    ("max_target_length max_output_length decoder_max_length", count("train.target_len")),
    ("use_ema ema enable_ema", flag("train.ema")),
    (
        """
        activation_offloading enable_activation_offloading activation_offload
        offload_activations
        """,
        flag("train.offloads_activations"),
    ),
    ("max_prompt_length prompt_length", count("gen.prompt")),
    ("num_return_sequences", count("gen.returns")),
    ("fsdp_reshard_after_forward reshard_after_forward", flag("dist.reshards")),
    ("ddp_bucket_cap_mb bucket_cap_mb", count("dist.bucket_mib")),
    ("freeze_trainable_layers unfrozen_parameters", given("train.frozen_layers")),
    ("pref_loss", variant),
    ("chunked_cross_entropy_num_chunks ce_chunk_size", count("loss.chunk")),
)
