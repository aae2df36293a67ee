"""Which framework defaults become assumed facts, and where they stand; data of make_tables."""

from __future__ import annotations

from typing import Any

NONE = "None"
_ON_OFF: dict[str, Any] = {NONE: False}

# source: (package, dataclasses to read, fact key: ((field, words for its default texts), ...)).
# The first field that exists at a version counts; a default of None means "nothing is assumed"
# unless the words say otherwise.
FROM_SCHEMA: dict[
    str, tuple[str, tuple[str, ...], dict[str, tuple[tuple[str, dict[str, Any]], ...]]]
] = {
    "transformers": (
        "transformers",
        ("transformers.TrainingArguments",),
        {
            "train.micro_batch": (("per_device_train_batch_size", {}),),
            "train.grad_accum": (("gradient_accumulation_steps", {}),),
            "train.grad_checkpointing": (("gradient_checkpointing", _ON_OFF),),
            "eval.batch": (("per_device_eval_batch_size", {}),),
            "eval.strategy": (
                ("eval_strategy", {"no": "no"}),
                ("evaluation_strategy", {"no": "no"}),
            ),
            "eval.loss_only": (("prediction_loss_only", {}),),
            "eval.batch_metrics": (("batch_eval_metrics", {}),),
            "data.workers": (("dataloader_num_workers", {}),),
            "data.pin_memory": (("dataloader_pin_memory", {}),),
            "data.persistent": (("dataloader_persistent_workers", {}),),
            "compile.on": (("torch_compile", {}),),
            "save.only_model": (("save_only_model", {}),),
            "loss.impl": (("use_liger_kernel", {"False": "full"}),),
            "train.amp": (("bf16", {"False": "none"}),),
            "train.learning_rate": (("learning_rate", {"5e-05": 5e-5}),),
            "save.strategy": (("save_strategy", {"steps": "steps"}),),
        },
    ),
    "trl-sft": (
        "trl",
        ("trl.SFTConfig",),
        {
            "train.seq_len": (("max_length", {}), ("max_seq_length", {})),
            "train.packing": (("packing", {}),),
            "train.learning_rate": (("learning_rate", {"2e-05": 2e-5}),),
        },
    ),
    "trl-dpo": (
        "trl",
        ("trl.DPOConfig",),
        {
            "train.seq_len": (("max_length", {}),),
            "train.learning_rate": (("learning_rate", {"1e-06": 1e-6}),),
        },
    ),
    "trl-grpo": (
        "trl",
        ("trl.GRPOConfig",),
        {
            "gen.max_new_tokens": (("max_completion_length", {}),),
            "gen.colocated_engine": (("use_vllm", {}),),
            "train.learning_rate": (("learning_rate", {"1e-06": 1e-6}),),
        },
    ),
    "peft": (
        "peft",
        ("peft.LoraConfig",),
        {
            "lora.rank": (("r", {}),),
            "lora.alpha": (("lora_alpha", {}),),
            "lora.dora": (("use_dora", {}),),
        },
    ),
}

# source: (package, newest version read, fact key: value). KNOWLEDGE.md, sections A.2 to A.9.
# A text that begins with "=" takes the value of that fact.
CONSTANT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "axolotl": (
        "axolotl",
        "0.19.0",
        {
            "train.micro_batch": 1,
            "train.grad_accum": 1,
            "train.seq_len": 512,
            "train.grad_checkpointing": False,
            "train.checkpoint_reentrant": False,
            "train.packing": False,
            "eval.batch": "=train.micro_batch",
            "lora.on": False,
            "quant.kind": "none",
            "optimizer.name": "adamw_torch_fused",
            "data.pin_memory": True,
            "save.only_model": False,
        },
    ),
    "llamafactory": (
        "llamafactory",
        "0.9.5",
        {
            "train.seq_len": 2048,
            "train.grad_checkpointing": True,
            "train.checkpoint_reentrant": True,
            "lora.on": True,
            "quant.kind": "none",
        },
    ),
    "transformers-optimizer": ("transformers", "5.24.0", {"optimizer.name": "adamw_torch"}),
    "llamafactory-lora": ("llamafactory", "0.9.5", {"lora.rank": 8, "lora.targets": "all"}),
    "unsloth": (
        "unsloth",
        "2026.10.9",
        {
            "train.seq_len": 2048,
            "train.grad_checkpointing": True,
            "quant.kind": "bnb4",
            "quant.double": True,
        },
    ),
    "unsloth-lora": (
        "unsloth",
        "2026.10.9",
        {"lora.rank": 16, "lora.alpha": 16, "lora.targets": "all-linear"},
    ),
    "torchtitan": (
        "torchtitan",
        "0.3.0",
        {"train.micro_batch": 8, "train.seq_len": 2048, "train.param_dtype": "fp32"},
    ),
    "nanogpt": (
        "nanoGPT",
        "2023",
        {"train.micro_batch": 12, "train.seq_len": 1024, "data.workers": 0},
    ),
    "diffusers": ("diffusers", "examples", {"train.grad_accum": 1, "data.workers": 0}),
    "lightning": ("lightning", "2.6.6", {"train.grad_accum": 1, "train.amp": "none"}),
    "deepspeed": ("deepspeed", "0.19.8", {"dist.contiguous_gradients": True}),
    "vllm": (
        "vllm",
        "",
        {"serve.eager": False, "serve.tensor_parallel": 1, "serve.lora": False},
    ),
}

# source: (package, fact key: [first version, last version, value] runs). KNOWLEDGE.md A.2, A.3:
# changes that happened in a class above the one that is read, between the versions on both sides.
HISTORY: dict[str, tuple[str, dict[str, list[list[Any]]]]] = {
    "trl": (
        "trl",
        {
            "train.grad_checkpointing": [["0.8.6", "0.19.1", False], ["0.24.0", "1.16.0", True]],
            "train.amp": [["0.8.6", "0.16.1", "none"], ["0.19.1", "1.16.0", "bf16"]],
        },
    ),
}
