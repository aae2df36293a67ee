"""LitGPT of October 2023: LoRA fine-tuning, and generation with a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.twins.litgpt_model import CHUNK, SHAPES, Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def made(arguments: Mapping[str, Any], device: torch.device) -> Decoder:
    """Build the model on the device in the dtype of the job."""
    shape = SHAPES[arguments["model"]]
    if layers := arguments.get("layers"):
        shape = shape._replace(layers=layers)
    if ranks := arguments.get("tensor"):
        shape = shape._replace(
            heads=shape.heads // ranks, groups=shape.groups // ranks, inner=shape.inner // ranks
        )
    before = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[arguments.get("dtype", "bf16")])
    try:
        with device:
            model = Decoder(shape, arguments.get("rank", 0), arguments.get("quant"))
    finally:
        torch.set_default_dtype(before)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
    return model


def lora(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[], None]]:
    """Return model, optimizer and step of `finetune/lora.py`, its longest sample in the batch."""
    model = made({"rank": 8, **arguments}, device)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-4)
    batch, length = arguments["batch"], arguments["length"]
    mixed = torch.autocast(device.type, torch.bfloat16, enabled=bool(arguments.get("mixed")))

    def step() -> None:
        ids = torch.zeros(batch, length, dtype=torch.long, device=device)
        targets = torch.zeros(batch, length, dtype=torch.long, device=device)
        with mixed:
            logits = model(ids)
            logits[-1] = logits[-1][..., :-1, :]
            chunks = [one.reshape(-1, one.size(-1)) for one in logits]
            goals = [one.reshape(-1) for one in targets[..., 1:].split(CHUNK, dim=1)]
            losses = [
                functional.cross_entropy(one, goal, ignore_index=-1, reduction="none")
                for one, goal in zip(chunks, goals, strict=True)
            ]
            loss = torch.cat(losses).mean()
        (loss / arguments.get("accumulation", 1)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


def generation(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[nn.Module, None, Callable[[], None]]:
    """Return model and step of `generate/base.py`: a prompt, then two tokens of the answer."""
    model = made(arguments, device)
    prompt, new = arguments["prompt"], arguments["new_tokens"]
    dtype = DTYPES[arguments.get("dtype", "bf16")]
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with device:
        model.turn(prompt + new)
        model.caches(prompt + new, 1)
    torch.set_default_dtype(before)
    model.eval()

    @torch.inference_mode()
    def step() -> None:
        for length in (prompt, 1, 1):
            ids = torch.zeros(1, length, dtype=torch.long, device=device)
            where = torch.zeros(length, dtype=torch.long, device=device)
            logits = model(ids, where)[0][0, -1]
            kept = torch.topk(logits, 200)[0]
            probabilities = torch.softmax(torch.where(logits < kept[-1:], -1.0, logits), dim=-1)
            torch.multinomial(probabilities, num_samples=1)

    return model, None, step
