from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derive import derive
from oomdoctor.facts.given import parse_given

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

LLAMA = "llama-server -m small.gguf -c 32768 -np 4 -ngl 31 -ub 1024 -ctk q8_0 -ts 3,1 -fa"


def derived(*given: str) -> FactBook:
    return derive(FactBook().add(parse_given(given)))


@pytest.mark.parametrize(
    ("job", "key", "value"),
    [
        (LLAMA, "serve.max_len", 32768),
        (LLAMA, "serve.parallel", 4),
        (LLAMA, "serve.gpu_layers", 31),
        (LLAMA, "serve.ubatch", 1024),
        (LLAMA, "serve.kv_type", "q8_0"),
        (LLAMA, "serve.tensor_split", "3,1"),
        (LLAMA, "serve.flash_attention", True),
        ("Llama(model_path='a.gguf', n_ctx=4096, n_gpu_layers=20)", "serve.max_len", 4096),
        ("FROM small\nPARAMETER num_ctx 8192", "serve.max_len", 8192),
        ("docker run -e OLLAMA_NUM_PARALLEL=3 ollama/ollama", "serve.parallel", 3),
        ("OLLAMA_KV_CACHE_TYPE=q4_0 ollama serve", "serve.kv_type", "q4_0"),
        (
            "text-generation-launcher --max-batch-prefill-tokens 6144",
            "serve.prefill_tokens",
            6144,
        ),
        ("text-generation-launcher --max-batch-total-tokens=9000", "serve.total_tokens", 9000),
        ("text-generation-launcher --max-total-tokens 5000", "serve.max_len", 5000),
        ("text-generation-launcher --num-shard 2", "serve.tensor_parallel", 2),
        ("tensorrt_llm bench --input_output_len '1024,256'", "train.seq_len", 1024),
        ("tensorrt_llm bench --input_output_len '1024,256'", "gen.max_new_tokens", 256),
    ],
)
def test_a_command_states_the_engine_s_settings(job: str, key: str, value: Value) -> None:
    assert value == derived(f"job.text={job}").value(key)


def test_ollama_builds_its_context_for_each_parallel_request() -> None:
    job = "OLLAMA_NUM_PARALLEL=4 ollama serve  # PARAMETER num_ctx 8192"

    assert derived(f"job.text={job}").value("serve.max_len") == 32768


def test_flags_of_another_program_are_not_an_engine_s() -> None:
    assert derived("job.text=python train.py -c 3 -np 4").value("serve.max_len") is None


def test_what_the_log_states_outranks_the_command() -> None:
    book = derived(f"job.text={LLAMA}", "serve.max_len=4096")

    assert book.value("serve.max_len") == 4096


def test_an_eight_bit_cache_takes_half_of_the_bytes_and_its_scales() -> None:
    from oomdoctor.memory import physics

    shape = ("model.layers=32", "model.kv_heads=8", "model.head_dim=128", "serve.max_len=1024")
    full = physics.derive(derived(*shape)).value("kv.total")
    small = physics.derive(derived(*shape, "serve.kv_type=q8_0")).value("kv.total")

    assert full == 2 * 32 * 1024 * 8 * 128 * 2
    assert small == full * 17 // 32
