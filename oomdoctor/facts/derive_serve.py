"""Derived facts of inference engines: which one it is, told by all that is known of the job."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

FRAMEWORKS = ("vllm", "sglang")
_LLAMA = (
    r"\bllama-(?:server|cli|bench|run)\b|\.gguf\b|\bllama(?:_cpp|\.cpp)\b|koboldcpp"
    r"|\B-ngl\b|n[-_]gpu[-_]layers"
)
_WORDS = (
    ("ollama", r"\bollama\b|\bOLLAMA_[A-Z]|PARAMETER num_(?:ctx|gpu)"),
    ("tgi", r"text-generation-(?:launcher|inference)|--max-batch-(?:prefill|total)-tokens"),
    ("lmdeploy", r"\blmdeploy\b(?! *=*=? *v?\d)|cache_max_entry_count"),
    ("tensorrt-llm", r"\btrtllm-|\btensorrt[-_]llm\b(?! *=*=? *v?\d)"),
    ("sglang", r"sglang[. ](?:launch_server|serve)|mem[-_]fraction[-_]static"),
    ("mlc", r"\bmlc_llm\b(?! *=*=? *v?\d)|\bmlc[-_]chat\b"),
    ("exllama", r"\bexllama(?:v2|v3)?\b(?! *=*=? *v?\d)"),
    ("vllm", r"\bvllm[. ](?:serve|entrypoints)|from vllm import"),
    ("ctranslate2", r"faster[-_]whisper\b(?! *=*=? *v?\d)|\bWhisperModel\(|import ctranslate2"),
    ("diffusion-ui", r"(?i:\bComfyUI\b|stable-diffusion-webui|\bInvokeAI\b|\bFooocus\b)"),
    ("llama.cpp", _LLAMA),
)
_STORED_QUANTISED = ("fp8", "float8", "w8a8", "deepseek-v3", "deepseek-r1", "int8", "awq", "gptq")
_TILED = (
    r"(?:^|\s)(?:-fa|--flash-attn)(?:[ =](?:on|1|true|auto))?(?=\s|$)"
    r"|OLLAMA_FLASH_ATTENTION\W{1,3}(?:1|true)|flash_attn\W{1,3}[Tt]rue"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_OWN_LINES = (
    ("sglang", r"(?i)\bsglang/srt/|\bsglang::|mem[-_]fraction[-_]static"),
    (
        "vllm",
        (
            r"\b(?:EngineCore(?:_\w+)?|VllmWorker(?:Process)?|Worker_[TDP]P\d+\w*|RayWorkerWrapper)"
            r" (?:rank=\d+ )?pid=\d|\bvllm/(?:v1|engine|worker|(?:model_)?executor|entrypoints)/"
            r"|on startup is less than desired GPU memory utilization"
        ),
    ),
)
_TRAINERS = r"(?i)\b(?:trl|verl|openrlhf|rollouts?|actor|trainer|deepspeed|megatron|areal|slime)\b"


@derives("job.framework", reads=("log.text",))
def framework(facts: Inputs) -> Outcome | None:
    """An engine that serves by itself: its own files and processes, and no trainer beside them."""
    said = facts.text("log.text")
    if not said or _compiled(_TRAINERS).search(said):
        return None
    named = next((name for name, words in _OWN_LINES if _compiled(words).search(said)), None)
    return None if named is None else Outcome(named, "files and processes that the log names")


@derives("serve.devices", reads=("gpu.count", "serve.ggml"))
def devices(facts: Inputs) -> Outcome | None:
    """An engine on ggml that sees a single card has no other to put layers on."""
    alone = facts.whole("gpu.count") == 1 and facts.flag("serve.ggml")
    return Outcome(1, "a single card is visible") if alone else None


@derives("serve.engine", reads=("job.framework", "serve.ggml", "job.text"))
def engine(facts: Inputs) -> Outcome | None:
    """The framework of the config, the words of the job, or the lines of ggml."""
    framework = facts.maybe_text("job.framework")
    if framework in FRAMEWORKS:
        return Outcome(framework, "the framework of the job")
    said = facts.maybe_text("job.text") or ""
    searched = _WORDS if said else ()
    named = next((name for name, words in searched if _compiled(words).search(said)), None)
    ggml = facts.maybe_flag("serve.ggml")
    if named is not None and not (ggml and named not in ("ollama", "llama.cpp")):
        return Outcome(named, "words of the job")
    return Outcome("llama.cpp", "lines of ggml in the log") if ggml else None


@derives("quant.at_load", reads=("serve.engine", "quant.kind", "model.name", "job.text"))
def at_load(facts: Inputs) -> Outcome | None:
    """FP8 asked for of a checkpoint that is not named so: it is read in its own width first."""
    facts.text("job.text")
    if (
        facts.maybe_text("serve.engine") not in FRAMEWORKS
        or facts.maybe_text("quant.kind") != "fp8"
    ):
        return Outcome(value=False, source="no engine is told to quantise to FP8")
    name = facts.text("model.name").lower()
    stored = any(word in name for word in _STORED_QUANTISED)
    return Outcome(not stored, "FP8 is asked for, and the checkpoint's name against it")


@derives("serve.flash_attention", reads=("job.text", "serve.engine"))
def flash_attention(facts: Inputs) -> Outcome | None:
    """A flag or variable of the engine's command switches it on."""
    if facts.text("serve.engine") not in ("llama.cpp", "ollama"):
        return None
    found = _compiled(_TILED).search(facts.text("job.text"))
    return None if found is None else Outcome(value=True, source="the engine's command")


@derives("serve.says", reads=("log.text",))
def says(facts: Inputs) -> Outcome:
    """A log that was read and holds none of an engine's statements: nothing is said."""
    facts.text("log.text")
    return Outcome("nothing", "no statement of a serving engine in the log")


STEPS = (framework, devices, engine, at_load, flash_attention, says)
