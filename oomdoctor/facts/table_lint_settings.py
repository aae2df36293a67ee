"""Registry rows of settings that rules about correctness, keys and speed read."""

from __future__ import annotations

from oomdoctor.facts.spec import count, ratio, text

ROWS = (
    ratio("train.weight_decay", "Weight decay."),
    ratio("train.label_smoothing", "Label smoothing."),
    ratio("lora.dropout", "Dropout of the adapter."),
    count("save.limit", "Checkpoints that are kept.", closed_by=("train-config",)),
    text(
        "job.open",
        "Facts that a setting states by an expression which was not evaluated, one key per line.",
    ),
    text(
        "job.calls",
        "Names that a script imports, defines and calls, one per line in their order:"
        " `import trl.SFTConfig`, `def collate`, `class Data(Dataset)`, `call model.generate`.",
    ),
)
