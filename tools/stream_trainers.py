"""Real training loops for recordings: transformers' Trainer, and TRL's for chats and preferences.

The worker imitates these loops; what they allocate themselves is what it has to come to. A model of
a job's config is saved without training, and read again as a user would read it.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

STEPS = 2
ROWS = 16
_OPTIMIZERS = {"foreach": "adamw_torch", "fused": "adamw_torch_fused"}


def run_trainer(loop: str, job: Job, recorder: Any) -> None:
    """Let a library train for two steps; `recorder` hears where it is."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="0")
    with tempfile.TemporaryDirectory() as folder:
        save(job, Path(folder))
        recorder.phase("load")
        trainer = _LOOPS[loop](job, Path(folder))
        trainer.add_callback(_telling(recorder))
        trainer.train()
        recorder.end_phase()


def save(job: Job, folder: Path) -> None:
    """Save a model of the job's config, and a tokenizer of numbers that fits it."""
    transformers = importlib.import_module("transformers")
    tokenizers = importlib.import_module("tokenizers")
    config = transformers.AutoConfig.for_model(**job.model.config)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=_dtype(job))
    model.save_pretrained(folder)
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "<eos>"}
    numbers = (f"{number}" for number in range(len(special), config.vocab_size))
    words = {word: number for number, word in enumerate((*special.values(), *numbers))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token=special["unk_token"]))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **special).save_pretrained(folder)


def _tokenizer(folder: Path) -> Any:
    """Read the tokenizer as it is: by the model's type, another class would be taken."""
    transformers = importlib.import_module("transformers")
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def _dtype(job: Job) -> Any:
    torch = importlib.import_module("torch")
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[job.dtype]


def _settings(job: Job, folder: Path) -> dict[str, Any]:
    how = job.optimizer.implementation if job.optimizer else "foreach"
    return {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": job.batch,
        "gradient_accumulation_steps": job.grad_accum,
        "max_steps": STEPS,
        "bf16": job.amp == "bf16",
        "optim": _OPTIMIZERS[how],
        "gradient_checkpointing": job.checkpointing is not None,
        "gradient_checkpointing_kwargs": {"use_reentrant": job.checkpointing == "reentrant"},
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }


def _adapter(job: Job) -> Any:
    if job.lora is None:
        return None
    peft = importlib.import_module("peft")
    return peft.LoraConfig(
        r=job.lora.rank,
        lora_alpha=job.lora.alpha,
        lora_dropout=job.lora.dropout,
        target_modules=list(job.lora.targets),
        task_type="CAUSAL_LM",
    )


def _rows(length: int) -> Any:
    datasets = importlib.import_module("datasets")
    ids = [[(row + at) % 900 + 5 for at in range(length)] for row in range(ROWS)]
    return datasets.Dataset.from_dict({"input_ids": ids, "labels": ids})


def _plain(job: Job, folder: Path) -> Any:
    transformers = importlib.import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=_dtype(job))
    adapter = _adapter(job)
    if adapter is not None:
        model = importlib.import_module("peft").get_peft_model(model, adapter)
    return transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(**_settings(job, folder)),
        train_dataset=_rows(job.seq_len),
        data_collator=transformers.default_data_collator,
    )


def _chats(job: Job, folder: Path) -> Any:
    trl, datasets = importlib.import_module("trl"), importlib.import_module("datasets")
    text = [" ".join(f"{(row + at) % 900 + 5}" for at in range(job.seq_len)) for row in range(ROWS)]
    settings = {**_settings(job, folder), "max_length": job.seq_len}
    return trl.SFTTrainer(
        model=str(folder),
        args=trl.SFTConfig(**settings, model_init_kwargs={"dtype": _dtype(job)}),
        train_dataset=datasets.Dataset.from_dict({"text": text}),
        processing_class=_tokenizer(folder),
        peft_config=_adapter(job),
    )


def _preferences(job: Job, folder: Path) -> Any:
    trl, datasets = importlib.import_module("trl"), importlib.import_module("datasets")
    half = job.seq_len // 2

    def texts(first: int, count: int) -> list[str]:
        numbers = ([(row * first + at) % 900 + 5 for at in range(count)] for row in range(ROWS))
        return [" " + " ".join(map(str, one)) for one in numbers]

    rows = {"prompt": texts(1, half), "chosen": texts(2, half - 1), "rejected": texts(3, half - 1)}
    settings = {**_settings(job, folder), "max_length": job.seq_len}
    return trl.DPOTrainer(
        model=str(folder),
        args=trl.DPOConfig(**settings, model_init_kwargs={"dtype": _dtype(job)}),
        train_dataset=datasets.Dataset.from_dict(rows),
        processing_class=_tokenizer(folder),
        peft_config=_adapter(job),
    )


_LOOPS = {"transformers": _plain, "trl-sft": _chats, "trl-dpo": _preferences}


def _telling(recorder: Any) -> Any:
    """Return a callback that says when a step begins."""
    transformers = importlib.import_module("transformers")

    class Telling(transformers.TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            del args, control
            recorder.phase(f"step {state.global_step + 1}")

    return Telling()
