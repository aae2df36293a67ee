"""The rows of the matrix for recipes, scripts of settings, image training and serving."""

# ruff: noqa: FBT003 - a table of values
from __future__ import annotations

from tests.unit.configs.matrix_table import ADAPTER, TRAINER, TRL, Q, Row, V
from tests.unit.configs.matrix_text import Raw

LLAMA = "torchtune.models.llama3_1."
TORCHTUNE = (
    Row(
        "lora", "lora.on", "model._component_", f"{LLAMA}lora_llama3_1_8b", f"{LLAMA}llama3_1_8b"
    )._replace(before=True, after=False),
    Row("lora", "lora.rank", "model.lora_rank", 32, 8),
    Row("lora", "lora.alpha", "model.lora_alpha", 64, 16),
    Row("lora", "lora.dropout", "model.lora_dropout", 0.1, 0.05),
    Row("lora", "lora.targets", "model.lora_attn_modules", Q, V, "q_proj,v_proj", "q_proj"),
    Row("lora", "lora.dora", "model.use_dora", True, False),
    Row("seq_len", "train.seq_len", "tokenizer.max_seq_len", 2048, 1024),
    Row("packing", "train.packing", "dataset.packed", True, False),
    Row("micro_batch", "train.micro_batch", "batch_size", 4, 2),
    Row("eval", "eval.batch", "batch_size_val", 4, 1),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 8, 16),
    Row(
        "optimizer",
        "optimizer.name",
        "optimizer._component_",
        "torch.optim.AdamW",
        "torch.optim.SGD",
    ),
    Row("optimizer", "optimizer.fused", "optimizer.fused", True, False),
    Row("optimizer", "optimizer.in_backward", "optimizer_in_bwd", False, True),
    Row("lr", "train.learning_rate", "optimizer.lr", 2e-4, 1e-05),
    Row("weight_decay", "train.weight_decay", "optimizer.weight_decay", 0.01, 0.1),
    Row(
        "scheduler",
        "train.scheduler",
        "lr_scheduler._component_",
        "torchtune.a.cosine",
        "torchtune.a.linear",
    )._replace(before="cosine", after="linear"),
    Row("warmup", "train.warmup_steps", "lr_scheduler.num_warmup_steps", 20, 5),
    Row(
        "loss",
        "loss.impl",
        "loss._component_",
        "torchtune.modules.loss.CEWithChunkedOutputLoss",
        "torch.nn.CrossEntropyLoss",
    )._replace(before="chunked", after="full"),
    Row(
        "grad_checkpointing",
        "train.grad_checkpointing",
        "enable_activation_checkpointing",
        True,
        False,
    ),
    Row("offload", "dist.param_offload", "fsdp_cpu_offload", True, False, "cpu", "none"),
    Row("dtype", "train.base_dtype", "dtype", "bf16", "fp32"),
    Row("compile", "compile.on", "compile", True, False),
    Row("epochs", "train.epochs", "epochs", 3, 1),
    Row("clip", "train.max_grad_norm", "clip_grad_norm", 1.0, 0.5),
)
TORCHTITAN = (
    Row("micro_batch", "train.micro_batch", "training.local_batch_size", 4, 2),
    Row("global_batch", "train.global_batch", "training.global_batch_size", 64, 32),
    Row("seq_len", "train.seq_len", "training.seq_len", 8192, 1024),
    Row("max_steps", "train.max_steps", "training.steps", 1000, 10),
    Row("clip", "train.max_grad_norm", "training.max_norm", 1.0, 0.5),
    Row("dtype", "train.base_dtype", "training.dtype", "float32", "bfloat16", "fp32", "bf16"),
    Row(
        "amp", "train.amp", "training.mixed_precision_param", "bfloat16", "float16", "bf16", "fp16"
    ),
    Row("offload", "dist.param_offload", "training.enable_cpu_offload", True, False, "cpu", "none"),
    Row("optimizer", "optimizer.name", "optimizer.name", "AdamW", "Adam"),
    Row(
        "optimizer", "optimizer.fused", "optimizer.implementation", "fused", "foreach", True, False
    ),
    Row("lr", "train.learning_rate", "optimizer.lr", 2e-4, 1e-05),
    Row("warmup", "train.warmup_steps", "lr_scheduler.warmup_steps", 20, 5),
    Row("scheduler", "train.scheduler", "lr_scheduler.decay_type", "cosine", "linear"),
    Row("stage", "dist.kind", "parallelism.data_parallel_shard_degree", -1, 1, "fsdp2", None),
    Row(
        "grad_checkpointing",
        "train.grad_checkpointing",
        "activation_checkpoint.mode",
        "full",
        "none",
    )._replace(before=True, after=False),
    Row("save", "save.steps", "checkpoint.interval", 500, 100),
    Row("save", "save.limit", "checkpoint.keep_latest_k", 3, 1),
    Row("eval", "eval.steps", "validation.freq", 100, 50),
    Row("compile", "compile.on", "compile.enable", True, False),
)
LIGHTNING = (
    Row("amp", "train.amp", "trainer.precision", "bf16-mixed", "16-mixed", "bf16", "fp16"),
    Row("grad_accum", "train.grad_accum", "trainer.accumulate_grad_batches", 8, 16),
    Row("stage", "dist.kind", "trainer.strategy", "ddp", "fsdp", "ddp", "fsdp1"),
    Row("epochs", "train.epochs", "trainer.max_epochs", 3, 1),
    Row("max_steps", "train.max_steps", "trainer.max_steps", 1000, 10),
    Row("clip", "train.max_grad_norm", "trainer.gradient_clip_val", 1.0, 0.5),
    Row("ranks", "gpu.count", "trainer.devices", 8, 2),
    Row("micro_batch", "train.micro_batch", "data.init_args.batch_size", 4, 2),
    Row("workers", "data.workers", "data.init_args.num_workers", 4, 2),
    Row("lr", "train.learning_rate", "optimizer.init_args.lr", 2e-4, 1e-05),
    Row(
        "optimizer",
        "optimizer.name",
        "optimizer.class_path",
        "torch.optim.AdamW",
        "torch.optim.SGD",
    ),
)
NANOGPT = (
    Row("micro_batch", "train.micro_batch", "batch_size", 12, 2),
    Row("seq_len", "train.seq_len", "block_size", 1024, 512),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 40, 16),
    Row("model", "model.layers", "n_layer", 12, 6),
    Row("model", "model.heads", "n_head", 12, 6),
    Row("model", "model.hidden", "n_embd", 768, 384),
    Row("max_steps", "train.max_steps", "max_iters", 1000, 10),
    Row("lr", "train.learning_rate", "learning_rate", 6e-4, 1e-05),
    Row("weight_decay", "train.weight_decay", "weight_decay", 0.01, 0.1),
    Row("clip", "train.max_grad_norm", "grad_clip", 1.0, 0.5),
    Row("warmup", "train.warmup_steps", "warmup_iters", 20, 5),
    Row("eval", "eval.steps", "eval_interval", 100, 50),
    Row("amp", "train.amp", "dtype", "bfloat16", "float16", "bf16", "fp16"),
    Row("compile", "compile.on", "compile", True, False),
)
DIFFUSERS = (
    Row("micro_batch", "train.micro_batch", "train_batch_size", 4, 2),
    Row("grad_accum", "train.grad_accum", "gradient_accumulation_steps", 8, 16),
    Row("resolution", "vision.image_pixels", "resolution", 512, 256, 262144, 65536),
    Row("lr", "train.learning_rate", "learning_rate", 1e-4, 1e-05),
    Row("scheduler", "train.scheduler", "lr_scheduler", "cosine", "linear"),
    Row("warmup", "train.warmup_steps", "lr_warmup_steps", 20, 5),
    Row("lora", "lora.rank", "rank", 16, 8),
    Row("max_steps", "train.max_steps", "max_train_steps", 1000, 10),
    Row("workers", "data.workers", "dataloader_num_workers", 4, 2),
    Row("save", "save.steps", "checkpointing_steps", 500, 100),
    Row("save", "save.limit", "checkpoints_total_limit", 3, 1),
    Row("clip", "train.max_grad_norm", "max_grad_norm", 1.0, 0.5),
    Row("amp", "train.amp", "mixed_precision", "bf16", "fp16"),
)
SWITCHES = (
    Row("optimizer", "optimizer.state_bits", "use_8bit_adam", True, False, 8, None),
    Row(
        "grad_checkpointing", "train.grad_checkpointing", "gradient_checkpointing", True, False
    )._replace(after=None),
    Row(
        "attention", "attention.impl", "enable_xformers_memory_efficient_attention", True, False
    )._replace(before="xformers", after=None),
)
VLLM = (
    Row("share", "serve.utilization", "gpu_memory_utilization", 0.9, 0.8),
    Row("seq_len", "serve.max_len", "max_model_len", 8192, 1024),
    Row("batch", "serve.max_seqs", "max_num_seqs", 64, 16),
    Row("batch", "serve.max_batched_tokens", "max_num_batched_tokens", 8192, 2048),
    Row("ranks", "serve.tensor_parallel", "tensor_parallel_size", 2, 4),
    Row("dtype", "train.base_dtype", "dtype", "bfloat16", "float16", "bf16", "fp16"),
    Row("quant", "quant.kind", "quantization", "awq", "fp8"),
    Row("graphs", "serve.eager", "enforce_eager", True, False, after=None),
)
SGLANG = (
    Row("share", "serve.static_fraction", "mem_fraction_static", 0.9, 0.8),
    Row("seq_len", "serve.max_len", "context_length", 8192, 1024),
    Row("batch", "serve.max_seqs", "max_running_requests", 64, 16),
    Row("batch", "serve.max_batched_tokens", "chunked_prefill_size", 8192, 2048),
    Row("ranks", "serve.tensor_parallel", "tp_size", 2, 4),
    Row("dtype", "train.base_dtype", "dtype", "bfloat16", "float16", "bf16", "fp16"),
    Row("quant", "quant.kind", "quantization", "awq", "fp8"),
    Row("graphs", "serve.eager", "disable_cuda_graph", True, False, after=None),
)
_LOADS, _ADDS = "FastLanguageModel.from_pretrained", "FastLanguageModel.get_peft_model"
UNSLOTH = (
    Row("seq_len", "train.seq_len", "max_seq_length", 4096, 1024, where=_LOADS),
    Row("quant", "quant.kind", "load_in_4bit", True, False, "bnb4", None, where=_LOADS),
    Row(
        "dtype", "train.base_dtype", "dtype", Raw("torch.bfloat16"), "float16", where=_LOADS
    )._replace(before="bf16", after="fp16"),
    Row("lora", "lora.rank", "r", 32, 8, where=_ADDS),
    *(row._replace(where=_ADDS) for row in ADAPTER if row.key in ("lora_alpha", "lora_dropout")),
    Row(
        "grad_checkpointing",
        "train.grad_checkpointing",
        "use_gradient_checkpointing",
        "unsloth",
        False,
    )._replace(before=True, after=False, where=_ADDS),
    *TRAINER[:6],
    TRL[1],
)
