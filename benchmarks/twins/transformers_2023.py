"""LoRA in Trainer as of Transformers 4.36: decoders of today, and the loss as it was then.

The model returned its logits in fp32 beside those in the autocast dtype, shifted them by a copy of
their own, and Trainer held the model's outputs through the backward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional
from transformers import AutoConfig, AutoModelForCausalLM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lora(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[torch.nn.Module, torch.optim.Optimizer, Callable[[], None]]:
    """Return model, optimizer and a step of two micro-steps under autocast."""
    given = dict(arguments["config"])
    config = AutoConfig.for_model(given.pop("model_type"), **given)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with device:
            model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    finally:
        torch.set_default_dtype(before)
    model.config.use_cache = False
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **arguments["peft"]))
    model.train()
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    size = (arguments["batch"], arguments["length"])

    def micro_step() -> None:
        ids = torch.zeros(size, dtype=torch.long, device=device)
        labels = ids.clone()
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(input_ids=ids).logits.float()
            shifted = logits[..., :-1, :].contiguous().view(-1, logits.size(-1))
            loss = functional.cross_entropy(shifted, labels[..., 1:].contiguous().view(-1))
        del shifted
        (loss / arguments["accumulation"]).backward()

    def step() -> None:
        for _ in range(2):
            micro_step()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step
