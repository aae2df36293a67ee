"""`oomdoctor estimate` and `oomdoctor plan` as people type them; the formula speaks."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

LLAMA = ("--model", "meta-llama/Llama-2-7b-hf", "--method", "lora", "--batch", "1")
CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
per_device_train_batch_size: 4
max_length: 1024
use_peft: true
bf16: true
output_dir: out
"""
NETWORK = """\
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
 "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 8000, "intermediate_size": 1024,
 "max_position_embeddings": 4096}
"""


def run(run_python: RunPython, folder: Path, command: str, *rest: str) -> CompletedProcess[bytes]:
    engine = ("--engine", "formula")
    return run_python("-m", "oomdoctor", command, *rest, *engine, cwd=folder, stdin=b"")


def as_json(done: CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_contract_of_json(run_python: RunPython, tmp_path: Path, root: Path) -> None:
    done = run(run_python, tmp_path, "estimate", *LLAMA, "--gpu", "24GiB", "-f", "json")
    values = as_json(done)
    schema = json.loads((root / "docs" / "estimate.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(values)
    assert (values["engine"], values["fallback"]) == ("formula", None)
    peak = values["peak_allocated_bytes"]
    assert isinstance(peak, int)
    assert 18 << 30 < peak < 28 << 30
    assert done.stderr == b""


def test_flags_are_in_the_job(run_python: RunPython, tmp_path: Path) -> None:
    flags = (
        *("--method", "lora", "--lora-r", "32", "--lora-targets", "q_proj,k_proj", "--seq", "777"),
        *("--checkpointing", "--grad-accum", "4", "--optimizer", "sgd", "--attention", "eager"),
    )
    done = run(run_python, tmp_path, "estimate", *LLAMA, *flags, "-f", "json", "--no-limits")
    job = as_json(done)["job"]
    assert isinstance(job, dict)
    assert job["lora"]["rank"] == 32
    assert job["lora"]["targets"] == ["q_proj", "k_proj"]
    assert (job["seq_len"], job["grad_accum"], job["attention"]) == (777, 4, "eager")
    assert job["checkpointing"] is not None
    assert job["optimizer"]["name"] == "sgd"


def test_a_models_own_config_is_enough(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(NETWORK, encoding="utf-8")
    for model in ("config.json", "."):
        done = run(run_python, tmp_path, "estimate", "--model", model, "--seq", "512", "-f", "json")
        job = as_json(done)["job"]
        assert isinstance(job, dict)
        assert job["model"]["config"]["num_hidden_layers"] == 6


def test_flags_outrank_a_config(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG, encoding="utf-8")
    flags = ("--batch", "2", "--method", "full", "-f", "json")
    job = as_json(run(run_python, tmp_path, "estimate", "train.yaml", *flags))["job"]
    assert isinstance(job, dict)
    assert (job["batch"], job["seq_len"], job["lora"]) == (2, 1024, None)


def test_text_shows_cards_and_what_if(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG, encoding="utf-8")
    flags = ("--gpu", "RTX 4090", "--gpu", "4GiB", "--what-if", "batch=8,seq=2048")
    done = run(run_python, tmp_path, "estimate", "train.yaml", *flags)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "NVIDIA GeForce RTX 4090" in shown
    assert "4.00 GiB card" in shown
    assert "batch=8,seq=2048" in shown
    assert "Computed by formula" in shown


def test_a_table_in_html_is_a_file_of_its_own(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--gpu", "24GiB", "-f", "html", "-o", "peak.html")
    done = run(run_python, tmp_path, "estimate", *LLAMA, *flags)
    document = (tmp_path / "peak.html").read_text(encoding="utf-8")
    assert done.returncode == 0
    assert 'class="heat"' in document
    assert document.count("<script") == 1
    assert done.stderr.decode() == "written to peak.html\n"


def test_a_verdict_can_fail_a_pipeline(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--gpu", "8GiB", "--no-limits", "-q")
    assert run(run_python, tmp_path, "estimate", *LLAMA, *flags).returncode == 0
    done = run(run_python, tmp_path, "estimate", *LLAMA, *flags, "--fail-on", "oom")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no job"),
        (("--model", "nobody/nothing-9b"), "nobody/nothing-9b"),
        (("--model", "./config.json"), "there is no such file"),
        (("--model", "a" * 5000), "file name too long"),
        ((*LLAMA, "--gpu", "RTX 9999"), "no card that is known"),
        ((*LLAMA, "--method", "full", "--lora-r", "8"), "--method full trains none"),
        ((*LLAMA, "--what-if", "method=full,lora-targets=q_proj"), "--lora-targets"),
        ((*LLAMA, "--what-if", ""), "--what-if ''"),
        ((*LLAMA, "--what-if", "batch=0"), "train.micro_batch = 0"),
        ((*LLAMA, "--attention", "fast"), "--attention fast"),
        ((*LLAMA, "--what-if", "bacth=2"), "bacth"),
        ((*LLAMA, "--batches", "1,x"), "--batches"),
        ((*LLAMA, "--alloc-conf", "expandable:True"), "Unrecognized key"),
        ((*LLAMA, "--fact", "train.seq=1"), "train.seq"),
        (("missing.yaml",), "missing.yaml"),
    ],
)
def test_wrong_use_is_told_in_a_line_or_two(
    run_python: RunPython, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(run_python, tmp_path, "estimate", *arguments)
    told = done.stderr.decode()
    assert done.returncode == 2
    assert message in told
    assert "Traceback" not in told
    assert done.stdout == b""


@pytest.mark.parametrize("text", ["", "5", "[1, 2]", '{"_class_name": "UNet2DConditionModel"}'])
def test_a_file_that_is_no_model_is_named(run_python: RunPython, tmp_path: Path, text: str) -> None:
    (tmp_path / "unet.json").write_text(text, encoding="utf-8")
    done = run(run_python, tmp_path, "estimate", "--model", "unet.json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "--model unet.json: this is no config.json of a model" in done.stderr.decode()


WITHOUT_TORCH = (
    "import sys; from importlib.machinery import PathFinder as P; found = P.find_spec;"
    "P.find_spec = classmethod(lambda c, n, *r: None if n == 'torch' else found(n, *r));"
    "from oomdoctor.cli.main import run; sys.exit(run(sys.argv[1:]))"
)


def test_without_torch_the_formula_speaks_and_says_why(
    run_python: RunPython, tmp_path: Path
) -> None:
    flags = (*LLAMA, "-f", "json", "--no-limits")
    done = run_python("-c", WITHOUT_TORCH, "estimate", *flags, cwd=tmp_path, stdin=b"")
    values = as_json(done)
    assert values["engine"] == "formula"
    assert "torch is not installed" in str(values["fallback"])


@pytest.mark.parametrize("command", ["estimate", "plan"])
def test_a_simulation_that_is_asked_for_needs_torch(
    run_python: RunPython, tmp_path: Path, command: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.exit(7)'\n")
    python.chmod(0o755)
    flags = (*LLAMA, "--gpu", "24GiB", "--engine", "simulate", "--python", str(python))
    done = run_python("-m", "oomdoctor", command, *flags, cwd=tmp_path, stdin=b"")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "error: --engine simulate: " in done.stderr.decode()
    assert "hint: `--engine formula`" in done.stderr.decode()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((*LLAMA, "--gpu", "MI300X"), "only NVIDIA's cards can be played"),
        (
            ("--task", "serving", "--model", "meta-llama/Llama-2-7b-hf", "--gpu", "L4"),
            "a server's memory is computed by formula",
        ),
    ],
)
def test_what_no_virtual_card_can_run_is_refused_with_the_way_out(
    run_python: RunPython, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    words = ("estimate", *flags, "--engine", "virtual")

    done = run_python("-m", "oomdoctor", *words, cwd=tmp_path, stdin=b"")

    errors = done.stderr.decode()
    assert done.returncode == 3
    assert done.stdout == b""
    assert f"error: --engine virtual: {said}" in errors
    assert "hint: without --engine the job is simulated" in errors


def test_a_server_is_not_simulated(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--task", "serving", "--model", "meta-llama/Llama-2-7b-hf", "--engine", "simulate")
    done = run_python("-m", "oomdoctor", "estimate", *flags, cwd=tmp_path, stdin=b"")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "a server's memory is computed by formula" in done.stderr.decode()


def test_a_plan_orders_what_fits_by_quality(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--model", "Qwen/Qwen2.5-0.5B", "--gpu", "RTX 4090", "--seq", "1024", "-f", "json")
    plan = as_json(run(run_python, tmp_path, "plan", *flags))
    steps = plan["steps"]
    assert isinstance(steps, list)
    assert [one["quality"] for one in steps] == sorted(one["quality"] for one in steps)
    assert steps[0]["settings"]["method"] == "full"
    assert all(one["verdict"]["verdict"] == "fits" for one in steps)
    rows = {int(one["settings"]["batch"]) * int(one["settings"]["grad-accum"]) for one in steps}
    assert rows == {16}


def test_a_plan_keeps_what_is_settled(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--model", "Qwen/Qwen2.5-0.5B", "--gpu", "24GiB", "--method", "lora", "--batch", "2")
    plan = as_json(run(run_python, tmp_path, "plan", *flags, "-f", "json"))
    steps = plan["steps"]
    assert isinstance(steps, list)
    assert {one["settings"]["method"] for one in steps} == {"lora"}
    assert {one["settings"]["batch"] for one in steps} == {"2"}


def test_a_plan_names_an_adapters_flags_for_adapters_alone(
    run_python: RunPython, tmp_path: Path
) -> None:
    flags = ("--model", "Qwen/Qwen2.5-0.5B", "--lora-r", "4", "--gpu", "80GiB", "-f", "json")
    plan = as_json(run(run_python, tmp_path, "plan", *flags))
    for step in plan["steps"]:
        assert ("lora-r" in step["settings"]) == (step["settings"]["method"] != "full")


def test_a_plan_without_a_way_says_so(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--model", "meta-llama/Llama-2-70b-hf", "--gpu", "8GiB")
    done = run(run_python, tmp_path, "plan", *flags)
    assert done.returncode == 0
    assert "nothing fits" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(LLAMA, "plan needs a card"), ((*LLAMA, "--gpu", "A100"), "plan is for one card")],
)
def test_a_plan_is_for_one_card(
    run_python: RunPython, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(run_python, tmp_path, "plan", *arguments)
    assert (done.returncode, message in done.stderr.decode()) == (2, True)
