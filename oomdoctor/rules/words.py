"""The closed sets of words in rule files: families, categories, dialects, packages."""

from __future__ import annotations

FAMILIES = {
    "CAP1": "model states",
    "ACT2": "activations and logits",
    "ALC3": "allocator",
    "LEK4": "growth",
    "EXT5": "other processes and the device",
    "DST6": "distributed",
    "INF7": "inference, KV cache and serving",
    "HST8": "host memory",
    "CFG9": "config side findings, shown by diagnose as well",
    "MEM1": "lint: memory of card, host and disk",
    "COR2": "lint: correctness",
    "KEY3": "lint: keys and versions",
    "SPD4": "lint: throughput",
    "QLT5": "lint: quality and process",
    "LKA0": "look-alikes: failures that are not about memory",
}
DIALECTS = (
    "hf_trainer",
    "trl",
    "axolotl",
    "llamafactory",
    "unsloth",
    "deepspeed",
    "accelerate",
    "fsdp",
    "torchtune",
    "torchtitan",
    "lightning",
    "nanogpt",
    "diffusers",
    "vllm",
    "sglang",
    "python",
    "env",
    "cli",
)
CATEGORIES = {
    "memory": "MEM1",
    "memory-host": "MEM1",
    "disk": "MEM1",
    "correctness": "COR2",
    "config": "KEY3",
    "throughput": "SPD4",
    "quality": "QLT5",
    "process": "QLT5",
}
PACKAGES = (
    *("transformers", "trl", "peft", "accelerate", "torch", "bitsandbytes", "deepspeed"),
    *("axolotl", "llamafactory", "unsloth", "torchtune", "torchtitan", "lightning", "vllm"),
)
BASES = ("measured", "source", "documented", "arithmetic")
