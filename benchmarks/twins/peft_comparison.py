"""PEFT's method comparison on MetaMathQA: its own loop around PEFT's and Transformers' own code.

What decides the memory: batches of four sorted from long to short within buckets of twenty, the
cache emptied every ten steps, so that the longest batch of a bucket starts on an empty cache while
the outputs of the shortest one before it (logits and key/value cache) are still referred to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from peft import (
    BdLoraConfig,
    IA3Config,
    LNTuningConfig,
    LoraConfig,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from peft.optimizers import create_lorafa_optimizer
from transformers import LlamaConfig, LlamaForCausalLM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LLAMA_3B = {
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "rms_norm_eps": 1e-5,
}


def adapter(arguments: Mapping[str, Any]) -> Any:
    """Return PEFT's config of the method."""
    given = dict(arguments.get("peft", {}))
    if "blocks" in given:
        given["use_bdlora"] = BdLoraConfig(**given.pop("blocks"))
    kinds = {
        "lora": LoraConfig,
        "ia3": IA3Config,
        "ln-tuning": LNTuningConfig,
        "prefix-tuning": PrefixTuningConfig,
        "prompt-tuning": PromptTuningConfig,
    }
    return kinds[arguments["method"]](task_type="CAUSAL_LM", **given)


def build(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[torch.nn.Module, torch.optim.Optimizer, Callable[[], None]]:
    """Return model, optimizer and step, which takes the next of the lengths."""
    config = LlamaConfig(**LLAMA_3B)
    config._attn_implementation = "sdpa"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with device:
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    if arguments["method"] != "full":
        model = get_peft_model(model, adapter(arguments))
    model.train()
    if arguments.get("optimizer") == "lora-fa":
        optimizer = create_lorafa_optimizer(
            model, r=arguments["peft"]["r"], lora_alpha=arguments["peft"]["lora_alpha"], lr=1e-4
        )
        if arguments.get("a_gradient"):
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(parameter.requires_grad or "lora_A" in name)
    else:
        trained = [one for one in model.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.1)
    kept: dict[str, Any] = {}
    lengths = iter(arguments["lengths"])

    def step() -> None:
        length = next(lengths)
        ids = torch.zeros(4, length, dtype=torch.long, device=device)
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}
        optimizer.zero_grad()
        kept["outputs"] = model(**batch, num_items_in_batch=4 * length)
        kept["loss"] = kept["outputs"].loss
        kept["loss"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        kept["batch"] = batch

    return model, optimizer, step
