"""Which calls of a script take a setting, for each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.names import HF_CONFIGS, TRL_CONFIGS
from oomdoctor.configs.setting import normal

if TYPE_CHECKING:
    import ast

TARGETS = {  # dialect: the calls that take its settings, the first that occurs is edited
    "trl": TRL_CONFIGS,
    "hf_trainer": (*HF_CONFIGS, *TRL_CONFIGS),
    "unsloth": (
        "SFTConfig",
        "DPOConfig",
        "GRPOConfig",
        "TrainingArguments",
        "get_peft_model",
        "from_pretrained",
    ),
    "lightning": ("Trainer",),
    "vllm": ("LLM", "AsyncEngineArgs", "EngineArgs"),
    "sglang": ("Engine", "ServerArgs"),
    "accelerate": ("Accelerator",),
    "torchtitan": ("Trainer.Config", "JobConfig"),
}
LOADING = frozenset(  # settings that a config file holds, and code gives when it loads the model
    ("attn_implementation", "dtype", "torch_dtype", "device_map", "low_cpu_mem_usage")
)
QUANTISING = frozenset(
    (
        *("load_in_4bit", "load_in_8bit", "bnb_4bit_use_double_quant"),
        *("bnb_4bit_compute_dtype", "bnb_4bit_quant_type", "bnb_4bit_quant_storage"),
    )
)
ADAPTER = {  # the name of a config file's setting in LoraConfig
    "lora_r": "r",
    "lora_alpha": "lora_alpha",
    "lora_target_modules": "target_modules",
    "lora_modules_to_save": "modules_to_save",
    "lora_dropout": "lora_dropout",
    "use_dora": "use_dora",
    "use_rslora": "use_rslora",
}
OF_UNSLOTH = {  # what its two own calls take
    "from_pretrained": ("load_in_4bit", "load_in_8bit", "full_finetuning", "fast_inference"),
    "get_peft_model": ("r", "use_gradient_checkpointing", "target_modules", "random_state"),
}
NOWHERE = frozenset(("use_peft", "fsdp_config"))  # no argument of a call: code is needed
DEEPSPEED = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")


def takers(key: str, dialect: str) -> tuple[tuple[str, ...], str]:
    """Name the calls that take a setting, and the argument's name there."""
    names = TARGETS.get(dialect, ())
    match dialect:
        case "python":
            head, _, key = key.rpartition(".")
            names = (head.rpartition(".")[2],)
        case "vllm" | "sglang":
            key = normal(key.lstrip("-"))
        case "lightning":
            key = key.removeprefix("trainer.")
        case "trl" | "hf_trainer" | "unsloth":
            names, key = _of_trainer(key, dialect, names)
    return names, key


def _of_trainer(key: str, dialect: str, names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Name the call beside the trainer's own arguments that takes a setting, if one does."""
    own = OF_UNSLOTH if dialect == "unsloth" else {}
    call = next((call for call, keys in own.items() if key in keys), None)
    if call is not None:
        names = (call,)
    elif key in NOWHERE:
        names = ()
    elif key in LOADING:
        names = ("from_pretrained",)
    elif key in QUANTISING:
        names = ("BitsAndBytesConfig",)
    elif key in ADAPTER:
        names, key = ("LoraConfig", "get_peft_model"), ADAPTER[key]
    return names, key


def is_called(call: ast.Call, name: str) -> bool:
    """Say whether a call is one of a name, `Class` or `Class.method`."""
    full = python_text.called(call)
    return full == name or full.endswith(f".{name}")


def may_take(text: str, key: str, dialect: str) -> bool:
    """Say whether a script can hold a setting at all, by the words that occur in it."""
    if dialect in ("python", "nanogpt", "deepspeed"):
        return True
    names, _ = takers(key, dialect)
    return any(name in text for name in names) or key.rpartition(".")[2] in text
