"""Registry rows about correctness for lint: contradictory switches, dtypes, adapters, code."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, enum, text
from oomdoctor.facts.table_config import CONFIG, DTYPES, C

S = ("train-script",)
SCRIPT = "Give the training script beside the config"

ROWS = (
    boolean("precision.both_halves", "fp16 and bf16 are both switched on in one place."),
    text("impossible.rows", "Batch sizes and accumulation that no job can have, as written."),
    text("impossible.tokens", "Lengths that no row can have, as written."),
    text("impossible.ranks", "Numbers of processes or cards that no job can have, as written."),
    text("impossible.adapter", "Ranks that no adapter can have, as written."),
    text("impossible.share", "Shares outside of 0 to 1, as written."),
    text("impossible.rate", "Learning rates and decays that are no number or below 0, as written."),
    boolean("precision.fp8", "Training in fp8 is asked for.", obtain=CONFIG),
    boolean("precision.tf32_on", "TF32 matrix products: stated, or off as torch has it."),
    enum("train.trained_dtype", "Dtype of the weights that are trained (derived).", DTYPES),
    boolean("quant.both_bits", "load_in_8bit and load_in_4bit are both on in one place."),
    enum("quant.type", "Number format of bnb 4 bit.", ("fp4", "nf4")),
    enum("quant.compute_dtype", "Dtype of products with bnb 4-bit weights.", DTYPES),
    enum(
        "quant.storage",
        "Dtype of the tensors that hold bnb 4-bit weights.",
        ("uint8", "int8", "fp16", "bf16", "fp32", "fp64"),
        obtain=CONFIG,
    ),
    text("optimizer.args", "optim_args of the trainer.", obtain=CONFIG),
    text("model.architecture", "Architecture of the model by its name.", obtain=CONFIG),
    boolean("model.bf16_trained", "Its family was trained in bf16 and overflows fp16."),
    boolean("model.pad_token", "Its tokenizer comes with a pad token (by the model's name)."),
    text("lora.unmatched", "LoRA targets that no module of the architecture is called."),
    boolean("lora.token_indices", "trainable_token_indices is given.", closed_by=C),
    boolean("train.adds_tokens", "Tokens are added to the vocabulary.", obtain=CONFIG),
    boolean("train.reentrant", "Checkpointing is reentrant: stated, or by the framework's rule."),
    boolean(
        "dist.find_unused",
        "ddp_find_unused_parameters of the trainer.",
        obtain=CONFIG,
        closed_by=C,
    ),
    boolean("dist.static_graph", "ddp_static_graph is on.", closed_by=C),
    boolean(
        "dist.unsharded",
        "Neither FSDP nor ZeRO: stated, or nothing in a complete config speaks of them.",
        obtain="Give the launcher's config: oomdoctor lint --job train.py accelerate.yaml",
    ),
    boolean(
        "dist.plain_ddp",
        "Several ranks that each hold the whole model.",
        obtain="Give the launch command: oomdoctor lint --job train.py launch.sh",
    ),
    boolean("code.mlm", "DataCollatorForLanguageModeling masks words (mlm).", obtain=SCRIPT),
    boolean("code.adapter_api", "transformers' own add_adapter or load_adapter is called."),
    boolean("code.attaches_adapter", "The script attaches a PEFT adapter.", closed_by=S),
    boolean("code.wraps_peft", "get_peft_model wraps the model in the script.", closed_by=S),
    boolean("code.input_gradients", "Inputs are made to require gradients.", closed_by=S),
    boolean("code.pads", "The script pads batches with the tokenizer.", obtain=SCRIPT),
    boolean("code.sets_pad", "The script gives the tokenizer a pad token.", closed_by=S),
)
