from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import packages
from tests.unit.evidence.tables_documents import GIB, fact_of, read_raw, read_text, values

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

EXPECTED: dict[str, dict[str, Value]] = {
    "pip_list.txt": {
        "env.torch": "2.5.1",
        "env.flash_attn": "2.7.2.post1",
        "env.trl": "0.13.0",
        "env.bitsandbytes": "0.45.0",
    },
    "conda_list.txt": {
        "env.python": "3.10.13",
        "env.torch": "2.1.0",
        "env.lightning": "2.1.3",
        "env.xformers": "0.0.22.post7",
    },
    "transformers_env.txt": {
        "env.transformers": "4.46.3",
        "env.python": "3.11.9",
        "env.accelerate": "1.1.1",
        "env.torch": "2.5.1",
        "gpu.name": "NVIDIA GeForce RTX 4090",
    },
    "collect_env.txt": {
        "env.torch": "2.4.0",
        "env.python": "3.10.12",
        "gpu.cuda": "12.1",
        "gpu.driver": "535.104.05",
        "gpu.count": 2,
        "gpu.name": "NVIDIA A100-SXM4-80GB",
    },
    "ds_report.txt": {
        "env.torch": "2.1.0",
        "env.deepspeed": "0.14.0",
        "gpu.cuda": "11.8",
        "host.shm_total": round(503.55 * GIB),
    },
    "unsloth_banner.txt": {
        "env.unsloth": "2024.8",
        "env.transformers": "4.43.3",
        "env.torch": "2.3.1",
        "env.xformers": "0.0.26.post1",
        "gpu.name": "Tesla T4",
        "gpu.cuda": "12.1",
        "gpu.compute_capability": "7.5",
    },
}


@pytest.mark.parametrize(("file", "expected"), EXPECTED.items(), ids=list(EXPECTED))
def test_a_report_gives_versions_and_the_machine(file: str, expected: dict[str, Value]) -> None:
    said = values(read_raw(packages, "packages", file))

    assert expected == {key: said.get(key) for key in expected}


def test_a_listing_is_kept_row_by_row_and_closes() -> None:
    reading = read_raw(packages, "packages", "pip_list.txt")

    fact = fact_of(reading, "env.packages")
    rows = str(fact.value).split("\n")
    assert (
        rows[0],
        len(rows),
        len(fact.quotes),
        reading.closes,
    ) == ("accelerate==1.2.1", 9, 9, ("packages",))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch==2.4.0+cu121", {"env.torch": "2.4.0"}),
        ("transformers version: 4.46.3", {"env.transformers": "4.46.3"}),
        ("- `transformers` version: 4.57.1", {"env.transformers": "4.57.1"}),
        ("- Transformers 4.40.0", {"env.transformers": "4.40.0"}),
        ("PyTorch version: 2.1.0", {"env.torch": "2.1.0"}),
        ("  diffusers: 0.31.0.dev0", {"env.diffusers": "0.31.0.dev0"}),
        ("liger_kernel==0.5.2", {"env.liger": "0.5.2"}),
        ("INFO api_server.py:712] vLLM API server version 0.6.3", {"env.vllm": "0.6.3"}),
        ("Initializing a V1 LLM engine (v0.8.5.post1) with config", {"env.vllm": "0.8.5.post1"}),
        (
            'File "/opt/conda/lib/python3.10/site-packages/torch/nn.py", line 3',
            {"env.python": "3.10"},
        ),
    ],
)
def test_single_lines_state_versions(line: str, expected: dict[str, str]) -> None:
    assert expected == values(read_text(packages, line))


@pytest.mark.parametrize(
    "line",
    [
        "xyz 1.0 requires torch==2.1.0, but you have torch 2.3.0 which is incompatible.",
        "pip install transformers==4.40.0",
        '  "transformers_version": "4.28.0",',
        "torch cuda version ............... 11.8",
        "loss 0.12\nlr 0.1\nacc 0.5\nppl 1.1\nepoch 2.0\ntorch version",
    ],
    ids=["conflict", "advice", "model-config", "cuda", "metrics"],
)
def test_other_numbers_are_no_versions(line: str) -> None:
    assert values(read_text(packages, line), "env.") == {}


def test_the_first_of_two_versions_stays() -> None:
    text = "torch==2.4.0\ntorch==2.5.0\n"

    assert values(read_text(packages, text))["env.torch"] == "2.4.0"
