"""Registry rows that only a job's description needs: what an estimate asks and no rule reads."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, text
from oomdoctor.facts.table_config import CONFIG, C

ROWS = (
    text("model.config", "The network's config.json, as JSON.", obtain=CONFIG),
    count("model.labels", "Classes of a classifier's head.", obtain=CONFIG),
    text("lora.layers", "Numbers of the layers that the adapter stands on.", closed_by=C),
    enum(
        "lora.kind",
        "Kind of adapter.",
        ("lora", "oft", "ia3", "prompt", "other"),
        obtain=CONFIG,
    ),
    count("optimizer.rank", "Rank of projected gradients (GaLore, APOLLO).", closed_by=C),
    enum(
        "optimizer.kind",
        "Implementation of torch's optimizer.",
        ("foreach", "fused", "for-loop"),
        obtain=CONFIG,
    ),
    count("train.target_len", "Tokens of the longest target of an encoder-decoder.", closed_by=C),
    boolean("train.ema", "A moving average of the weights is kept.", closed_by=C),
    boolean(
        "train.offloads_activations",
        "What is kept for backward moves to main memory.",
        obtain=CONFIG,
        closed_by=C,
    ),
    boolean("train.frozen_layers", "Only some layers of the base are trained.", closed_by=C),
    enum(
        "train.variant",
        "Method of its own among those of one task.",
        ("orpo", "simpo", "cpo", "ipo", "rloo"),
        closed_by=C,
    ),
    count("loss.chunk", "Tokens or chunks of a loss that works in chunks.", closed_by=C),
    count("gen.batch", "Prompts that are answered at once.", obtain=CONFIG),
    count("gen.prompt", "Tokens of the longest prompt.", obtain=CONFIG),
    count("gen.returns", "Answers for each prompt."),
    boolean("gen.caches", "Generation keeps keys and values."),
    boolean("dist.prefetches", "FSDP1 gathers the next weights ahead in backward.", closed_by=C),
    boolean("dist.reshards", "FSDP frees gathered weights after forward.", closed_by=C),
    count("dist.bucket_mib", "Size of DDP's buckets in MiB.", closed_by=C),
)
