"""More models: their shape by the published config.json, to be counted on the meta device.

SHAPED holds families of plain names; CONFIGURED, OTHERS, NEWER and SEEING whole configs of
families with their own.
Counts of GLM-4-32B, InternLM-20B, Llama-3.2-90B-Vision, Nemotron-Mini and StableLM-alpha-7B are
those of the built model: no published one was at hand.
"""

from __future__ import annotations

from more_configs import CONFIGURED, Row
from newer_configs import NEWER
from other_configs import OTHERS
from seeing_configs import SEEING

_KEYS = ("hidden", "intermediate", "layers", "heads", "kv_heads", "head_dim", "vocab")
# name: architecture, tied, parameters, values of _KEYS
_SHAPED: dict[str, tuple[str, bool, int, tuple[int, ...]]] = {
    "codellama/CodeLlama-7b-hf": (
        *("LlamaForCausalLM", False, 6738546688),
        (4096, 11008, 32, 32, 32, 128, 32016),
    ),
    "codellama/CodeLlama-13b-hf": (
        *("LlamaForCausalLM", False, 13016028160),
        (5120, 13824, 40, 40, 40, 128, 32016),
    ),
    "codellama/CodeLlama-34b-hf": (
        *("LlamaForCausalLM", False, 33743970304),
        (8192, 22016, 48, 64, 8, 128, 32000),
    ),
    "openlm-research/open_llama_3b_v2": (
        *("LlamaForCausalLM", False, 3426473600),
        (3200, 8640, 26, 32, 32, 100, 32000),
    ),
    "HuggingFaceTB/SmolLM2-360M": (
        *("LlamaForCausalLM", True, 361821120),
        (960, 2560, 32, 15, 5, 64, 49152),
    ),
    "mistralai/Ministral-8B-Instruct-2410": (
        *("MistralForCausalLM", False, 8019808256),
        (4096, 12288, 36, 32, 8, 128, 131072),
    ),
    "Qwen/Qwen1.5-0.5B": (
        *("Qwen2ForCausalLM", True, 463987712),
        (1024, 2816, 24, 16, 16, 64, 151936),
    ),
    "Qwen/Qwen1.5-1.8B": (
        *("Qwen2ForCausalLM", False, 1836828672),
        (2048, 5504, 24, 16, 16, 128, 151936),
    ),
    "Qwen/Qwen1.5-4B": (
        *("Qwen2ForCausalLM", False, 3950369280),
        (2560, 6912, 40, 20, 20, 128, 151936),
    ),
    "Qwen/Qwen1.5-72B": (
        *("Qwen2ForCausalLM", False, 72287920128),
        (8192, 24576, 80, 64, 64, 128, 152064),
    ),
    "codellama/CodeLlama-70b-hf": (
        *("LlamaForCausalLM", False, 68976910336),
        (8192, 28672, 80, 64, 8, 128, 32016),
    ),
    "huggyllama/llama-65b": (
        *("LlamaForCausalLM", False, 65285660672),
        (8192, 22016, 80, 64, 64, 128, 32000),
    ),
    "01-ai/Yi-9B": (
        *("LlamaForCausalLM", False, 8829407232),
        (4096, 11008, 48, 32, 4, 128, 64000),
    ),
    "deepseek-ai/deepseek-coder-1.3b-base": (
        *("LlamaForCausalLM", False, 1346471936),
        (2048, 5504, 24, 16, 16, 128, 32256),
    ),
    "deepseek-ai/deepseek-coder-6.7b-base": (
        *("LlamaForCausalLM", False, 6740512768),
        (4096, 11008, 32, 32, 32, 128, 32256),
    ),
    "deepseek-ai/deepseek-coder-33b-base": (
        *("LlamaForCausalLM", False, 33342991360),
        (7168, 19200, 62, 56, 8, 128, 32256),
    ),
    "mistralai/Codestral-22B-v0.1": (
        *("MistralForCausalLM", False, 22247282688),
        (6144, 16384, 56, 48, 8, 128, 32768),
    ),
    "bigcode/starcoder2-3b": (
        *("Starcoder2ForCausalLM", True, 3030371328),
        (3072, 12288, 30, 24, 2, 128, 49152),
    ),
    "bigcode/starcoder2-7b": (
        *("Starcoder2ForCausalLM", True, 7173923840),
        (4608, 18432, 32, 36, 4, 128, 49152),
    ),
    "EleutherAI/pythia-70m": (
        *("GPTNeoXForCausalLM", False, 70426624),
        (512, 2048, 6, 8, 8, 64, 50304),
    ),
    "EleutherAI/pythia-410m": (
        *("GPTNeoXForCausalLM", False, 405334016),
        (1024, 4096, 24, 16, 16, 64, 50304),
    ),
    "EleutherAI/pythia-1b": (
        *("GPTNeoXForCausalLM", False, 1011781632),
        (2048, 8192, 16, 8, 8, 256, 50304),
    ),
    "EleutherAI/pythia-160m": (
        *("GPTNeoXForCausalLM", False, 162322944),
        (768, 3072, 12, 12, 12, 64, 50304),
    ),
    "EleutherAI/pythia-1.4b": (
        *("GPTNeoXForCausalLM", False, 1414647808),
        (2048, 8192, 24, 16, 16, 128, 50304),
    ),
    "EleutherAI/pythia-2.8b": (
        *("GPTNeoXForCausalLM", False, 2775208960),
        (2560, 10240, 32, 32, 32, 80, 50304),
    ),
    "EleutherAI/pythia-12b": (
        *("GPTNeoXForCausalLM", False, 11846072320),
        (5120, 20480, 36, 40, 40, 128, 50688),
    ),
    "EleutherAI/gpt-neox-20b": (
        *("GPTNeoXForCausalLM", False, 20554567680),
        (6144, 24576, 44, 64, 64, 96, 50432),
    ),
    "stabilityai/stablelm-base-alpha-3b": (
        *("GPTNeoXForCausalLM", False, 3637321728),
        (4096, 16384, 16, 32, 32, 128, 50688),
    ),
    "stabilityai/stablelm-base-alpha-7b": (
        *("GPTNeoXForCausalLM", False, 7868755968),
        (6144, 24576, 16, 48, 48, 128, 50432),
    ),
    "microsoft/phi-1_5": (
        *("PhiForCausalLM", False, 1418270720),
        (2048, 8192, 24, 32, 32, 64, 51200),
    ),
    "HuggingFaceTB/SmolLM3-3B": (
        *("SmolLM3ForCausalLM", True, 3075098624),
        (2048, 11008, 36, 16, 4, 128, 128256),
    ),
    "allenai/Olmo-3-1025-7B": (
        *("Olmo3ForCausalLM", False, 7298011136),
        (4096, 11008, 32, 32, 32, 128, 100278),
    ),
    "ByteDance-Seed/Seed-OSS-36B-Instruct": (
        *("SeedOssForCausalLM", False, 36151104512),
        (5120, 27648, 64, 80, 8, 128, 155136),
    ),
    "THUDM/GLM-4-32B-0414": (
        *("Glm4ForCausalLM", False, 32566487552),
        (6144, 23040, 61, 48, 2, 128, 151552),
    ),
    "CohereForAI/c4ai-command-r7b-12-2024": (
        *("Cohere2ForCausalLM", True, 8028033024),
        (4096, 14336, 32, 32, 8, 128, 256000),
    ),
    "bigcode/starcoder2-15b": (
        *("Starcoder2ForCausalLM", False, 15957889024),
        (6144, 24576, 40, 48, 4, 128, 49152),
    ),
    "stabilityai/stablelm-2-1_6b": (
        *("StableLmForCausalLM", False, 1644515328),
        (2048, 5632, 24, 32, 32, 64, 100352),
    ),
    "nvidia/Nemotron-Mini-4B-Instruct": (
        *("NemotronForCausalLM", False, 4190509056),
        (3072, 9216, 32, 24, 8, 128, 256000),
    ),
    "internlm/internlm-20b": (
        *("LlamaForCausalLM", False, 20088714240),
        (5120, 13824, 60, 40, 40, 128, 103168),
    ),
    "internlm/internlm2-20b": (
        *("LlamaForCausalLM", False, 19861149696),
        (6144, 16384, 48, 48, 8, 128, 92544),
    ),
    "cerebras/Cerebras-GPT-111M": (
        *("GPT2LMHeadModel", True, 111050496),
        (768, 3072, 10, 12, 12, 64, 50257),
    ),
    "distilbert/distilgpt2": (
        *("GPT2LMHeadModel", True, 81912576),
        (768, 3072, 6, 12, 12, 64, 50257),
    ),
}
_MAX = {"cerebras/Cerebras-GPT-111M": 2048, "distilbert/distilgpt2": 1024}
_COUNTED: tuple[Row, ...] = (
    {
        "name": "FLUX.1 transformer",
        "architecture": "FluxTransformer2DModel",
        "kind": "diffusion",
        "params": 11_901_408_320,
    },
)
"""Models of which only the parameters are known here."""

MORE_ALIASES: dict[str, tuple[str, ...]] = {
    "FLUX.1 transformer": (
        *("black-forest-labs/FLUX.1-dev", "black-forest-labs/FLUX.1-schnell"),
        *("flux-dev", "flux-schnell"),
    ),
    "Qwen/Qwen3-4B": ("Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B-Thinking-2507"),
    "Qwen/Qwen3-30B-A3B": (
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "Qwen/Qwen3-30B-A3B-Thinking-2507",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    ),
    "Qwen/Qwen3-235B-A22B": ("Qwen/Qwen3-235B-A22B-Instruct-2507",),
    "mistralai/Mistral-Small-24B-Base-2501": (
        "mistralai/Magistral-Small-2506",
        "mistralai/Devstral-Small-2507",
    ),
    "mistralai/Mistral-7B-v0.1": (
        "alignment-handbook/mistral-7b-sft-constitutional-ai",
        "alignment-handbook/zephyr-7b-sft-full",
        "alignment-handbook/zephyr-7b-sft-qlora",
    ),
    "meta-llama/Llama-3.2-3B": ("deepcogito/cogito-v1-preview-llama-3B",),
    "Qwen/Qwen2.5-14B": ("deepcogito/cogito-v1-preview-qwen-14B",),
    "meta-llama/Llama-3.1-8B": ("neuralmagic/Sparse-Llama-3.1-8B-2of4",),
    "meta-llama/Llama-3.1-70B": ("meta-llama/Llama-3.3-70B-Instruct",),
    "Qwen/Qwen2.5-7B": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",),
    "deepseek-ai/DeepSeek-V2": ("deepseek-ai/DeepSeek-V2.5", "deepseek-ai/DeepSeek-Coder-V2-Base"),
    "mistralai/Mistral-Small-3.1-24B-Base-2503": (
        "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "mistralai/Magistral-Small-2509",
    ),
    "zai-org/GLM-4.6V-Flash": ("zai-org/GLM-4.1V-9B-Thinking",),
    "CohereForAI/aya-expanse-8b": ("CohereForAI/aya-23-8B",),
    "google-bert/bert-base-uncased": ("BAAI/bge-base-en-v1.5", "intfloat/e5-base-v2"),
    "google-bert/bert-large-uncased": (
        "BAAI/bge-large-en-v1.5",
        "intfloat/e5-large-v2",
        "mixedbread-ai/mxbai-embed-large-v1",
    ),
    "sentence-transformers/all-MiniLM-L12-v2": ("BAAI/bge-small-en-v1.5",),
    "FacebookAI/xlm-roberta-base": ("intfloat/multilingual-e5-base",),
    "FacebookAI/xlm-roberta-large": ("intfloat/multilingual-e5-large",),
    "google/vit-base-patch16-224": (
        "google/vit-base-patch16-224-in21k",
        "facebook/deit-base-patch16-224",
        "timm/vit_base_patch16_224",
    ),
    "google/gemma-7b": ("HuggingFaceH4/zephyr-7b-gemma-sft-v0.1",),
    "deepseek-ai/DeepSeek-V3": (
        "deepseek-ai/DeepSeek-V3-0324",
        "deepseek-ai/DeepSeek-V3.1",
        "deepseek-ai/DeepSeek-V3.1-Base",
    ),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": ("TinyLlama/TinyLlama_v1.1",),
    "HuggingFaceTB/SmolLM2-360M": ("HuggingFaceTB/SmolLM-360M",),
    "HuggingFaceTB/SmolLM3-3B": ("HuggingFaceTB/SmolLM3-3B-checkpoints",),
    "EleutherAI/pythia-1.4b": ("EleutherAI/pythia-1.4b-deduped",),
    "EleutherAI/pythia-12b": ("EleutherAI/pythia-12b-deduped",),
    "EleutherAI/pythia-6.9b": ("EleutherAI/pythia-6.9b-deduped",),
    "bigcode/octocoder": ("bigcode/starcoder",),
    "allenai/Olmo-3-1025-7B": ("allenai/Olmo-3-7B-Instruct-SFT", "allenai/Olmo-3-7B-Instruct"),
    "Qwen/Qwen-7B": ("Qwen/Qwen-7B-Chat",),
    "Qwen/Qwen1.5-1.8B": ("Qwen/Qwen-1_8B", "Qwen/Qwen-1.8B"),
    "Qwen/Qwen1.5-14B": ("Qwen/Qwen-14B",),
    "Qwen/Qwen1.5-72B": ("Qwen/Qwen-72B",),
    "bigscience/bloom-7b1": ("bigscience/bloomz-7b1",),
    "openai/gpt-oss-120b": ("unsloth/gpt-oss-120b-BF16",),
    "openai/gpt-oss-20b": ("unsloth/gpt-oss-20b-BF16",),
}


def more_rows() -> list[Row]:
    """Return the rows of these models for the table; `config` where a whole one stands here."""
    rows: list[Row] = [dict(row) for row in _COUNTED]
    for name, (architecture, tied, params, shape) in _SHAPED.items():
        row: Row = {"name": name, "architecture": architecture, "kind": "causal-lm", "tied": tied}
        row |= dict(zip(_KEYS, shape, strict=True))
        row |= {"params": params}
        rows.append(row | ({"max_positions": _MAX[name]} if name in _MAX else {}))
    for name, (architecture, kind, params, config) in (
        CONFIGURED | OTHERS | NEWER | SEEING
    ).items():
        row = {"name": name, "architecture": architecture, "kind": kind, "params": params}
        text = config.get("text_config", config)
        named = {
            "hidden": ("hidden_size", "d_model", "n_embd"),
            "intermediate": ("intermediate_size",),
            "layers": ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
            "heads": ("num_attention_heads", "n_heads", "n_head", "num_heads"),
            "kv_heads": ("num_key_value_heads",),
            "head_dim": ("head_dim",),
            "vocab": ("vocab_size",),
            "experts": ("num_local_experts",),
        }
        for key, names in named.items():
            found = [text[one] for one in names if one in text]
            row |= {key: found[0]} if found else {}
        rows.append({**row, "config": config})
    return rows
