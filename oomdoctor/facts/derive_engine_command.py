"""What engines' commands say of their settings, where neither log nor config stated it.

llama-server -m some-q4.gguf -c 32768 -np 4 -ngl 99 -fa on -ctk q8_0 -ub 1024 -ts 3,1
OLLAMA_NUM_PARALLEL=4 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve         PARAMETER num_ctx 16384
text-generation-launcher --max-batch-prefill-tokens 8192 --max-total-tokens 16384 --num-shard 2
benchmark.py -m llama_7b --batch_size "8" --input_output_len "2048,512"              TensorRT-LLM
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Derivation, Inputs, Outcome, derives

SOURCE = "the engine's command"
LOCAL = ("llama.cpp", "ollama")
_NUMBER = r"[ =:\"']{1,3}(?P<n>\d+)\b"
_COUNTS = {
    "serve.gpu_layers": rf"(?:--n-gpu-layers|--gpu-layers|-ngl|n_gpu_layers|num_gpu){_NUMBER}",
    "serve.ubatch": rf"(?:--ubatch-size|-ub|n_ubatch){_NUMBER}",
    "serve.parallel": rf"(?:--parallel|-np|OLLAMA_NUM_PARALLEL){_NUMBER}",
}
_CONTEXT = rf"(?:--ctx-size|--contextsize|-c|n_ctx|num_ctx|OLLAMA_CONTEXT_LENGTH){_NUMBER}"
_TGI = {
    "serve.prefill_tokens": rf"(?:--)?max[-_]batch[-_]prefill[-_]tokens{_NUMBER}",
    "serve.total_tokens": rf"(?:--)?max[-_]batch[-_]total[-_]tokens{_NUMBER}",
    "serve.max_len": rf"(?:--)?max[-_]total[-_]tokens{_NUMBER}",
    "serve.tensor_parallel": rf"(?:--)?num[-_]shard{_NUMBER}",
}
_LENGTHS = r"input_output_len[ =:\"']{1,3}"
_TENSORRT = {
    "train.seq_len": rf"--{_LENGTHS}(?P<n>\d+),\d",
    "gen.max_new_tokens": rf"--{_LENGTHS}\d+,(?P<n>\d+)",
}
_TYPE = (
    r"(?:--cache-type-k|-ctk|OLLAMA_KV_CACHE_TYPE|type_k)[ =:\"']{1,3}"
    r"(?P<word>q\d_\d|f16|bf16|f32|iq\d_\w+)"
)
_SPLIT = r"(?:--tensor-split|-ts|tensor_split)[ =]{1,3}\[?(?P<word>\d[\d.,/ ]*\d)"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){pattern}", re.IGNORECASE)


def _counted(key: str, pattern: str, engines: tuple[str, ...]) -> Derivation:
    """Return the derivation of a number that stands behind a flag or a variable."""

    @derives(key, reads=("serve.engine", "job.text"))
    def count(facts: Inputs) -> Outcome | None:
        if facts.text("serve.engine") not in engines:
            return None
        found = _compiled(pattern).search(facts.text("job.text"))
        number = int(found["n"]) if found is not None else 0
        return Outcome(number, SOURCE) if number > 0 else None

    return count


def _worded(key: str, pattern: str) -> Derivation:
    """Return the derivation of a word that stands behind a flag or a variable."""

    @derives(key, reads=("serve.engine", "job.text"))
    def word(facts: Inputs) -> Outcome | None:
        if facts.text("serve.engine") not in LOCAL:
            return None
        found = _compiled(pattern).search(facts.text("job.text"))
        return None if found is None else Outcome(found["word"].strip().lower(), SOURCE)

    return word


@derives("serve.max_len", reads=("serve.engine", "job.text", "serve.parallel"))
def context(facts: Inputs) -> Outcome | None:
    """The context of the command; ollama builds it once per parallel request."""
    engine = facts.text("serve.engine")
    found = _compiled(_CONTEXT).search(facts.text("job.text")) if engine in LOCAL else None
    tokens = int(found["n"]) if found is not None else 0
    if not tokens:
        return None
    rows = facts.maybe_int("serve.parallel") if engine == "ollama" else None
    words = f"{SOURCE}, for each parallel request" if rows else SOURCE
    return Outcome(tokens * (rows or 1), words)


STEPS = (
    *(_counted(key, pattern, LOCAL) for key, pattern in _COUNTS.items()),
    *(_counted(key, pattern, ("tgi",)) for key, pattern in _TGI.items()),
    *(_counted(key, pattern, ("tensorrt-llm",)) for key, pattern in _TENSORRT.items()),
    _worded("serve.kv_type", _TYPE),
    _worded("serve.tensor_split", _SPLIT),
    context,
)
