"""Which package a frame's file belongs to, and whether that is a library or the user's code."""

from __future__ import annotations

import re
from functools import cache

_NAMES = """
    torch torchvision torchaudio transformers trl peft accelerate deepspeed bitsandbytes datasets
    diffusers vllm sglang lmdeploy text_generation_server lightning pytorch_lightning
    lightning_fabric axolotl llamafactory llmtuner unsloth unsloth_zoo torchtune torchtitan megatron
    transformer_engine apex fairscale fairseq flash_attn xformers triton liger_kernel
    cut_cross_entropy auto_gptq gptqmodel awq optimum sentence_transformers setfit timm
    torchmetrics mmcv mmengine mmdet mmseg mmcls mmpose mmdet3d mmpretrain detectron2 ultralytics
    segment_anything monai nemo nemo_automodel colossalai composer llmfoundry ray verl openrlhf
    slime swift xtuner fla mamba_ssm causal_conv1d safetensors huggingface_hub tensorflow keras jax
    jaxlib flax optax paddle onnxruntime tensorrt tensorrt_llm llama_cpp ctranslate2 faster_whisper
    whisper einops torch_geometric dgl torch_scatter pytorch3d nerfstudio gsplat kornia
    open_clip lm_eval langchain gradio comfy invokeai numpy scipy pandas sklearn cupy cudf
    gluonts pytorch_forecasting stable_baselines3 ignite catalyst fastai allennlp espnet speechbrain
    hydra wandb tensorboard multiprocess cloudpickle bitblas hqq quanto torchao galore_torch
"""
KNOWN = frozenset(_NAMES.split())
_STANDARD = re.compile(r"[/\\]lib(?:64)?[/\\]python3(?:\.\d+)?[/\\](?!site-packages|dist-packages)")
_FOLDERS = frozenset({"src", "tools", "scripts", "examples", "experiments", "tests", "code", "app"})


@cache
def library_of(path: str) -> str | None:
    """Return the top-level package of a file: `torch`, `python` (standard library), or None.

    A relative path such as `transformers/trainer.py` is read as cut from `site-packages`.
    """
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    installed = [at for at, part in enumerate(parts) if part in ("site-packages", "dist-packages")]
    if installed and installed[-1] + 1 < len(parts):
        return parts[installed[-1] + 1].removesuffix(".py").partition("-")[0]
    if _STANDARD.search(path) or path.startswith("<frozen"):
        return "python"
    for part in parts[:-1]:
        if part in KNOWN:
            return part
    is_relative = not path.startswith(("/", "~", ".", "<", "\\")) and path[1:2] != ":"
    if is_relative and len(parts) > 1 and parts[0] not in _FOLDERS and parts[0].isidentifier():
        return parts[0]
    return None


@cache
def is_installed(path: str) -> bool:
    """Say whether a file belongs to an installed library, as far as its path shows."""
    if "site-packages" in path or "dist-packages" in path or path.startswith("<frozen"):
        return True
    library = library_of(path)
    return library == "python" or library in KNOWN
