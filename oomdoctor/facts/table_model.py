"""Registry rows of the model and of the physics derived from it and the job."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size, text

CONFIG = "Give the model's config.json, or its name in the config"

ROWS = (
    text("model.name", "Name or path of the model.", obtain=CONFIG),
    enum(
        "model.kind",
        "Kind of model.",
        ("causal-lm", "seq2seq", "encoder", "vlm", "diffusion", "vision", "speech", "other"),
    ),
    count("model.params", "Parameters.", obtain="model.num_parameters()"),
    count("model.params_printed", "Parameters as the program prints them, perhaps of one rank."),
    count("model.layers", "Layers."),
    count("model.hidden", "Hidden size."),
    count("model.heads", "Attention heads."),
    count("model.kv_heads", "Key/value heads."),
    count("model.head_dim", "Size of a head."),
    count("model.intermediate", "Feed-forward width."),
    count("model.vocab", "Vocabulary (rows of the head).", obtain=CONFIG),
    boolean("model.tied", "Embedding and head share weights."),
    count("model.max_positions", "Longest context of the model."),
    enum(
        "model.positions",
        "How tokens get their position; absolute ones that ignore the mask shift under padding.",
        ("absolute", "rope", "alibi", "relative"),
    ),
    count("model.experts", "Experts per mixture-of-experts layer."),
    count("model.moe_intermediate", "Feed-forward width of one expert."),
    enum("model.dtype", "Dtype of the checkpoint.", ("fp32", "fp16", "bf16", "fp8", "int8")),
    size("states.weights", "Weights on the device by dtype and quantisation (formula)."),
    size("states.gradients", "Gradients of trainable parameters (formula)."),
    size("states.optimizer", "Optimizer states (formula)."),
    size("states.total", "Weights + gradients + states per device after sharding (formula)."),
    size("states.static_high", "Upper bound of weights + gradients + states (everything fp32)."),
    size("states.static_low", "Lower bound of weights + gradients + states."),
    ratio("states.weights_share", "states.weights as a share of the card."),
    size("states.load_weights", "Weights on the device while they are read (formula)."),
    ratio("states.load_share", "states.load_weights as a share of the card."),
    ratio("states.total_share", "states.total as a share of the card."),
    ratio("states.static_high_share", "states.static_high as a share of the allocated bytes."),
    ratio(
        "states.least_full_share",
        "8 bytes per parameter of a full, unsharded training as a share of the card at most.",
    ),
    ratio(
        "states.rest_share",
        "Share of the allocated bytes that weights, gradients and states cannot explain.",
    ),
    size("activations.estimate", "Saved activations of one step (formula)."),
    size("logits.one_copy", "Rows x tokens x vocabulary x 4 bytes: one fp32 copy (formula)."),
    size("logits.peak", "12.1 x rows x tokens x vocabulary bytes: peak of the plain loss path."),
    ratio("logits.peak_share", "logits.peak as a share of the card."),
    size("attention.scores", "Rows x heads x tokens^2 x 2 bytes: one 16-bit score matrix."),
    ratio("attention.scores_to_request", "attention.scores as a share of the request."),
    size("overheads.ddp_buckets", "DDP buckets: as large as the trainable gradients (formula)."),
    size("overheads.optimizer_step", "Temporaries of a foreach optimizer step (formula)."),
    size("overheads.kbit_upcast", "Embeddings and head cast to fp32 by the k-bit preparation."),
    size("kv.total", "2 x layers x tokens x kv heads x head size x 2 bytes (formula)."),
    boolean("fingerprint.logits", "The request matches a product with the vocabulary."),
    boolean("fingerprint.logits_fp32", "The match is a 4-byte copy."),
    boolean("fingerprint.attention", "It matches batch x heads x tokens^2."),
    boolean("fingerprint.weight", "It matches one weight matrix of the model."),
    boolean("fingerprint.mlp", "It matches rows x tokens x intermediate."),
    boolean("fingerprint.hidden", "It matches rows x tokens x hidden."),
    boolean("fingerprint.kv", "It matches a key/value cache."),
    boolean("fingerprint.optimizer", "It matches an optimizer state of one weight."),
    boolean("fingerprint.flat_model", "It matches all parameters of the model in one flat tensor."),
    boolean("fingerprint.columns", "It matches the columns a convolution unfolds its input to."),
    boolean(
        "fingerprint.flat_copy",
        "It is 4 bytes for each trained parameter: one flat fp32 copy of all of them.",
    ),
    text("fingerprint.best", "Expression of the best match."),
)
