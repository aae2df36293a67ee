from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derive import derive
from oomdoctor.facts.given import parse_given
from oomdoctor.model.core import Fact


def derived(*given: str) -> FactBook:
    return derive(FactBook().add(parse_given(given)))


@pytest.mark.parametrize(
    ("job", "engine"),
    [
        ("llama-server -m small.gguf -ngl 20", "llama.cpp"),
        ("ollama run small", "ollama"),
        ("PARAMETER num_ctx 8192", "ollama"),
        ("text-generation-launcher --model-id x", "tgi"),
        ("lmdeploy serve api_server x", "lmdeploy"),
        ("python -m sglang.launch_server --model x", "sglang"),
        ("vllm serve x", "vllm"),
        ("faster-whisper, small card", "ctranslate2"),
        ("ComfyUI workflow", "diffusion-ui"),
        ("mlc_llm serve x", "mlc"),
    ],
)
def test_the_words_of_a_job_name_its_engine(job: str, engine: str) -> None:
    assert derived(f"job.text={job}").value("serve.engine") == engine


def test_packages_of_an_engine_are_no_engine() -> None:
    assert derived("job.text=lmdeploy==0.7.0").value("serve.engine") is None


def test_lines_of_ggml_under_ollama_are_ollama_s() -> None:
    book = derived("serve.ggml=true", "job.text=ollama version is 0.1.19")

    assert book.value("serve.engine") == "ollama"


def test_lines_of_ggml_alone_are_those_of_llama_cpp() -> None:
    assert derived("serve.ggml=true").value("serve.engine") == "llama.cpp"


def test_a_single_visible_card_is_the_only_device_of_an_engine_on_ggml() -> None:
    assert derived("gpu.count=1", "serve.ggml=true").value("serve.devices") == 1
    assert derived("gpu.count=2", "serve.ggml=true").value("serve.devices") is None
    assert derived("gpu.count=1", "serve.engine=vllm").value("serve.devices") is None


def test_an_engine_that_cannot_train_only_infers() -> None:
    assert derived("serve.engine=tgi").value("run.inference_only") is True


def test_an_engine_inside_trainers_leaves_it_open() -> None:
    assert derived("serve.engine=onnxruntime").value("run.inference_only") is None


@pytest.mark.parametrize(
    "job",
    [
        "llama-server -m m.gguf -fa",
        "llama-cli -m m.gguf --flash-attn on -c 4096",
        "ollama serve # OLLAMA_FLASH_ATTENTION=1",
    ],
)
def test_a_flag_switches_attention_in_tiles_on(job: str) -> None:
    assert derived(f"job.text={job}").value("serve.flash_attention") is True


def test_no_flag_says_nothing_about_attention() -> None:
    assert derived("job.text=llama-server -m m.gguf").value("serve.flash_attention") is None


def test_a_log_without_an_engine_s_statement_says_nothing() -> None:
    assert derived("log.text=step 3").value("serve.says") == "nothing"


def test_what_an_engine_said_stays() -> None:
    book = derived("log.text=step 3", "serve.says=no-cache-blocks")

    assert book.value("serve.says") == "no-cache-blocks"


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        ("(EngineCore_DP0 pid=12) ERROR", "vllm"),
        ('File "/opt/vllm/v1/worker/gpu_worker.py", line 3, in init_device', "vllm"),
        ('File "/opt/sglang/srt/managers/scheduler.py", line 3, in __init__', "sglang"),
        ('File "/opt/train.py", line 3, in step', None),
        ("(EngineCore_DP0 pid=12) ERROR\n(rollout) trl step 1", None),
    ],
)
def test_an_engine_s_own_lines_name_it_where_no_trainer_stands_beside_it(
    line: str, framework: str | None
) -> None:
    book = derive(FactBook().add([Fact(key="log.text", value=line)]))

    assert framework == book.value("job.framework")


@pytest.mark.parametrize(
    ("model", "expected"),
    [("org/name-12b-it", True), ("org/name-12b-FP8", False), ("org/name-w8a8", False)],
)
def test_fp8_of_a_checkpoint_that_is_not_named_so_is_made_after_reading(
    model: str, *, expected: bool
) -> None:
    said = f"job.text=vllm serve {model} --quantization fp8"
    book = derived(said, f"model.name={model}", "quant.kind=fp8", "serve.engine=vllm")

    assert book.value("quant.at_load") is expected


@pytest.mark.parametrize("given", ["serve.engine=tgi", "serve.engine=vllm"])
def test_no_quantisation_and_other_engines_make_nothing_at_the_load(given: str) -> None:
    assert derived("job.text=serve it", given).value("quant.at_load") is False
