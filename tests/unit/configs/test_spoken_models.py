"""Models named as people speak are models: `Llama 2 70B` is `Llama-2-70B`."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: Llama 2 70B\nfinetuning_type: lora\n", "Llama-2-70B"),
        ("Llama 2 70B, 8x A100 80GB, lora", "Llama-2-70B"),
        ("Mistral 7B qlora on 24GB", "Mistral-7B"),
        ("full finetune of Qwen 2.5 7B Instruct", "Qwen2.5-7B-Instruct"),
        ("a llama ate 7 breads", None),
    ],
)
def test_a_spoken_name_is_a_model(text: str, expected: str | None) -> None:
    facts = {f.key: f.value for r in read_config(text, name="notes.txt") for f in r.facts}

    assert facts.get("model.name") == expected


def test_the_folder_of_a_checkpoint_names_the_model() -> None:
    text = "torchrun --nproc_per_node 4 chat.py --ckpt_dir ./some-llama-13b/ --max_batch_size 4\n"

    facts = {f.key: f.value for r in read_config(text, name="run.sh") for f in r.facts}

    assert str(facts.get("model.name")).strip("./") == "some-llama-13b"
