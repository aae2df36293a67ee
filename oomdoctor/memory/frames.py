"""What the failing frame says about the tensor that it asked for.

torch/nn/functional.py  cross_entropy  ->  loss       (fp32 logits)
torch/nn/modules/linear.py  F.linear   ->  linear     (output of a projection)
torch/optim/adam.py  zeros_like        ->  optimizer  (a state of one weight)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook

OPEN = 0.6
AGAINST = 0.15
HINTS = (
    (
        "loss",
        (
            "cross_entropy",
            "crossentropy",
            "log_softmax",
            "nll_loss",
            "logsumexp",
            "loss_function",
            "causallmloss",
            "logits.float()",
            "logits = logits.to(torch.float32)",
            "upcast_logits",
            "loss_utils.py",
            "modules/loss.py",
        ),
    ),
    (
        "attention",
        (
            "scaled_dot_product",
            "attn_weights",
            "attention_scores",
            "attention_probs",
            "baddbmm",
            "torch.matmul(query",
            "q @ k",
            "causal_mask",
            "attention_mask",
        ),
    ),
    (
        "optimizer",
        ("exp_avg", "torch/optim/", "bitsandbytes/optim", "adamw", "_foreach", "adam.py"),
    ),
    ("kv", ("cache_utils", "key_cache", "past_key_value", "key_states, value_states", "kv_cache")),
    ("mlp", ("act_fn", "gate_proj", "up_proj", "down_proj", "silu", "gelu", "swiglu")),
    ("linear", ("f.linear", "modules/linear.py", "lm_head", "addmm", "matmul4bit", "nn/linear")),
    ("hidden", ("rmsnorm", "rms_norm", "layernorm", "layer_norm", "f.embedding", "dropout")),
    (
        "weight",
        ("from_pretrained", "load_state_dict", "safetensors", "_apply", "convert", "_load_"),
    ),
)
_FACTORS = {
    "loss": {"logits": 1.0},
    "linear": {"logits": 1.0, "mlp": 1.0, "hidden": 1.0, "kv": 1.0, "weight": 0.3},
    "attention": {"attention": 1.0, "hidden": 0.7, "kv": 0.7},
    "optimizer": {"optimizer": 1.0, "weight": 0.8},
    "kv": {"kv": 1.0, "hidden": 0.5},
    "mlp": {"mlp": 1.0, "hidden": 0.6},
    "hidden": {"hidden": 1.0, "mlp": 0.6},
    "weight": {"weight": 1.0, "optimizer": 0.5},
}
_PHASES = {"optimizer": "optimizer", "load": "weight", "loss": "loss"}
_FULL_PRECISION_LOSS = 0.6
_CALLERS = 4


def hint(book: FactBook) -> str | None:
    """Return the kind of work that the failing frame, its operator or the phase names."""
    for text in _texts(book):
        low = text.lower()
        for name, words in HINTS:
            if any(word in low for word in words):
                return name
    phase = book.value("run.phase")
    return _PHASES.get(phase) if isinstance(phase, str) else None


def _texts(book: FactBook) -> Iterator[str]:
    """Yield what is known of the frame, nearest to the allocation first."""
    for key in ("trace.code", "trace.function", "run.operator", "trace.frame", "trace.file"):
        value = book.value(key)
        if isinstance(value, str):
            yield value


def heads_output(book: FactBook) -> bool | None:
    """Say whether the projection is the head: the callers name it, or name another one."""
    stack = book.value("trace.stack")
    if not isinstance(stack, str):
        return None
    callers = " ".join(stack.splitlines()[-_CALLERS:]).lower()
    if any(word in callers for word in ("lm_head", "embed_out", "output_layer")):
        return True
    named = ("gate_proj", "up_proj", "down_proj", "q_proj", "k_proj", "v_proj", "o_proj", "fc1")
    return False if any(word in callers for word in named) else None


def factor(name: str | None, family: str, element: int, *, head: bool | None = None) -> float:
    """Return what the frame makes of a match: 1 agrees, 0.6 says nothing, 0.15 disagrees."""
    if name is None:
        return OPEN
    value = _FACTORS[name].get(family, AGAINST)
    if name == "loss" and element != 4:
        value = min(value, _FULL_PRECISION_LOSS)
    if name == "linear" and head is not None and (family == "logits") is not head:
        value = min(value, AGAINST)
    return value
