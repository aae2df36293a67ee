"""What a config.json holds for each model of the table: `configs(rows)` for tools/make_tables.py.

Only what decides tensors is written; constants of a family come from its published config.json.
Models whose code is not in transformers get the library's own model of the same matrices where
there is one (TWINS says which).
"""

from __future__ import annotations

from typing import Any

from model_families import SPECIAL, Row, plain
from model_vision import VISION

# Models whose own code is remote, and the library's model of equal matrices.
TWINS = {
    "Qwen/Qwen-7B": "Qwen2",
    "THUDM/chatglm2-6b": "Glm",
    "THUDM/glm-4-9b": "Glm",
    "baichuan-inc/Baichuan2-7B-Base": "Llama",
    "baichuan-inc/Baichuan-13B-Chat": "Llama",
    "baichuan-inc/Baichuan2-13B-Chat": "Llama",
    "internlm/internlm-7b": "Llama",
    "internlm/internlm2-7b": "Llama",
    "internlm/internlm-20b": "Llama",
    "internlm/internlm2-20b": "Llama",
}
_SHAPES: dict[str, tuple[int, ...]] = {  # hidden, width, layers, heads, key/value heads, vocabulary
    "Qwen/Qwen1.5-7B": (4096, 11008, 32, 32, 32, 151936),
    "Qwen/Qwen1.5-14B": (5120, 13696, 40, 40, 40, 152064),
    "Qwen/Qwen-7B": (4096, 11008, 32, 32, 32, 151936),
    "THUDM/chatglm2-6b": (4096, 13696, 28, 32, 2, 65024),
    "THUDM/glm-4-9b": (4096, 13696, 40, 32, 2, 151552),
    "01-ai/Yi-6B": (4096, 11008, 32, 32, 4, 64000),
    "01-ai/Yi-34B": (7168, 20480, 60, 56, 8, 64000),
    "baichuan-inc/Baichuan2-7B-Base": (4096, 11008, 32, 32, 32, 125696),
    "baichuan-inc/Baichuan-13B-Chat": (5120, 13696, 40, 40, 40, 64000),
    "baichuan-inc/Baichuan2-13B-Chat": (5120, 13696, 40, 40, 40, 125696),
    "internlm/internlm-7b": (4096, 11008, 32, 32, 32, 103168),
    "internlm/internlm2-7b": (4096, 14336, 32, 32, 8, 92544),
    "huggyllama/llama-30b": (6656, 17920, 60, 52, 52, 32000),
    "Qwen/Qwen2-VL-2B-Instruct": (1536, 8960, 28, 12, 2, 151936),
    "Qwen/Qwen2-VL-7B-Instruct": (3584, 18944, 28, 28, 4, 152064),
    "Qwen/Qwen2.5-VL-3B-Instruct": (2048, 11008, 36, 16, 2, 151936),
    "Qwen/Qwen2.5-VL-7B-Instruct": (3584, 18944, 28, 28, 4, 152064),
    "llava-hf/llava-1.5-7b-hf": (4096, 11008, 32, 32, 32, 32064),
    "distilbert/distilbert-base-uncased": (768, 3072, 6, 12, 12, 30522),
}
_NAMES = ("hidden", "intermediate", "layers", "heads", "kv_heads", "vocab")
_TIED_VL = ("Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2.5-VL-3B-Instruct")
_PLAIN = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Phi3ForCausalLM": "phi3",
    "PhiForCausalLM": "phi",
    "MixtralForCausalLM": "mixtral",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "GPTNeoXForCausalLM": "gpt_neox",
    "BertModel": "bert",
    "RobertaModel": "roberta",
    "DebertaV2Model": "deberta-v2",
    "ViTForImageClassification": "vit",
    "SmolLM3ForCausalLM": "smollm3",
    "Olmo3ForCausalLM": "olmo3",
    "SeedOssForCausalLM": "seed_oss",
    "Glm4ForCausalLM": "glm4",
    "Cohere2ForCausalLM": "cohere2",
    "Starcoder2ForCausalLM": "starcoder2",
    "StableLmForCausalLM": "stablelm",
    "NemotronForCausalLM": "nemotron",
    "Glm": "glm",
    "Llama": "llama",
    "Qwen2": "qwen2",
}


def completed(rows: list[Row]) -> list[Row]:
    """Return the rows with the shapes that only stand here."""
    made = []
    for row in rows:
        shape = dict(zip(_NAMES, _SHAPES.get(row["name"], ()), strict=False))
        if shape:
            shape["head_dim"] = shape["hidden"] // shape["heads"]
        more = {key: value for key, value in shape.items() if key not in row}
        if row["name"] in _SHAPES and "tied" not in row:
            more["tied"] = row["name"] in (*_TIED_VL, "distilbert/distilbert-base-uncased")
        made.append({**row, **more})
    return made


_COUNTED = frozenset(("FluxTransformer2DModel",))
"""Only the parameters of these are known here."""


def configs(rows: list[Row]) -> dict[str, Row]:
    """Return the config of each model of the table, by name."""
    return {row["name"]: _config(row) for row in rows if row["architecture"] not in _COUNTED}


def _config(row: Row) -> Row:
    architecture = TWINS.get(row["name"], row["architecture"])
    if "config" in row:
        return _without_none({"architectures": [row["architecture"]], **row["config"]})
    special = {**SPECIAL, **VISION}.get(architecture)
    made = special(row) if special is not None else plain(row, _PLAIN[architecture])
    if "library" not in made and row["name"] not in TWINS:
        made = {"architectures": [row["architecture"]], **made}
    return _without_none(made)


def _without_none(value: Any) -> Any:  # noqa: ANN401 - a tree of JSON values
    """Drop what is absent; MLA without a query rank is said so, since its family has a default."""
    if not isinstance(value, dict):
        return value
    return {
        key: _without_none(inner)
        for key, inner in value.items()
        if inner is not None or key == "q_lora_rank"
    }
