"""Python scripts and snippets: arguments of known constructors and assignments as settings.

args = SFTConfig(per_device_train_batch_size=4, max_length=2 * 1024, bf16=True)
model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16)
torch.backends.cudnn.benchmark = True
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, python_text, vocabulary_memory
from oomdoctor.configs.claims import (
    Claim,
    Table,
    both,
    count,
    dtype,
    flag,
    given,
    nothing,
    ratio,
    text,
)
from oomdoctor.configs.mapping import Dialect, open_end
from oomdoctor.configs.names import HF_CONFIGS, TRL_CONFIGS
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Lines, Setting, Settings
    from oomdoctor.model.core import Fact, Quote

MODULES = (  # what an import says about the framework, the most telling first
    ("unsloth", "unsloth"),
    ("trl", "trl"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("axolotl", "axolotl"),
    ("llamafactory", "llamafactory"),
    ("torchtune", "torchtune"),
    ("torchtitan", "torchtitan"),
    ("diffusers", "diffusers"),
    ("lightning", "lightning"),
    ("pytorch_lightning", "lightning"),
    ("deepspeed", "deepspeed"),
    ("accelerate", "accelerate"),
    ("ultralytics", "ultralytics"),
    ("detectron2", "detectron2"),
    ("mmdet", "openmmlab"),
    ("mmcv", "openmmlab"),
    ("mmengine", "openmmlab"),
)
CONSTRUCTORS = {  # class or function: what its call says
    "SFTConfig": (Claim("job.framework", "trl"), Claim("job.task", "sft")),
    "SFTTrainer": (Claim("job.framework", "trl"), Claim("job.task", "sft")),
    "DPOConfig": (Claim("job.framework", "trl"), Claim("job.task", "dpo")),
    "DPOTrainer": (Claim("job.framework", "trl"), Claim("job.task", "dpo")),
    "KTOConfig": (Claim("job.framework", "trl"), Claim("job.task", "kto")),
    "GRPOConfig": (Claim("job.framework", "trl"), Claim("job.task", "grpo")),
    "GRPOTrainer": (Claim("job.framework", "trl"), Claim("job.task", "grpo")),
    "PPOConfig": (Claim("job.framework", "trl"), Claim("job.task", "ppo")),
    "RewardConfig": (Claim("job.framework", "trl"), Claim("job.task", "reward")),
    "TrainingArguments": (Claim("job.framework", "transformers"),),
    "Seq2SeqTrainingArguments": (
        Claim("job.framework", "transformers"),
        Claim("job.task", "seq2seq"),
    ),
    "LLM": (Claim("job.framework", "vllm"), Claim("job.task", "generate")),
    "AsyncEngineArgs": (Claim("job.framework", "vllm"), Claim("job.task", "serve")),
    "FastLanguageModel.from_pretrained": (Claim("job.framework", "unsloth"),),
    "FastModel.from_pretrained": (Claim("job.framework", "unsloth"),),
    "FastVisionModel.from_pretrained": (Claim("job.framework", "unsloth"),),
    "Accelerator": (Claim("job.framework", "accelerate"),),
    "LoraConfig": (Claim("lora.on", value=True),),
    "get_peft_model": (Claim("lora.on", value=True),),
    "prepare_model_for_kbit_training": (Claim("quant.kbit_prepared", value=True),),
    "resize_token_embeddings": (Claim("train.resizes_embeddings", value=True),),
    "smart_tokenizer_and_embedding_resize": (Claim("train.resizes_embeddings", value=True),),
    "gradient_checkpointing_enable": (Claim("train.grad_checkpointing", value=True),),
    "enable_gradient_checkpointing": (Claim("train.grad_checkpointing", value=True),),
    "gradient_checkpointing_disable": (Claim("train.grad_checkpointing", value=False),),
    "enable_xformers_memory_efficient_attention": (Claim("attention.impl", "xformers"),),
    "DistributedDataParallel": (Claim("dist.kind", "ddp"),),
    "DDP": (Claim("dist.kind", "ddp"),),
    "DataParallel": (Claim("dist.kind", "dp"),),
    "FullyShardedDataParallel": (Claim("dist.kind", "fsdp1"),),
    "FSDP": (Claim("dist.kind", "fsdp1"),),
    "fully_shard": (Claim("dist.kind", "fsdp2"),),
    "set_device": (Claim("dist.sets_device", value=True),),
    "no_sync": (Claim("dist.no_sync", value=True),),
    "make_graphed_callables": (Claim("compile.cudagraphs", value=True),),
    "wandb.watch": (Claim("logging.watch_gradients", value=True),),
}
KEYS: Table = {
    "loraconfig.r": both(count("lora.rank"), given("lora.on")),
    "get_peft_model.r": both(count("lora.rank"), given("lora.on")),
    "loraconfig.target_modules": text("lora.targets"),
    "loraconfig.bias": nothing,
    "set_per_process_memory_fraction.fraction": ratio("alloc.fraction"),
    "dataloader.batch_size": count("train.micro_batch"),
    "dataloader.shuffle": nothing,
    "backward.retain_graph": flag("code.retain_graph"),
    "backward.create_graph": flag("code.retain_graph"),
    "grad.create_graph": flag("code.retain_graph"),
    "torch.backends.cuda.matmul.allow_tf32": flag("train.tf32"),
    "model.config.use_cache": flag("train.use_cache"),
    "config.use_cache": flag("train.use_cache"),
    "fullyshardeddataparallel.auto_wrap_policy": given("dist.auto_wrap"),
    "fsdp.auto_wrap_policy": given("dist.auto_wrap"),
    "tokenizer.padding_side": lambda value: iter(
        (Claim("train.padding_side", str(value)),) if value in ("left", "right") else ()
    ),
    "tokenizer.pad_token": lambda value: iter(
        (Claim("train.pad_is_eos", value=True),) if "eos_token" in str(value) else ()
    ),
    "tokenizer.padding": vocabulary_memory.padding,
    "tokenizer.truncation": flag("train.truncation"),
    "tokenizer.max_length": count("train.seq_len", least=2),
    "autocast.dtype": dtype("train.amp"),
    "device": nothing,
    "n_layer": count("model.layers"),
    "n_head": count("model.heads"),
    "n_embd": count("model.hidden"),
    "attn": meanings.attention,
    "optimizer": nothing,
    "model": meanings.model_name,
    "trainer.model": nothing,
    "gpus": nothing,
    "task": nothing,
    "max_tokens": nothing,
    "batch": nothing,
    "epoch": nothing,
    "r": nothing,
    "workers": nothing,
    "input_size": nothing,
    "attention": nothing,
    "context": nothing,
    "recompute": nothing,
}
CONFIGS = (*HF_CONFIGS, *TRL_CONFIGS)
OPTIMIZERS = frozenset(
    (
        "adamw",
        "adam",
        "sgd",
        "adafactor",
        "lion",
        "adamw8bit",
        "adam8bit",
        "pagedadamw",
        "pagedadamw8bit",
        "pagedadamw32bit",
        "pagedadam8bit",
        "fusedadam",
        "deepspeedcpuadam",
        "rmsprop",
        "lamb",
        "muon",
    )
)


class Scripts(NamedTuple):
    """What scripts say: settings, claims of their own, the names they use.

    `defaults` are settings that a flag of the command line may change, `listed` such that state
    no fact, `sections` those of calls inside calls.
    """

    settings: list[Setting]
    claims: list[tuple[Claim, Quote]]
    calls: tuple[Fact, ...]
    defaults: list[Setting]
    listed: list[Setting]
    sections: list[Setting]

    @property
    def framework(self) -> str | None:
        """Return the framework that is claimed first."""
        named = (str(claim.value) for claim, _ in self.claims if claim.key == "job.framework")
        return next(named, None)

    @property
    def all(self) -> list[Setting]:
        """Return all settings line by line."""
        rows = [*self.settings, *self.defaults, *self.listed]
        return sorted(rows, key=lambda row: row.quote.line)


def read(lines: Lines) -> Scripts:
    """Read a script or snippet; what does not parse is left out."""
    from oomdoctor.configs import (
        python_calls,
        python_code,
        python_device,
        python_layers,
        python_moves,
        python_names,
        python_order,
        python_settings,
        python_trainer,
        python_use,
    )

    blocks = python_text.blocks(lines)
    found = Scripts([], [], python_names.calls(blocks), [], [], [])
    found.claims.extend(python_use.read(blocks))
    found.claims.extend(python_device.read(blocks, lines.text))
    found.claims.extend(python_layers.read(blocks))
    for block in blocks:
        names = python_text.Names(block.tree)
        made = python_settings.read(block, names)
        found.settings.extend(made.settings)
        found.defaults.extend(made.defaults)
        found.listed.extend(made.listed)
        found.sections.extend(python_settings.sections(block, names))
        for node in python_text.nodes(block.tree):
            found.claims.extend(_claims(node, block.lines))
        found.claims.extend(python_code.read(block))
        found.claims.extend(python_order.read(block))
        found.claims.extend(python_moves.read(block))
        found.claims.extend(python_calls.read(block, names))
        found.claims.extend(python_trainer.read(block))
    return found


def _claims(node: ast.AST, lines: Lines) -> Iterator[tuple[Claim, Quote]]:
    if isinstance(node, ast.Call):
        full = python_text.called(node)
        tail = ".".join(full.split(".")[-2:])
        short = full.rpartition(".")[2]
        known = CONSTRUCTORS.get(tail) or CONSTRUCTORS.get(short) or ()
        if short.lower() in OPTIMIZERS:
            known = (*known, *meanings.optimizer(short))
        where = python_text.quote(node.func, lines)
        yield from ((claim, where) for claim in known)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        modules = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
        tops = {module.partition(".")[0] for module in modules}
        for module, framework in MODULES:
            if module in tops:
                yield Claim("job.framework", framework), python_text.quote(node, lines)
                return


def closes(settings: Settings, found: Scripts) -> tuple[str, ...]:
    """Close the job's config where a script imports, loads a model and sets up a trainer."""
    arguments = [row for row in settings if row.path[0] in CONFIGS]
    loads = any(
        row.key in ("from_pretrained.model", "from_pretrained.model_name") for row in settings
    )
    if any(row.key in ("llm.model", "engine.model_path") for row in settings):
        return ("serve-config",)
    imports = any(claim.key == "job.framework" for claim, _ in found.claims)
    whole = len(arguments) >= 4 and loads and imports
    return ("train-config", "train-script") if whole else ()


def _always(settings: Settings) -> bool:
    del settings
    return True


DIALECT = Dialect("python", None, KEYS, _always, open_end)
