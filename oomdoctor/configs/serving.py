"""vLLM and SGLang: `vllm serve` flags, `LLM(...)` arguments, and YAML files of the same names.

vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.9 --max-model-len 32768 -tp 2
python -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 0.85 --tp 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import Claim, Table, both, count, dtype, given, nothing, text
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings


def _tensor(value: Plain) -> Iterator[Claim]:
    number = scalars.as_count(value)
    if number is not None and 1 <= number <= 1024:
        yield Claim("serve.tensor_parallel", number)
        if number > 1:
            yield Claim("dist.kind", "tensor")


_TENSOR: Table = dict.fromkeys(
    ("tensor_parallel_size", "tp", "tp_size", "tensor_parallel"), _tensor
)
_LENGTH = count("serve.max_len")
VLLM: Table = {
    **_TENSOR,
    "dtype": dtype("train.base_dtype"),
    "quantization": meanings.quantization,
    "q": meanings.quantization,
    "max_model_len": _LENGTH,
    "max_tokens": count("gen.max_new_tokens"),
    "max_num_seqs": count("serve.max_seqs"),
    "max_num_batched_tokens": count("serve.max_batched_tokens"),
    "limit_mm_per_prompt": text("serve.mm_limit"),
    "speculative_config": given("serve.speculative"),
    "speculative_model": given("serve.speculative"),
    "served_model_name": nothing,
    "block_size": nothing,
    "seed": nothing,
    "device": nothing,
    "workers": nothing,
}
SGLANG: Table = {
    **_TENSOR,
    "model_path": meanings.model_name,
    "context_length": _LENGTH,
    "max_running_requests": count("serve.max_seqs"),
    "chunked_prefill_size": count("serve.max_batched_tokens"),
    "max_prefill_tokens": both(nothing),
    "speculative_algorithm": given("serve.speculative"),
    "dtype": dtype("train.base_dtype"),
    "quantization": meanings.quantization,
    "device": nothing,
}
MARKS = (
    "gpu_memory_utilization",
    "max_model_len",
    "tensor_parallel_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enforce_eager",
    "enable_prefix_caching",
    "kv_cache_dtype",
    "limit_mm_per_prompt",
    "enable_chunked_prefill",
    "served_model_name",
    "cpu_offload_gb",
    "swap_space",
)
SGLANG_MARKS = (
    "mem_fraction_static",
    "chunked_prefill_size",
    "max_running_requests",
    "cuda_graph_max_bs",
)


def is_vllm(settings: Settings) -> bool:
    """Say whether the keys are those of vLLM's engine."""
    own = settings.names(*MARKS)
    train = settings.names(
        "learning_rate", "num_train_epochs", "per_device_train_batch_size", "trainer"
    )
    return own >= 1 and train == 0 and not is_sglang(settings)


def is_sglang(settings: Settings) -> bool:
    """Say whether the keys are those of SGLang's server."""
    return settings.names(*SGLANG_MARKS) >= 1


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the server's config where the model is named beside the engine's options."""
    named = settings.names("model", "model_path", "model_tag", "llm") >= 1
    return ("serve-config",) if named else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Name the task."""
    if settings.rows:
        source = "options of a serving engine"
        yield Claim("job.task", "serve", 0, source, Origin.DERIVED), settings.rows[0]


DIALECT = Dialect("vllm", "vllm", VLLM, is_vllm, closes, derived)
SGLANG_DIALECT = Dialect("sglang", "sglang", SGLANG, is_sglang, closes, derived)
