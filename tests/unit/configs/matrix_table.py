"""Which canonical field each dialect writes under which key, with a value before and after."""

# ruff: noqa: FBT003 - a table of values
from __future__ import annotations

from typing import Any, NamedTuple

from tests.unit.configs.matrix_text import Raw

SAME: Any = object()
Q, V = ["q_proj", "v_proj"], ["q_proj"]


class Row(NamedTuple):
    """A field: its fact, its key, the value written before and after, what the fact says then.

    A fact of None is not said. `where` names the call of a script that takes the setting.
    """

    field: str
    fact: str
    key: str
    old: Any
    new: Any
    before: Any = SAME
    after: Any = SAME
    where: str = ""

    def said(self, *, changed: bool) -> Any:
        """Return what the fact says before or after the edit."""
        given, written = (self.after, self.new) if changed else (self.before, self.old)
        return written if given is SAME else given


TRAINER = (
    Row("micro_batch", "train.micro_batch", "per_device_train_batch_size", 4, 2),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 8, 16),
    Row("lr", "train.learning_rate", "learning_rate", 2e-4, 1e-05),
    Row("scheduler", "train.scheduler", "lr_scheduler_type", "cosine", "linear"),
    Row("warmup", "train.warmup_ratio", "warmup_ratio", 0.1, 0.03),
    Row("warmup", "train.warmup_steps", "warmup_steps", 20, 5),
    Row("optimizer", "optimizer.name", "optim", "adamw_torch", "paged_adamw_8bit"),
    Row("amp", "train.amp", "bf16", True, False, "bf16", None),
    Row("tf32", "train.tf32", "tf32", True, False),
    Row("grad_checkpointing", "train.grad_checkpointing", "gradient_checkpointing", True, False),
    Row("epochs", "train.epochs", "num_train_epochs", 3, 1),
    Row("max_steps", "train.max_steps", "max_steps", 1000, 10),
    Row("clip", "train.max_grad_norm", "max_grad_norm", 1.0, 0.5),
    Row("weight_decay", "train.weight_decay", "weight_decay", 0.01, 0.1),
    Row("label_smoothing", "train.label_smoothing", "label_smoothing_factor", 0.1, 0.2),
    Row("eval", "eval.strategy", "eval_strategy", "steps", "epoch"),
    Row("eval", "eval.batch", "per_device_eval_batch_size", 4, 1),
    Row("eval", "eval.accumulation_steps", "eval_accumulation_steps", 10, 1),
    Row("eval", "eval.steps", "eval_steps", 100, 50),
    Row("workers", "data.workers", "dataloader_num_workers", 4, 2),
    Row("pin", "data.pin_memory", "dataloader_pin_memory", True, False),
    Row("prefetch", "data.prefetch", "dataloader_prefetch_factor", 2, 4),
    Row("persistent", "data.persistent", "dataloader_persistent_workers", True, False),
    Row("save", "save.strategy", "save_strategy", "steps", "epoch"),
    Row("save", "save.steps", "save_steps", 500, 100),
    Row("save", "save.limit", "save_total_limit", 3, 1),
    Row("save", "save.only_model", "save_only_model", False, True),
    Row("loss", "loss.impl", "use_liger_kernel", True, False, "liger", None),
    Row("compile", "compile.on", "torch_compile", True, False, after=None),
    Row("output", "job.settings", "output_dir", "out", "other", "output_dir = out")._replace(
        after="output_dir = other"
    ),
)
REENTRANT = Row(
    *("reentrant", "train.checkpoint_reentrant", "gradient_checkpointing_kwargs.use_reentrant"),
    *(True, False),
)
TRL = (
    Row("seq_len", "train.seq_len", "max_length", 2048, 1024),
    Row("packing", "train.packing", "packing", True, False),
)
ADAPTER = (
    Row("lora", "lora.rank", "lora_r", 32, 8),
    Row("lora", "lora.alpha", "lora_alpha", 64, 16),
    Row("lora", "lora.dropout", "lora_dropout", 0.1, 0.05),
    Row("lora", "lora.targets", "lora_target_modules", Q, V, "q_proj,v_proj", "q_proj"),
    Row("lora", "lora.dora", "use_dora", True, False),
)
LOADING = (
    Row("dtype", "train.base_dtype", "dtype", "bfloat16", "float16", "bf16", "fp16"),
    Row("attention", "attention.impl", "attn_implementation", "sdpa", "eager"),
    Row("quant", "quant.kind", "load_in_4bit", True, False, "bnb4", "none"),
    Row("quant", "quant.double", "use_bnb_nested_quant", True, False),
    Row("lora", "lora.on", "use_peft", True, False, after=None),
)
IN_CODE = (
    *(row._replace(where="LoraConfig") for row in ADAPTER),
    Row("dtype", *("train.base_dtype", "torch_dtype", Raw("torch.bfloat16"), "float16"))._replace(
        before="bf16", after="fp16", where="AutoModel.from_pretrained"
    ),
    LOADING[1]._replace(where="AutoModel.from_pretrained"),
    LOADING[2]._replace(where="BitsAndBytesConfig", after=None),
    Row("quant", "quant.double", "bnb_4bit_use_double_quant", True, False)._replace(
        where="BitsAndBytesConfig"
    ),
)
LLAMAFACTORY = (
    *(row for row in TRAINER if row.key not in ("use_liger_kernel", "label_smoothing_factor")),
    Row("seq_len", "train.seq_len", "cutoff_len", 2048, 1024),
    Row("packing", "train.packing", "packing", True, False),
    Row("task", "job.task", "stage", "sft", "dpo"),
    Row("lora", "lora.on", "finetuning_type", "lora", "full", True, False),
    Row("lora", "lora.rank", "lora_rank", 16, 8),
    Row("lora", "lora.alpha", "lora_alpha", 32, 16),
    Row("lora", "lora.targets", "lora_target", "all", "q_proj"),
    Row("quant", "quant.kind", "quantization_bit", 4, 8, "bnb4", "bnb8"),
    Row("quant", "quant.double", "double_quantization", True, False),
    Row("loss", "loss.impl", "enable_liger_kernel", True, False, "liger", None),
    Row("attention", "attention.impl", "flash_attn", "fa2", "sdpa", "flash2"),
    Row("offload", "optimizer.offload", "deepspeed", "ds_z3_offload.json", "ds_z3.json")._replace(
        before="cpu", after=None
    ),
)
AXOLOTL = (
    Row("model", "model.name", "base_model", "org/one-7b", "org/two-7b"),
    Row("micro_batch", "train.micro_batch", "micro_batch_size", 4, 2),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 8, 16),
    Row("seq_len", "train.seq_len", "sequence_len", 4096, 1024),
    Row("packing", "train.packing", "sample_packing", True, False),
    Row("lr", "train.learning_rate", "learning_rate", 2e-4, 1e-05),
    Row("scheduler", "train.scheduler", "lr_scheduler", "cosine", "linear"),
    Row("warmup", "train.warmup_ratio", "warmup_ratio", 0.1, 0.03),
    Row("optimizer", "optimizer.name", "optimizer", "adamw_torch", "adamw_bnb_8bit"),
    Row("amp", "train.amp", "bf16", True, False, "bf16", None),
    Row("tf32", "train.tf32", "tf32", True, False),
    Row("grad_checkpointing", "train.grad_checkpointing", "gradient_checkpointing", True, False),
    REENTRANT,
    Row("epochs", "train.epochs", "num_epochs", 3, 1),
    Row("lora", "lora.rank", "lora_r", 32, 8),
    Row("lora", "lora.alpha", "lora_alpha", 64, 16),
    Row("lora", "lora.dropout", "lora_dropout", 0.1, 0.05),
    Row("lora", "lora.targets", "lora_target_modules", Q, V, "q_proj,v_proj", "q_proj"),
    Row("lora", "lora.on", "adapter", "qlora", "lora", True, True),
    Row("lora", "lora.dora", "peft_use_dora", True, False),
    Row("quant", "quant.kind", "load_in_4bit", True, False, "bnb4", "none"),
    Row("eval", "eval.strategy", "val_set_size", 0, 0.1, "no", None),
    Row("eval", "eval.batch", "eval_batch_size", 4, 1),
    Row("eval", "eval.steps", "eval_steps", 100, 50),
    Row("workers", "data.workers", "dataloader_num_workers", 4, 2),
    Row("save", "save.limit", "save_total_limit", 3, 1),
    Row("save", "save.only_model", "save_only_model", False, True),
    Row("attention", "attention.impl", "flash_attention", True, False, "flash2", None),
    Row("loss", "loss.impl", "chunked_cross_entropy", True, False, "chunked", None),
    Row("compile", "compile.on", "torch_compile", True, False, after=None),
    Row("clip", "train.max_grad_norm", "max_grad_norm", 1.0, 0.5),
    Row("weight_decay", "train.weight_decay", "weight_decay", 0.01, 0.1),
    Row("stage", "dist.kind", "deepspeed", "cfg/zero2.json", "cfg/zero3.json", "zero2", "zero3"),
)
ZERO = "zero_optimization"
DEEPSPEED = (
    Row("micro_batch", "train.micro_batch", "train_micro_batch_size_per_gpu", 4, 2),
    Row("global_batch", "train.global_batch", "train_batch_size", 64, 32),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 8, 16),
    Row("clip", "train.max_grad_norm", "gradient_clipping", 1.0, 0.5),
    Row("amp", "train.amp", "bf16.enabled", True, False, "bf16", None),
    Row("optimizer", "optimizer.name", "optimizer.type", "AdamW", "Adam"),
    Row("lr", "train.learning_rate", "optimizer.params.lr", 2e-4, 1e-05),
    Row("weight_decay", "train.weight_decay", "optimizer.params.weight_decay", 0.01, 0.1),
    Row("scheduler", "train.scheduler", "scheduler.type", "WarmupLR", "OneCycle")._replace(
        before="warmuplr", after="onecycle"
    ),
    Row("warmup", "train.warmup_steps", "scheduler.params.warmup_num_steps", 20, 5),
    Row("stage", "dist.kind", f"{ZERO}.stage", 2, 3, "zero2", "zero3"),
    Row("offload", "optimizer.offload", f"{ZERO}.offload_optimizer.device", "cpu", "nvme"),
    Row("offload", "dist.param_offload", f"{ZERO}.offload_param.device", "cpu", "none"),
    Row("buffers", "dist.contiguous_gradients", f"{ZERO}.contiguous_gradients", True, False),
)
ACCELERATE = (
    Row("ranks", "dist.world_size", "num_processes", 8, 2),
    Row("amp", "train.amp", "mixed_precision", "bf16", "fp16"),
    Row("stage", "dist.kind", "deepspeed_config.zero_stage", 2, 3, "zero2", "zero3"),
    Row(
        "offload",
        *("optimizer.offload", "deepspeed_config.offload_optimizer_device"),
        "cpu",
        "none",
    ),
    Row("offload", *("dist.param_offload", "deepspeed_config.offload_param_device"), "cpu", "none"),
    Row("grad_accum", *("train.grad_accum", "deepspeed_config.gradient_accumulation_steps"), 8, 16),
    Row("clip", *("train.max_grad_norm", "deepspeed_config.gradient_clipping"), 1.0, 0.5),
    Row("compile", "compile.on", "dynamo_config.dynamo_backend", "INDUCTOR", "NO", True, False),
)
FSDP = (
    Row("stage", "dist.kind", "fsdp_version", 2, 1, "fsdp2", "fsdp1"),
    Row("offload", "dist.param_offload", "fsdp_offload_params", True, False, "cpu", "none"),
    Row(
        "save", "dist.state_dict", "fsdp_state_dict_type", "FULL_STATE_DICT", "SHARDED_STATE_DICT"
    )._replace(before="full", after="sharded"),
    Row(
        "wrap", "dist.auto_wrap", "fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "NO_WRAP"
    )._replace(before=True, after=False),
    Row(
        "grad_checkpointing",
        "train.grad_checkpointing",
        "fsdp_activation_checkpointing",
        True,
        False,
    ),
    Row("gathers", "dist.limit_all_gathers", "limit_all_gathers", True, False),
)
