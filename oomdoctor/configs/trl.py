"""TRL: SFTConfig, DPOConfig, GRPOConfig, ... as YAML (`--config`), flags or keyword arguments.

model_name_or_path: Qwen/Qwen3-0.6B
dataset_name: trl-lib/Capybara
max_length: 2048
use_peft: true
lora_r: 32
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import hf_trainer
from oomdoctor.configs.claims import Claim, Table, count, ratio
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

GRPO = ("num_generations", "use_vllm", "vllm_mode", "max_completion_length", "num_iterations")
PREFERENCE = ("max_prompt_length", "precompute_ref_log_probs", "rpo_alpha", "ref_model_init_kwargs")
SFT = (
    "packing",
    "packing_strategy",
    "max_seq_length",
    "dataset_text_field",
    "assistant_only_loss",
    "completion_only_loss",
    "dataset_kwargs",
    "eval_packing",
)
SHARED = (
    "max_length",
    "beta",
    "loss_type",
    "use_peft",
    "dataset_num_proc",
    "padding_free",
    "dataset_mixture",
    "dataset_mixer",
    "lora_target_modules",
    "model_init_kwargs",
    "use_bnb_nested_quant",
    "activation_offloading",
    "dataset_train_split",
    "dataset_splits",
    "reward_funcs",
)
KEYS: Table = {"lora_r": count("lora.rank"), "beta": ratio("rl.beta"), **hf_trainer.FSDP_KEYS}


def matches(settings: Settings) -> bool:
    """Say whether TRL's own keys stand beside those of TrainingArguments."""
    own = settings.names(*GRPO, *PREFERENCE, *SFT, *SHARED)
    if settings.names("num_generations", "vllm_mode", "trainer") and own >= 2:
        return True
    return own >= 1 and settings.names(*hf_trainer.MARKS) >= 2


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where the model and the training arguments stand together."""
    named = settings.names("model_name_or_path", "output_dir") == 2
    whole = named and settings.names(*hf_trainer.MARKS) >= 4
    return ("train-config",) if whole else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read task, adapter and inference engine."""
    task = _task(settings)
    if task is not None:
        yield task
    peft, rank = settings.get("use_peft"), settings.get("lora_r")
    if peft is None and settings.rows:
        if closes(settings):
            source = "no use_peft in a complete TRL config"
            yield (
                Claim("lora.on", value=False, source=source, origin=Origin.DERIVED),
                _any(settings),
            )
        elif rank is not None:
            yield Claim("lora.on", value=True), rank
    yield from engine(settings)
    yield from hf_trainer.fsdp(settings)


def engine(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read where the inference engine of an RL run works; off means none on this card."""
    for prefix in ("", "trl."):
        uses = settings.get(f"{prefix}use_vllm")
        if uses is not None and uses.value is False:
            yield Claim("gen.colocated_engine", value=False), uses


def _any(settings: Settings) -> Setting:
    return settings.first("model_name_or_path", "output_dir") or settings.rows[0]


def _task(settings: Settings) -> tuple[Claim, Setting] | None:
    """Tell the trainer by the keys that only its config has."""
    tests = (
        ("grpo", ("num_generations", "reward_funcs")),
        ("kto", ("desirable_weight", "undesirable_weight")),
        ("dpo", (*PREFERENCE, "beta", "loss_type")),
        ("sft", SFT),
    )
    for task, keys in tests:
        row = settings.first(*keys)
        if row is not None and (row.value is not False or task == "sft"):
            return Claim("job.task", task), row
    return None


DIALECT = Dialect("trl", "trl", KEYS, matches, closes, derived)
