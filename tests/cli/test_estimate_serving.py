"""`oomdoctor estimate` for servers, by the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
COMMAND = (
    f"vllm serve {MODEL} --gpu-memory-utilization 0.9 --max-model-len 16384 -tp 2"
    " --kv-cache-dtype fp8 --enable-lora --max-loras 4 --max-lora-rank 32\n"
)
SCRIPT = f"""
from vllm import LLM
llm = LLM(model="{MODEL}", gpu_memory_utilization=0.8, max_model_len=8192)
"""
PIPELINE = """
import torch
from diffusers import FluxPipeline
pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev", torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload()
pipe("a cat", height=512, width=512)
"""


def served(
    run_python: RunPython, folder: Path, *rest: str, text: str = "", name: str = "run.sh"
) -> dict[str, Any]:
    """Return the answer as JSON."""
    paths: tuple[str, ...] = ()
    if text:
        (folder / name).write_text(text, encoding="utf-8")
        paths = (name,)
    command = ("estimate", *paths, *rest, "--engine", "formula", "-f", "json")
    done = run_python("-m", "oomdoctor", *command, cwd=folder, stdin=b"")
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def serving(values: dict[str, Any]) -> dict[str, Any]:
    """Return the part on the server."""
    found = values["serving"]
    assert isinstance(found, dict)
    return found


def first_card(values: dict[str, Any]) -> dict[str, Any]:
    """Return the budget of the first card."""
    cards = serving(values)["cards"]
    assert isinstance(cards, list)
    found = cards[0]
    assert isinstance(found, dict)
    return found


def test_a_command_line_of_vllm(run_python: RunPython, tmp_path: Path, root: Path) -> None:
    values = served(run_python, tmp_path, "--gpu", "24GiB", text=COMMAND)
    schema = json.loads((root / "docs" / "estimate.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(values)
    found = serving(values)
    assert (found["engine"], found["utilization"], found["longest"]) == ("vllm", 0.9, 16384)
    assert (found["cache"], found["tensor"], found["token_bytes"]) == ("fp8", 2, 32 * 1024)
    names = [row["name"] for row in first_card(values)["rows"]]
    assert "LoRA adapters" in names
    assert values["engine"] == "formula"


def test_flags_alone_describe_a_server(run_python: RunPython, tmp_path: Path) -> None:
    flags = (
        *("--task", "serving", "--model", MODEL, "--gpu", "24GiB", "--utilization", "0.7"),
        *("--max-len", "16384"),
    )
    values = served(run_python, tmp_path, *flags, "--what-if", "max-len=2048")
    found = first_card(values)
    assert found["verdict"] == "oom"
    assert any("--gpu-memory-utilization" in one for one in found["changes"])
    verdicts = values["what_if"][0]["verdicts"]
    assert verdicts[0]["needed_high_bytes"] < found["needed_high_bytes"]


@pytest.mark.parametrize(
    ("text", "name", "engine", "longest"),
    [
        (SCRIPT, "run.py", "vllm", 8192),
        (
            f"python -m sglang.launch_server --model-path {MODEL} --context-length 4096\n",
            "run.sh",
            "sglang",
            4096,
        ),
        (
            f"text-generation-launcher --model-id {MODEL} --max-total-tokens 8192\n",
            "run.sh",
            "tgi",
            8192,
        ),
        (
            "llama-server -m Llama-3.1-8B-Instruct-Q4_K_M.gguf -ngl 99 -c 8192\n",
            "run.sh",
            "llama.cpp",
            8192,
        ),
        ("FROM llama3.1:8b\nPARAMETER num_ctx 16384\n", "Modelfile", "ollama", 16384),
        (
            f"model: {MODEL}\ngpu-memory-utilization: 0.9\nmax-model-len: 4096\n",
            "run.yaml",
            "vllm",
            4096,
        ),
    ],
)
def test_every_engine_is_recognised(
    run_python: RunPython, tmp_path: Path, *, text: str, name: str, engine: str, longest: int
) -> None:
    found = serving(served(run_python, tmp_path, "--gpu", "40GiB", text=text, name=name))
    assert (found["engine"], found["longest"]) == (engine, longest)


def test_a_pipeline_with_its_offloading(run_python: RunPython, tmp_path: Path) -> None:
    values = served(run_python, tmp_path, "--gpu", "48GiB", text=PIPELINE, name="run.py")
    assert serving(values)["engine"] == "diffusers"
    assert 21 << 30 < int(str(values["peak_allocated_bytes"])) < 24 << 30
    assert int(str(values["host_bytes"])) > 30 << 30


def test_parts_add_up(run_python: RunPython, tmp_path: Path) -> None:
    values = served(run_python, tmp_path, "--gpu", "24GiB", text=COMMAND)
    parts = values["parts"]
    assert isinstance(parts, list)
    assert sum(one["bytes"] for one in parts) == values["peak_allocated_bytes"]


def test_text_says_what_the_server_holds(run_python: RunPython, tmp_path: Path) -> None:
    command = ("estimate", "--task", "serving", "--model", MODEL, "--gpu", "24GiB")
    done = run_python("-m", "oomdoctor", *command, "--engine", "formula", cwd=tmp_path, stdin=b"")
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    assert "served by vLLM" in text
    assert "What the server holds" in text
    assert "What would fit" in text
    assert "--max-model-len" in text


def test_an_unknown_pipeline_names_those_that_are_known(
    run_python: RunPython, tmp_path: Path
) -> None:
    flags = ("--task", "serving", "--engine-name", "diffusers", "--model", "nobody/pipe")
    done = run_python("-m", "oomdoctor", "estimate", *flags, cwd=tmp_path, stdin=b"")
    assert done.returncode == 2
    assert "FLUX.1-dev" in done.stderr.decode()


def test_a_plan_for_a_server_is_refused(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--task", "serving", "--model", MODEL, "--gpu", "24GiB", "--engine", "formula")
    done = run_python("-m", "oomdoctor", "plan", *flags, cwd=tmp_path, stdin=b"")
    assert done.returncode == 2
    assert "estimate" in done.stderr.decode()
