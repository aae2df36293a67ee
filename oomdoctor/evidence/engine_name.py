"""Which inference engine writes the log, whether ggml works in it, which buffer failed.

    alloc_tensor_range: failed to allocate CUDA0 buffer of size 9279602688           weights
    llama_kv_cache_init: failed to allocate buffer for kv cache                      cache
    graph_reserve: failed to allocate compute buffers                                compute
    CUDA error: out of memory
      current device: 0, in function alloc at .../ggml-cuda.cu:445                   run
    CUDA error 2 at ggml-cuda.cu:7036: out of memory          run, once the cache is made

The last engine that speaks before the failure counts: launchers quote others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import wrapped
from oomdoctor.evidence.amounts import derived, flag
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact

LONGEST = 4000
SOURCE = "words of the engine's log"


class Word(NamedTuple):
    """A literal in lower case, and what a line with it stands for where the pattern fits."""

    literal: str
    value: str
    pattern: str = ""

    @property
    def literal_source(self) -> str:
        """Return a pattern that fits the literal."""
        return re.escape(self.literal).replace("\\ ", " ")


# A row of a package list (`lmdeploy==0.7.0`, `lmdeploy   0.7.0`) is no engine that runs.
_SPEAKS = r"\b{}\b(?! *=*=? *v?\d)"
ENGINES = (
    Word(
        "ollama",
        "ollama",
        r"ollama\[|/ollama/|ollama runner|OLLAMA_|\bollama (?:run|serve|ps)\b|ollama +\|",
    ),
    Word("llama runner process", "ollama"),
    Word("llama runner exited", "ollama"),
    Word("prompt_save:", "llama.cpp", r"prompt_save: +- saving prompt with length \d"),
    Word("cache state: ", "llama.cpp", r"cache state: \d+ prompts"),
    Word("layers.offload=", "ollama"),
    Word("text_generation_launcher", "tgi"),
    Word("text_generation_server", "tgi"),
    Word("text-generation-launcher", "tgi"),
    Word("--max-batch-prefill-tokens", "tgi"),
    Word("--max-batch-total-tokens", "tgi"),
    Word("not enough memory to handle", "tgi"),
    Word("lmdeploy", "lmdeploy", _SPEAKS.format("lmdeploy")),
    Word("turbomind", "lmdeploy"),
    Word("[tm][error]", "lmdeploy"),
    Word("tensorrt-llm", "tensorrt-llm", _SPEAKS.format("tensorrt-llm")),
    Word("tensorrt_llm", "tensorrt-llm", _SPEAKS.format("tensorrt_llm")),
    Word("[trt-llm]", "tensorrt-llm"),
    Word("executor creation failed", "tensorrt-llm"),
    Word("bfcarena", "onnxruntime"),
    Word("onnxruntime", "onnxruntime", r"onnxruntime(?:::|[:/_]|_pybind|error)|\[E:onnxruntime"),
    Word("cuda failed with error out of memory", "ctranslate2"),
    Word("ctranslate2", "ctranslate2", _SPEAKS.format("ctranslate2")),
    Word("faster_whisper", "ctranslate2", _SPEAKS.format("faster_whisper")),
    Word("exllama", "exllama", r"exllama(?:v2|v3)?[/.]|exllama\w*\.py"),
    Word("mlc_llm", "mlc", _SPEAKS.format("mlc_llm")),
    Word("mlc-llm", "mlc", _SPEAKS.format("mlc-llm")),
    Word("openvino", "openvino", _SPEAKS.format("openvino")),
    Word("[gpu] exceeded max size of memory", "openvino"),
    Word("comfyui", "diffusion-ui", _SPEAKS.format("comfyui")),
    Word("comfy/", "diffusion-ui"),
    Word("!!! exception during processing", "diffusion-ui"),
    Word("stable-diffusion-webui", "diffusion-ui"),
    Word("invokeai", "diffusion-ui", _SPEAKS.format("invokeai")),
    Word("stable-diffusion.cpp", "diffusion-ui"),
    Word("diffusion_model", "diffusion-ui", r"text_encoders?\b.*\bdiffusion_model\b.*\bvae\b"),
    Word("sampling completed, taking", "diffusion-ui"),
    Word("[trt]", "tensorrt"),
    Word("defaultallocator.cpp", "tensorrt"),
)
GGML = (
    "ggml_",
    "ggml-cuda",
    "llama_model_load",
    "llama_new_context",
    "llama_init_from_model",
    "llama_kv_cache",
    "load_tensors:",
    "llama-server",
    "koboldcpp",
    "srv    load_model",
    "llama_params_fit",
)
BUFFERS = (
    Word("clip_model_load", "vision", r"clip_model_load\w*:.*(?:fail|unable)"),
    Word("clip_init", "vision", r"clip_init\w*:.*(?:fail|unable)"),
    Word("failed to load multimodal", "vision"),
    Word("mtmd_init", "vision", r"mtmd_init\w*: error"),
    Word("kvcachemanager::", "cache", r"\bKVCacheManager::\w+"),
    Word("blockmanager::allocatepool", "cache"),
    Word("runtimebuffers::", "compute", r"\bRuntimeBuffers::\w+"),
    Word("not be created: kv cache", "cache"),
    Word("not be created: initial kv", "cache"),
    Word("not be created: model", "weights", r"not be created: Model\b"),
    Word("buffer for kv cache", "cache"),
    Word("failed to allocate kv cache", "cache"),
    Word("failed to allocate the kv cache", "cache"),
    Word("llama_kv_cache", "cache", r"kv_cache\w*\S* (?!.*compute).*failed"),
    Word("compute buffers", "compute", r"failed to allocate compute (?:pp |tg )?buffers"),
    Word("compute pp buffers", "compute"),
    Word("graph_reserve: failed", "compute"),
    Word("ggml_gallocr_reserve", "compute", r"ggml_gallocr_reserve\w*: failed"),
    Word("alloc_tensor_range", "weights", r"alloc_tensor_range: failed"),
    Word("error loading model", "weights", r"error loading model: unable to allocate"),
    Word("unable to allocate cuda", "weights"),
    Word("unable to allocate rocm", "weights"),
    Word("unable to allocate vulkan", "weights"),
    Word("unable to allocate backend", "weights"),
    Word("in function alloc", "run", r"current device: \d+, in function alloc\b"),
    Word("in function launch", "run", r"current device: \d+, in function launch_\w+"),
    Word("in function ggml", "run", r"current device: \d+, in function ggml_\w+"),
)
# Builds of 2023 say the same while they load and while they compute.
OLD_RUN = Word("ggml-cuda.cu", "run", r"CUDA error 2 at \S*ggml-cuda\.cu")
PLACED = ("kv self size", "llama_new_context", "llama_print_timings", "server listening")
ANCHORS = tuple(dict.fromkeys((*GGML, *(one.literal for one in (*ENGINES, *BUFFERS)))))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def read(document: Document) -> Reading:
    """Return the engine and the buffer that failed."""
    lines = haystack_of(document).lines_with(GGML)
    facts = [
        *(tuple(_first("serve.engine", ENGINES, document)) or _writer(document, lines)),
        *_first("serve.failed_buffer", _buffers(document), document),
    ]
    facts += [flag("serve.ggml", document.quote(document.lines[at])) for at in lines[:1]]
    return Reading(facts=tuple(facts))


def _writer(document: Document, ggml: Sequence[int]) -> Iterator[Fact]:
    """Yield the engine whose service wrote the lines of ggml: `node ollama[4504]: ggml_...`."""
    for line in (document.lines[at] for at in ggml):
        if _compiled(r"\bollama\b").search(line.stream):
            yield derived("serve.engine", "ollama", document.quote(line), source=SOURCE)
            return


def _buffers(document: Document) -> Sequence[Word]:
    """Return the words of a failed buffer; those of old builds tell nothing before the cache."""
    placed = haystack_of(document).lines_with(PLACED)
    return (*BUFFERS, OLD_RUN) if placed else BUFFERS


def _first(key: str, words: Sequence[Word], document: Document) -> Iterator[Fact]:
    """Yield the fact of the first word of the table that a line shows."""
    haystack = haystack_of(document)
    for word in words:
        for index in haystack.telling((word.literal,)):
            line = document.lines[index]
            text = line.raw[:LONGEST]
            if word.pattern and _compiled(word.pattern).search(text) is None:
                continue
            yield derived(key, word.value, document.quote(line), source=SOURCE)
            return
    for word in words:
        cut = None if word.pattern else wrapped.last(document, word.literal, word.literal_source)
        if cut is not None:
            yield derived(key, word.value, *cut.quotes(), source=SOURCE)
            return
