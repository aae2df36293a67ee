"""Registry rows of settings that rules about correctness, keys and speed read."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, text

CONFIG = "Give the training config or command line: oomdoctor lint FILE"

ROWS = (
    ratio("train.lr", "Learning rate.", obtain=CONFIG),
    text("train.scheduler", "Learning rate scheduler, as it is written.", obtain=CONFIG),
    count("train.warmup_steps", "Warm-up steps.", obtain=CONFIG),
    ratio("train.warmup_ratio", "Warm-up as a share of all steps.", obtain=CONFIG),
    ratio("train.max_grad_norm", "Norm at which gradients are clipped."),
    ratio("train.weight_decay", "Weight decay."),
    ratio("train.label_smoothing", "Label smoothing."),
    ratio("lora.dropout", "Dropout of the adapter."),
    boolean("lora.rslora", "Adapters are scaled by alpha / sqrt(rank)."),
    count("eval.steps", "Steps between evaluations."),
    enum("save.strategy", "When checkpoints are written.", ("no", "steps", "epoch", "best")),
    count("save.steps", "Steps between checkpoints."),
    count("save.limit", "Checkpoints that are kept."),
    text(
        "job.calls",
        "Names that a script imports, defines and calls, one per line in their order:"
        " `import trl.SFTConfig`, `def collate`, `class Data(Dataset)`, `call model.generate`.",
    ),
)
