"""Models whose published parameter count is known but whose shape was not counted here.

Counts are those of the model cards and of torchvision's documentation; ALIASES are short names
under which people write the listed models.
"""

from __future__ import annotations

# name: (architecture, kind, parameters, other names)
PUBLISHED: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "Qwen/Qwen1.5-7B": ("Qwen2ForCausalLM", "causal-lm", 7_721_324_544, ()),
    "Qwen/Qwen1.5-14B": ("Qwen2ForCausalLM", "causal-lm", 14_167_290_880, ()),
    "Qwen/Qwen-7B": ("QWenLMHeadModel", "causal-lm", 7_721_324_544, ()),
    "THUDM/chatglm2-6b": ("ChatGLMModel", "causal-lm", 6_243_584_000, ("THUDM/chatglm3-6b",)),
    "THUDM/glm-4-9b": ("ChatGLMModel", "causal-lm", 9_399_951_360, ("glm4-9b",)),
    "01-ai/Yi-6B": ("LlamaForCausalLM", "causal-lm", 6_061_035_520, ()),
    "01-ai/Yi-34B": ("LlamaForCausalLM", "causal-lm", 34_388_917_248, ()),
    "baichuan-inc/Baichuan2-7B-Base": ("BaichuanForCausalLM", "causal-lm", 7_505_973_248, ()),
    "baichuan-inc/Baichuan-13B-Chat": (
        "BaichuanForCausalLM",
        "causal-lm",
        13_264_901_120,
        ("baichuan-inc/Baichuan-13B-Base",),
    ),
    "baichuan-inc/Baichuan2-13B-Chat": (
        "BaichuanForCausalLM",
        "causal-lm",
        13_896_668_160,
        ("baichuan-inc/Baichuan2-13B-Base",),
    ),
    "internlm/internlm-7b": (
        "InternLMForCausalLM",
        "causal-lm",
        7_321_948_160,
        ("internlm/internlm-chat-7b",),
    ),
    "internlm/internlm2-7b": ("InternLM2ForCausalLM", "causal-lm", 7_737_708_544, ()),
    "huggyllama/llama-30b": ("LlamaForCausalLM", "causal-lm", 32_528_943_616, ()),
    "Qwen/Qwen2-VL-2B-Instruct": ("Qwen2VLForConditionalGeneration", "vlm", 2_208_985_600, ()),
    "Qwen/Qwen2-VL-7B-Instruct": ("Qwen2VLForConditionalGeneration", "vlm", 8_291_375_616, ()),
    "Qwen/Qwen2.5-VL-3B-Instruct": (
        "Qwen2_5_VLForConditionalGeneration",
        "vlm",
        3_754_622_976,
        (),
    ),
    "Qwen/Qwen2.5-VL-7B-Instruct": (
        "Qwen2_5_VLForConditionalGeneration",
        "vlm",
        8_292_166_656,
        (),
    ),
    "llava-hf/llava-1.5-7b-hf": (
        "LlavaForConditionalGeneration",
        "vlm",
        7_063_427_072,
        ("liuhaotian/llava-v1.5-7b",),
    ),
    "distilbert/distilbert-base-uncased": ("DistilBertModel", "encoder", 66_362_880, ()),
    "resnet18": ("ResNet", "vision", 11_689_512, ()),
    "resnet34": ("ResNet", "vision", 21_797_672, ()),
    "resnet50": ("ResNet", "vision", 25_557_032, ("microsoft/resnet-50",)),
    "resnet101": ("ResNet", "vision", 44_549_160, ("microsoft/resnet-101",)),
    "resnet152": ("ResNet", "vision", 60_192_808, ()),
    "vgg16": ("VGG", "vision", 138_357_544, ()),
}
ALIASES: dict[str, tuple[str, ...]] = {
    "google/vit-base-patch16-224": ("vit-base", "vit-b-16"),
    "google/vit-large-patch16-224": ("vit-large", "vit-l-16"),
    "google-bert/bert-base-uncased": ("bert-base", "google-bert/bert-base-cased"),
    "google-bert/bert-large-uncased": ("bert-large", "google-bert/bert-large-cased"),
    "meta-llama/Llama-2-7b-hf": ("vicuna-7b", "llama-7b"),
    "meta-llama/Llama-2-13b-hf": ("vicuna-13b", "llama-13b"),
    "mistralai/Mistral-7B-v0.1": ("mistral-7b",),
    "stable-diffusion-v1-5 UNet": (
        "runwayml/stable-diffusion-v1-5",
        "CompVis/stable-diffusion-v1-4",
    ),
    "stable-diffusion-xl-base-1.0 UNet": ("stabilityai/stable-diffusion-xl-base-1.0", "sdxl"),
}
