"""A script that only lets a model answer, and ranks counted by the cards a launcher includes."""

from __future__ import annotations

import pytest

from tests.unit.configs.test_fragments import facts_of

LOADS = "from transformers import AutoModel\nm = AutoModel.from_pretrained('org/name-7b').eval()\n"


@pytest.mark.parametrize(
    "text",
    [
        LOADS + "answer, history = m.chat(tokenizer, 'hello', history=[])\n",
        LOADS + "m.train(False)\nids = m.generate(**inputs, max_new_tokens=20)\n",
    ],
)
def test_a_script_that_only_answers_trains_nothing(text: str) -> None:
    assert facts_of(text)["train.inference"] is True


@pytest.mark.parametrize(
    "text",
    [
        LOADS,
        LOADS + "m.generate(**inputs)\nloss.backward()\n",
        LOADS + "m.generate(**inputs)\ntrainer = Trainer(model=m)\ntrainer.train()\n",
        LOADS + "from torch.optim import AdamW\nm.generate(**inputs)\n",
        LOADS + "class Mine(Trainer):\n    def f(self):\n        m.generate(**inputs)\n",
    ],
)
def test_a_script_with_a_part_of_training_is_not_called_inference(text: str) -> None:
    assert "train.inference" not in facts_of(text)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("localhost:4,5,6,7", 4),
        ("host-a:0,1@host-b:2", 3),
        ("host-a", None),
        ("host-a:0@host-b", None),
    ],
)
def test_cards_that_the_launcher_includes_are_ranks(place: str, expected: int | None) -> None:
    command = f"deepspeed --include {place} train.py --bf16 --per_device_train_batch_size 1"
    assert facts_of(command).get("dist.world_size") == expected


@pytest.mark.parametrize("text", [LOADS, "m = AutoModel.from_pretrained('org/name-7b').cuda()\n"])
def test_a_script_that_shows_nothing_but_the_load_is_seen(text: str) -> None:
    assert facts_of(text)["code.loads_only"] is True


@pytest.mark.parametrize(
    "text",
    [
        LOADS + "m.generate(**inputs)\n",
        LOADS + "trainer = Trainer(model=m)\n",
        "tok = AutoTokenizer.from_pretrained('org/name-7b')\n",
        "lr = 1e-4\n",
    ],
)
def test_a_script_that_goes_on_or_loads_no_model_is_more_than_a_load(text: str) -> None:
    assert "code.loads_only" not in facts_of(text)
