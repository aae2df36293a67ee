"""Layers on the card, as llama.cpp and Ollama spell them, and cards that are counted."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

KEYS = ("serve.gpu_layers", "gpu.count")


def told(text: str, name: str) -> dict[str, object]:
    readings = read_config(text, name=name, path=None)
    return {one.key: one.value for made in readings for one in made.facts if one.key in KEYS}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Modelfile", "FROM llama3.1:8b\nPARAMETER num_ctx 8192\nPARAMETER num_gpu 20\n"),
        ("Modelfile", "# ollama create x\nFROM ./x.gguf\nPARAMETER num_gpu 20\n"),
        ("ask.json", '{"model": "llama3", "options": {"num_gpu": 20, "num_ctx": 8192}}'),
        ("llama.yaml", "model: x.gguf\nn_gpu_layers: 20\nn_ctx: 8192\n"),
        ("run.py", 'from llama_cpp import Llama\nm = Llama("x.gguf", n_gpu_layers=20)\n'),
        ("serve.sh", "llama-server -m x.gguf -ngl 20 -c 8192\n"),
        ("serve.sh", "llama-server -m x.gguf --n-gpu-layers 20 -c 8192\n"),
        ("serve.sh", "llama-server -m x.gguf --gpu-layers 20 -c 8192\n"),
    ],
)
def test_layers_on_the_card_are_no_cards(name: str, text: str) -> None:
    assert told(text, name) == {"serve.gpu_layers": 20}


def test_cards_stay_cards_where_no_engine_counts_layers() -> None:
    assert told("model_type: SRModel\nnum_gpu: 4\n", "train.yaml") == {"gpu.count": 4}
