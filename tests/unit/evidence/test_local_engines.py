from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import engine_name, ggml_log, ollama_log, vllm_log
from tests.unit.evidence.documents import document_of, raw_text
from tests.unit.evidence.tables_documents import GIB, MIB, fact_of, read_raw, read_text, values

if TYPE_CHECKING:
    from types import ModuleType

    from oomdoctor.model.core import Value


def gib(figure: float) -> int:
    return round(figure * GIB)


FIGURES: list[tuple[ModuleType, str, dict[str, Value]]] = [
    (
        ggml_log,
        "llama_cpp_two_cards.txt",
        {
            "gpu.count": 2,
            "serve.weights": 11264 * MIB,
            "serve.kv_cache": 512 * MIB,
            "serve.host_buffers": 512 * MIB,
            "serve.devices": 2,
            "serve.gpu_layers": 41,
            "serve.model_layers": 41,
            "serve.max_len": 16384,
            "serve.train_context": 65536,
            "serve.parallel": 2,
            "serve.ubatch": 512,
            "serve.flash_attention": False,
            "gpu.free": 7936 * MIB,
            "serve.available": 17664 * MIB,
            "serve.fullest_share": 8192 / 7936,
            "serve.emptiest_share": 4608 / 9728,
            "serve.load_spread": 8192 / 4608,
        },
    ),
    (
        ggml_log,
        "llama_cpp_2024.txt",
        {
            "serve.weights": 3072 * MIB,
            "serve.kv_cache": 640 * MIB,
            "serve.compute_buffer": 560 * MIB,
            "serve.host_buffers": 2432 * MIB,
            "serve.devices": 1,
            "serve.gpu_layers": 20,
            "serve.model_layers": 33,
            "serve.max_len": 8192,
            "serve.flash_attention": True,
        },
    ),
    (
        ggml_log,
        "llama_cpp_2023.txt",
        {
            "serve.gpu_layers": 35,
            "serve.model_layers": 35,
            "serve.weights": 3584 * MIB,
            "serve.kv_cache": 2048 * MIB,
            "serve.max_len": 4096,
            "gpu.name": "NVIDIA GeForce GTX 1660",
        },
    ),
    (
        ggml_log,
        "llama_cpp_breakdown.txt",
        {
            "serve.weights": 7168 * MIB,
            "serve.kv_cache": 1536 * MIB,
            "serve.compute_buffer": 512 * MIB,
            "serve.devices": 1,
            "gpu.free": 7600 * MIB,
            "gpu.total": 8188 * MIB,
            "gpu.foreign": (8188 - 7600 - 512) * MIB,
            "serve.fullest_share": 9216 / 7600,
        },
    ),
    (
        ggml_log,
        "llama_cpp_vulkan.txt",
        {
            "serve.weights": 18432 * MIB,
            "serve.kv_cache": 6144 * MIB,
            "serve.devices": 1,
            "serve.max_len": 65536,
            "serve.flash_attention": False,
            "gpu.free": 61440 * MIB,
            "serve.fullest_share": 24576 / 61440,
        },
    ),
    (
        ggml_log,
        "llama_cpp_prompt_cache.txt",
        {
            "serve.gpu_layers": 49,
            "serve.model_layers": 49,
            "serve.host_buffers": 787 * MIB,
            "serve.prompt_cache": 7680 * MIB,
            "serve.prompt_cache_limit": 8192 * MIB,
            "serve.prompt_cache_entries": 12,
        },
    ),
    (
        ollama_log,
        "ollama_offload.txt",
        {
            "env.ollama": "0.6.5",
            "host.ram_total": gib(64),
            "serve.host_available": gib(48),
            "serve.gpu_layers": 49,
            "serve.model_layers": 49,
            "serve.kv_cache": gib(6),
            "serve.weights": gib(19),
            "serve.compute_buffer": gib(2),
            "serve.devices": 2,
            "serve.available": gib(37.5),
            "serve.required": gib(31.5),
            "serve.fullest_share": 0.9,
            "serve.emptiest_share": 0.8,
            "serve.vision": True,
            "serve.max_len": 32768,
            "serve.parallel": 4,
            "serve.flash_attention": False,
        },
    ),
    (
        ollama_log,
        "ollama_engine.txt",
        {
            "serve.weights": gib(9),
            "serve.kv_cache": gib(1.5),
            "serve.compute_buffer": 512 * MIB,
            "serve.host_required": gib(12.5),
            "serve.host_available": gib(9),
        },
    ),
    (ollama_log, "ollama_2023.txt", {"serve.gpu_layers": 41}),
    (
        vllm_log,
        "tgi_three_ages.txt",
        {"serve.total_tokens": 16000, "serve.prefill_tokens": 4096},
    ),
    (vllm_log, "tgi_router.txt", {"serve.total_tokens": 12288}),
    (
        vllm_log,
        "tensorrt_llm.txt",
        {
            "serve.weights": 7168 * MIB,
            "serve.compute_buffer": round(768.5 * MIB),
            "gpu.total": gib(23.5),
            "gpu.free": gib(14.25),
            "serve.kv_cache": gib(12.75),
            "serve.kv_tokens": 104448,
        },
    ),
    (
        vllm_log,
        "sglang_capture.txt",
        {
            "serve.static_fraction": 0.92,
            "serve.eager": False,
            "serve.weights": gib(36.3),
            "serve.kv_cache": gib(36.62),
            "serve.kv_tokens": 120000,
            "serve.max_batched_tokens": 8192,
            "serve.max_seqs": 256,
            "serve.max_len": 32768,
            "serve.prefill_tokens": 16384,
            "gpu.free": gib(3.25),
        },
    ),
    (
        vllm_log,
        "vllm_sleep.txt",
        {
            "serve.max_len": 16384,
            "serve.tensor_parallel": 2,
            "serve.eager": True,
            "serve.kv_type": "fp8_e4m3",
            "gen.engine_sleep": True,
            "serve.sleep_freed": gib(61.25),
            "serve.sleep_in_use": gib(3.1),
        },
    ),
]


@pytest.mark.parametrize(
    ("reader", "file", "expected"), FIGURES, ids=[file for _, file, _ in FIGURES]
)
def test_an_engine_s_figures_are_read(
    reader: ModuleType, file: str, expected: dict[str, Value]
) -> None:
    assert expected == pytest.approx(values(read_raw(reader, "serving", file)), abs=2)


@pytest.mark.parametrize(
    ("file", "engine", "ggml", "buffer"),
    [
        ("llama_cpp_two_cards.txt", None, True, "cache"),
        ("llama_cpp_2024.txt", None, True, "run"),
        ("llama_cpp_2023.txt", None, True, "run"),
        ("llama_cpp_breakdown.txt", None, True, "weights"),
        ("llama_cpp_vulkan.txt", None, True, "compute"),
        ("ollama_offload.txt", "ollama", True, "compute"),
        ("ollama_2023.txt", "ollama", True, None),
        ("tgi_three_ages.txt", "tgi", None, None),
        ("tgi_router.txt", "tgi", None, None),
        ("tensorrt_llm.txt", "tensorrt-llm", None, None),
        ("vllm_sleep.txt", None, None, None),
    ],
)
def test_an_engine_is_named_with_the_buffer_that_failed(
    file: str, engine: str | None, ggml: bool | None, buffer: str | None
) -> None:
    said = values(read_raw(engine_name, "serving", file))

    assert said.get("serve.engine") == engine
    assert said.get("serve.ggml") == ggml
    assert said.get("serve.failed_buffer") == buffer


def test_the_first_buffer_on_a_device_holds_weights_and_finds_what_is_free() -> None:
    text = (
        "llama_model_load_from_file_impl: using device ROCm0 (Some APU) - 98304 MiB free\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 81920.00 MiB on device 0:"
        " cudaMalloc failed: out of memory\n"
    )

    reading = read_text(ggml_log, text)

    assert fact_of(reading, "oom.free").value == 98304 * MIB
    assert fact_of(reading, "serve.failed_buffer").value == "weights"


def test_nothing_is_known_to_be_free_once_a_buffer_was_placed() -> None:
    document = document_of(raw_text("serving", "llama_cpp_two_cards.txt"))

    keys = {fact.key for fact in ggml_log.read(document).facts}

    assert "oom.free" not in keys


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Device 0: NVIDIA L40S, compute capability 8.9, VMM: yes\n", "NVIDIA L40S"),
        ("llama_load: using device CUDA0 (NVIDIA L40S) - 44000 MiB free\n", "NVIDIA L40S"),
        (
            (
                "Device 0: NVIDIA L40S, compute capability 8.9\n"
                "Device 1: NVIDIA L4, compute capability 8.9\n"
            ),
            None,
        ),
    ],
)
def test_the_devices_of_one_name_are_named(text: str, expected: str | None) -> None:
    told = values(read_text(ggml_log, text + "CUDA0 model buffer size = 10.00 MiB\n"))

    assert expected == told.get("gpu.name")


@pytest.mark.parametrize("figure", ["1.2.3", "..", "1."])
def test_a_torn_figure_is_no_size(figure: str) -> None:
    text = f"load_tensors: CUDA0 model buffer size = {figure} MiB\nVRAM used: {figure} MiB"

    assert ggml_log.read(document_of(text)).notes == ()


def test_of_a_table_of_what_a_process_holds_the_free_memory_is_what_it_found() -> None:
    line = "|   - CUDA0 (RTX 4060) | 8188 =  910 + (6812 = 5001 +   1536 +   275) +   466 |"

    said = values(read_text(ggml_log, f"common_memory_breakdown_print: {line}"))

    assert said["gpu.free"] == (910 + 6812) * MIB
    assert said["serve.fullest_share"] == 6812 / (910 + 6812)


def test_the_sums_of_a_plan_are_read() -> None:
    line = (
        "common_params_fit_impl: projected to use 9216 MiB of device memory vs. 7600 MiB of free"
        " device memory"
    )

    said = values(read_text(ggml_log, line))

    assert said == {"serve.required": 9216 * MIB, "serve.available": 7600 * MIB}
