from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import wrapped
from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

MESSAGES = (
    (
        "ValueError: No available memory for the cache blocks. Try increasing"
        " `gpu_memory_utilization` when initializing the engine."
    ),
    (
        "ValueError: The model's max seq len (40960) is larger than the maximum number of tokens"
        " that can be stored in KV cache (22144). Try increasing `gpu_memory_utilization` or"
        " decreasing `max_model_len` when initializing the engine."
    ),
    (
        "ValueError: To serve at least one request with the models's max seq len (65536), (8.00 GiB"
        " KV cache is needed, which is larger than the available KV cache memory (3.25 GiB). Based"
        " on the available memory, the estimated maximum model length is 26608. Try increasing"
        " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    ),
    (
        "ValueError: Free memory on device (30.52/47.41 GiB) on startup is less than desired GPU"
        " memory utilization (0.85, 40.30 GiB). Decrease GPU memory utilization or reduce GPU"
        " memory used by other processes."
    ),
    (
        "Memory profiling results: total_gpu_memory=47.41GiB initial_memory_usage=1.52GiB"
        " peak_torch_memory=17.03GiB memory_usage_post_profile=16.11GiB"
        " non_torch_memory=0.41GiB kv_cache_size=25.23GiB gpu_memory_utilization=0.90"
    ),
    (
        "the current vLLM instance can use total_gpu_memory (47.41GiB) x gpu_memory_utilization"
        " (0.85) = 40.30GiB"
    ),
    (
        "model weights take 15.11GiB; non_torch_memory takes 0.21GiB; PyTorch activation peak"
        " memory takes 2.13GiB; the rest of the memory reserved for KV Cache is 22.85GiB."
    ),
    "worker started on the first device of this machine. # cuda blocks: 21934, # CPU blocks: 2340",
    (
        "the engine has read all of its shards from the disk. Model loading took 15.1106 GiB memory"
        " and 41.123456 seconds"
    ),
    (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests."
        " Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the"
        " engine."
    ),
    (
        "the sleeping engine of the first device has answered. Sleep mode freed 33.51 GiB memory,"
        " 4.12 GiB memory is still in use."
    ),
    (
        "the scheduler of the second rank could not start and says: RuntimeError: Not enough"
        " memory. Please try to increase --mem-fraction-static."
    ),
    (
        "RuntimeError: Not enough memory to handle 24000 total tokens with 4096 prefill tokens. You"
        " need to decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`"
    ),
    (
        "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease"
        " `--max-batch-prefill-tokens`"
    ),
    (
        'Error: Backend(Warmup(Generation("the shard said so: Not enough memory to handle'
        ' `max_total_tokens=24000`")))'
    ),
    (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 6144.25 MiB on device 1: cudaMalloc"
        " failed: out of memory"
    ),
    (
        'level=WARN source=sched.go:646 model=/models/some-model-with-a-name msg="gpu VRAM usage'
        " didn't recover within timeout\" seconds=5.2"
    ),
    (
        "WARNING: the back end of the second device says: Requested buffer size (4831838208)"
        " exceeds device max_buffer_size limit (4294967296)!"
    ),
    (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor"
        " with shape[24,2048,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0"
        " by allocator GPU_0_bfc"
    ),
    (
        "Error: model requires more system memory (37.5 GiB) than is available (21.4 GiB), which"
        " the ollama server found out before it loaded"
    ),
)
PREFIXES = ("serve.", "oom.", "gpu.", "host.")


def facts_of(text: str) -> dict[str, Value]:
    reading = read_all(document_of(text))
    facts = [*reading.facts, *(fact for one in reading.failures for fact in one.facts)]
    return {fact.key: fact.value for fact in facts if fact.key.startswith(PREFIXES)}


def cut(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_says_something(message: str) -> None:
    assert facts_of(message)


@pytest.mark.parametrize("width", [60, 72, 80, 100])
@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_cut_in_the_middle_of_words_says_the_same(message: str, width: int) -> None:
    assert facts_of(message) == facts_of(cut(message, width))


@pytest.mark.parametrize("width", [50, 64, 80])
@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_cut_at_blanks_says_the_same(message: str, width: int) -> None:
    lines = textwrap.wrap(message, width, break_long_words=False, break_on_hyphens=False)

    assert facts_of(message) == facts_of("\n".join(lines))
    assert facts_of(message) == facts_of(" \n".join(lines))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"weights take \d+", r"weightstake\d+"),
        (r"size\s*=\s*\d+", r"size=\d+"),
        (r"total: \S+ GiB", r"total:\S{1,80}?GiB"),
        (r"a[^\n]{0,9}b", r"a.{0,9}b"),
        (r"\bn_ctx", r"(?<![_-])n_ctx"),
    ],
)
def test_a_pattern_of_lines_loses_its_blanks(source: str, expected: str) -> None:
    assert expected == wrapped.squeezed(source)


def test_two_short_lines_of_figures_are_not_joined() -> None:
    assert "serve.max_seqs" not in facts_of("warming up sampler with 12\n8 dummy requests")


def test_lines_of_their_own_are_not_read_as_one_message() -> None:
    text = "Available KV cache memory:\n\n5.00 GiB were used by the file cache before"

    assert "serve.kv_cache" not in facts_of(text)
