"""Registry rows about memory for lint: how weights are loaded, the parts of the peak."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size
from oomdoctor.facts.table_config import CONFIG, DTYPES, C

CARD = "Name the card: oomdoctor lint FILE --gpu 'RTX 4090'"

ROWS = (
    size(
        "gpu.nominal",
        "Memory of the card as stated, or what cards of its name usually come with.",
        obtain=CARD,
        cost_s=2,
    ),
    enum("load.dtype", "Dtype of the loaded base: stated, or by the framework's rule.", DTYPES),
    enum(
        "load.default_of",
        "Library whose default decides the dtype, where none is given.",
        ("transformers", "trl"),
    ),
    boolean("load.by_name", "The trainer is given the model's name and loads it by itself."),
    boolean(
        "load.split",
        "Weights are split over cards or partly kept off them, so that no card holds all of them.",
        obtain="Say how it is launched: --fact dist.world_size=1, or give the launcher's file",
    ),
    size("part.weights", "Weights of the base on one card (formula)."),
    size("part.adapters", "Weights that an adapter adds, whole copied modules included (formula)."),
    size("part.optimizer", "Optimizer states on one card (formula)."),
    size("part.gradients", "Gradients on one card (formula)."),
    size("part.activations", "Activations kept for backward (formula)."),
    size("part.logits", "Logits and the loss over them at their peak (formula)."),
    size("part.context", "CUDA context of one process and libraries' workspaces (formula)."),
    size("part.states", "Weights, adapters, gradients and optimizer states on one card (formula)."),
    size("peak.formula", "Sum of the six parts on one card (formula)."),
    ratio("peak.share", "peak.formula as a share of the card."),
    ratio("part.weights_share", "part.weights as a share of the card."),
    ratio("part.states_share", "part.states as a share of the card."),
    ratio("part.optimizer_share", "part.optimizer as a share of the card."),
    ratio("part.gradients_share", "part.gradients as a share of the card."),
    ratio("part.logits_share", "part.logits as a share of the card."),
    size("activations.plain", "What activations would take without checkpointing (formula)."),
    size("activations.checkpointed", "What they would take with full checkpointing (formula)."),
    ratio("activations.plain_share", "activations.plain as a share of the card."),
    size("attention.eager", "6 x rows x heads x tokens^2 bytes, times the layers that keep them."),
    ratio("attention.eager_share", "attention.eager as a share of the card."),
    size("attention.maps", "4 x layers x rows x heads x tokens^2 bytes: all returned score maps."),
    size("attention.mask", "Rows x tokens^2 bytes: a dense mask of packed rows, 1 byte per pair."),
    size("lora.saved_bytes", "Copies, gradients and states of whole modules beside the adapter."),
    ratio("lora.saved_share", "lora.saved_bytes as a share of the card."),
    size("lora.states", "Adapters with gradients and states: 16 bytes per value (formula)."),
    ratio("lora.states_share", "lora.states as a share of the card."),
    size("lora.dora_delta", "Largest DoRA delta of a layer: outputs x inputs x 4 bytes (formula)."),
    ratio("overheads.kbit_share", "overheads.kbit_upcast as a share of the card."),
    size("quant.double_saves", "What double quantisation would save on the linears (formula)."),
    boolean("train.batch_unset", "Nothing sets the rows per device, so the library's 8 are used."),
    boolean("optimizer.foreach", "The step holds temporaries as large as the gradients."),
    boolean("eval.uses_cache", "Evaluation builds a key/value cache for each batch."),
    boolean("eval.keeps_much", "Logits of the whole evaluation set would fill much of the card."),
    count("data.eval_rows", "Rows of the evaluation set.", obtain=CONFIG),
    size("eval.batch_logits", "Logits of one evaluation batch: 10 bytes per value (formula)."),
    ratio("eval.batch_logits_share", "eval.batch_logits as a share of the card."),
    size("eval.kept_logits", "Logits of the whole evaluation set: 4 bytes per value (formula)."),
    ratio("eval.kept_share", "eval.kept_logits as a share of the card."),
    ratio("eval.kept_host_share", "eval.kept_logits as a share of main memory."),
    size("eval.kv_cache", "Key/value cache of one evaluation batch (formula)."),
    enum(
        "train.padding",
        "How rows of a batch are padded.",
        ("max_length", "longest", "none"),
        obtain=CONFIG,
    ),
    boolean("train.group_by_length", "Rows of like length are batched together.", closed_by=C),
    boolean("model.output_attentions", "Score maps of every layer are returned.", obtain=CONFIG),
    boolean("model.output_hidden", "Hidden states of every layer are returned.", obtain=CONFIG),
    boolean("code.unfreezes_base", "After get_peft_model every parameter is set to be trained."),
)
