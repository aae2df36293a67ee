"""Which engine a log is of, by lines that only it prints."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import engine_name
from tests.unit.evidence.tables_documents import read_text, values


@pytest.mark.parametrize(
    "line",
    [
        "[INFO ] stable-diffusion.cpp:901  - loading diffusion model from 'some.gguf'",
        "  text_encoders 4100.00MB, diffusion_model 7200.50MB, vae 96.00MB",
        "sampling completed, taking 31.07s",
    ],
)
def test_a_native_diffusion_tool_is_no_engine_of_language_models(line: str) -> None:
    text = f"ggml_vulkan: 0 = Some Card\n{line}\nggml_vulkan: allocation of size 4096 failed."

    assert values(read_text(engine_name, text))["serve.engine"] == "diffusion-ui"


@pytest.mark.parametrize(
    ("writer", "engine"), [("ollama[77]", "ollama"), ("koboldd[77]", None), ("kernel", None)]
)
def test_the_service_that_writes_the_lines_of_ggml_names_the_engine(
    writer: str, engine: str | None
) -> None:
    line = f"Jan 02 03:04:05 box {writer}: ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer"

    assert values(read_text(engine_name, line)).get("serve.engine") == engine


@pytest.mark.parametrize(
    ("buffer", "before"),
    [("run", "llama_new_context_with_model: kv self size  = 512.00 MB"), (None, "loading 7B")],
)
def test_old_builds_run_only_when_the_cache_is_made(buffer: str | None, before: str) -> None:
    text = f"{before}\nCUDA error 2 at ggml-cuda.cu:77: out of memory"

    assert values(read_text(engine_name, text)).get("serve.failed_buffer") == buffer


@pytest.mark.parametrize(
    "line",
    [
        "lmdeploy==0.7.0",
        "onnxruntime-gpu   1.18.0",
        "tensorrt-llm 0.12.0",
        "[pip3] openvino=2024.1",
    ],
)
def test_a_row_of_a_package_list_names_no_engine(line: str) -> None:
    assert "serve.engine" not in values(read_text(engine_name, line))


def test_a_component_that_tensorrt_llm_could_not_create_is_the_buffer_that_failed() -> None:
    text = (
        "Executor creation failed due to insufficient GPU memory.\n"
        "The following component could not be created: KV cache\n"
    )

    assert values(read_text(engine_name, text)) == {
        "serve.engine": "tensorrt-llm",
        "serve.failed_buffer": "cache",
    }


def test_a_cache_that_is_shifted_fails_for_want_of_a_compute_buffer() -> None:
    text = "llama_kv_cache_update_impl: failed to allocate compute buffers"

    assert values(read_text(engine_name, text)).get("serve.failed_buffer") == "compute"


def test_the_mark_of_a_workflow_that_failed_names_its_program() -> None:
    text = "!!! Exception during processing !!! Allocation on device"

    assert values(read_text(engine_name, text))["serve.engine"] == "diffusion-ui"


@pytest.mark.parametrize(
    ("frame", "buffer"),
    [
        ("batch_manager::RuntimeBuffers::create(int, int) + 88", "compute"),
        ("batch_manager::kv_cache_manager::KVCacheManager::allocatePools(bool) + 12", "cache"),
        ("runtime::BufferManager::gpu(nvinfer1::Dims64) + 5", None),
    ],
)
def test_a_frame_of_tensorrt_llm_names_the_buffer_that_failed(
    frame: str, buffer: str | None
) -> None:
    text = f"[TensorRT-LLM][ERROR] out of memory\n2       0x7f00 tensorrt_llm::{frame}"

    assert values(read_text(engine_name, text)).get("serve.failed_buffer") == buffer
