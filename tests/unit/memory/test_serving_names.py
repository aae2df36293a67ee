"""What names of files, tags and layers say."""

from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.memory.gguf_names import file_name, tag_name
from oomdoctor.memory.serving_names import named
from oomdoctor.memory.window_layers import layers_of
from oomdoctor.model.core import Fact


@pytest.mark.parametrize(
    ("name", "model", "kind"),
    [
        ("models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "Qwen2.5-7B-Instruct", "q4_k_m"),
        ("someone/Meta-Llama-3.1-8B-GGUF:Q6_K", "Meta-Llama-3.1-8B", "q6_k"),
        ("gemma-3-27b-it-UD-Q4_K_XL.gguf", "gemma-3-27b-it", "q4_k_l"),
        ("llama-3-70b-IQ2_XXS-00001-of-00002.gguf", "llama-3-70b", "iq2_xxs"),
        ("mistral-7b-instruct-v0.2.Q5_K_S.gguf", "mistral-7b-instruct-v0.2", "q5_k_s"),
        ("gpt-oss-20b-mxfp4.gguf", "gpt-oss-20b", "mxfp4"),
        ("Llama-3.2-3B-Instruct-f16.gguf", "Llama-3.2-3B-Instruct", "f16"),
        ("plain.gguf", "plain", None),
    ],
)
def test_a_file_is_named_for_its_model_and_type(name: str, model: str, kind: str | None) -> None:
    assert file_name(name) == (model, kind)


@pytest.mark.parametrize(
    ("tag", "model", "kind"),
    [
        ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b-instruct", "q4_k_m"),
        ("llama3.2", "llama-3.2-3b", None),
        ("qwen2.5:14b", "qwen2.5-14b", None),
        ("gemma3:27b-it-qat", "gemma-3-27b-it", None),
        ("gpt-oss:20b", "gpt-oss-20b", None),
    ],
)
def test_a_tag_of_ollama_is_a_model_of_the_table(tag: str, model: str, kind: str | None) -> None:
    assert tag_name(tag) == (model, kind)


def book(text: str, **facts: str) -> FactBook:
    """Return a book of a command."""
    values = {"job.text": text, **{k.replace("__", "."): v for k, v in facts.items()}}
    return FactBook().add(Fact(key=key, value=value) for key, value in values.items())


def test_a_server_of_a_file_names_its_model() -> None:
    text = "llama-server -m /m/Llama-3.1-8B-Q8_0.gguf --mmproj mmproj-f16.gguf -ngl 99"
    found = named(book(text, job__task="serve"))
    assert found.value("model.name") == "Llama-3.1-8B"
    assert found.value("serve.file_type") == "q8_0"
    assert found.value("serve.engine") == "llama.cpp"


def test_a_script_that_trains_and_then_exports_is_no_server() -> None:
    text = "trainer = SFTTrainer(...)\n# llama-cli -m out/model-q4_k_m.gguf"
    assert named(book(text)).value("serve.engine") is None


def test_a_stated_file_type_stays() -> None:
    text = "ollama run llama3.1:8b-instruct-q4_K_M"
    assert named(book(text, serve__file_type="q8_0")).value("serve.file_type") == "q8_0"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "llama", "num_hidden_layers": 8}, (8, 0, 0)),
        ({"model_type": "gemma2", "num_hidden_layers": 42, "sliding_window": 4096}, (21, 21, 4096)),
        ({"model_type": "mistral", "num_hidden_layers": 32, "sliding_window": 4096}, (0, 32, 4096)),
        ({"model_type": "mistral", "num_hidden_layers": 32, "sliding_window": None}, (32, 0, 0)),
        (
            {
                "model_type": "qwen2",
                "num_hidden_layers": 28,
                "sliding_window": 32768,
                "use_sliding_window": False,
            },
            (28, 0, 0),
        ),
        (
            {
                "model_type": "any",
                "num_hidden_layers": 4,
                "sliding_window": 128,
                "layer_types": [
                    "sliding_attention",
                    "full_attention",
                    "linear_attention",
                    "full_attention",
                ],
            },
            (2, 1, 128),
        ),
    ],
)
def test_which_layers_keep_all_tokens(config: dict[str, object], expected: object) -> None:
    assert layers_of(config) == expected


def test_a_window_also_holds_the_tokens_of_a_pass() -> None:
    layers = layers_of({"model_type": "gemma2", "num_hidden_layers": 2, "sliding_window": 4096})
    assert layers.tokens(32768, ahead=2048) == 32768 + 4096 + 2048
    assert layers.tokens(1000, ahead=2048) == 2000
