"""Registry rows for lint: schedule, batches and who names them, packing, adapters, ranks."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, text
from oomdoctor.facts.table_config import CONFIG, C

ROWS = (
    text("job.arguments", "Settings that a trainer is given: no variables of a script (derived)."),
    ratio("train.learning_rate", "Learning rate at its peak.", obtain=CONFIG, closed_by=C),
    text("train.scheduler", "Learning-rate schedule by name, lower case.", closed_by=C),
    ratio("train.warmup_steps", "Steps of warm-up; below 1 a share of all steps.", closed_by=C),
    ratio("train.warmup_ratio", "Warm-up as a share of all steps.", closed_by=C),
    boolean("train.warmup", "The config asks for a warm-up of more than 0 steps (derived)."),
    ratio(
        "train.max_grad_norm", "Norm that gradients are clipped to; 0: no clipping.", closed_by=C
    ),
    boolean("train.auto_batch", "auto_find_batch_size: the batch shrinks after a failure."),
    boolean("train.padding_free", "Rows are put end to end without padding.", closed_by=C),
    text("train.packing_strategy", "How samples are packed, by name.", closed_by=C),
    count("train.pad_multiple", "Rows are padded to a multiple of so many tokens.", closed_by=C),
    count("train.rank_rows", "Rows of one rank per optimizer step: rows x accumulation (derived)."),
    boolean("data.streaming", "The data set is streamed, and prepared while training runs."),
    boolean("save.load_best", "The best checkpoint is loaded at the end."),
    enum("save.strategy", "When checkpoints are saved.", ("no", "steps", "epoch", "best")),
    ratio("save.steps", "Steps between checkpoints; below 1 a share of all steps."),
    ratio("eval.steps", "Steps between evaluations; below 1 a share of all steps."),
    boolean("save.best_unmatched", "Saving and evaluation do not meet, so no best is known."),
    boolean("lora.rslora", "Rank-stabilised scaling: alpha / sqrt(rank).", closed_by=C),
    ratio("lora.scale", "Factor of the adapter's output: alpha / rank (derived)."),
    boolean("lora.attention_only", "Adapters stand on attention projections alone (derived)."),
    boolean("lora.supervised", "An adapter is trained on given texts: no preferences, no rewards."),
    boolean("model.vocab_aligned", "The vocabulary is a multiple of 64 (derived)."),
    count("dist.tensor_ranks", "Ranks that share one layer (tensor parallelism)."),
    count("dist.context_ranks", "Ranks that share one row (context or ring parallelism)."),
    count("dist.sequence_ranks", "Ranks that share one row (sequence parallelism)."),
    count("dist.pipeline_ranks", "Ranks that share the layers (pipeline parallelism)."),
    count("dist.model_ranks", "Ranks that work on the same rows (derived)."),
    count("dist.data_ranks", "Ranks that work on different rows (derived).", obtain=CONFIG),
    boolean("dist.fsdp_asked", "The trainer's own arguments switch FSDP on."),
    boolean("dist.deepspeed_asked", "The trainer's own arguments name a DeepSpeed config."),
    boolean("dist.fsdp_checkpointing", "FSDP's own activation checkpointing is on."),
    count("trainer.micro_batch", "Rows per device, by the trainer's own argument."),
    count("trainer.grad_accum", "Accumulation steps, by the trainer's own argument."),
    count("deepspeed.micro_batch", "Rows per device, by the DeepSpeed config."),
    count("deepspeed.grad_accum", "Accumulation steps, by the DeepSpeed config."),
    count("deepspeed.train_batch", "Rows per step over all ranks, by the DeepSpeed config."),
    boolean("deepspeed.batch_unmatched", "DeepSpeed config and trainer name different batches."),
)
