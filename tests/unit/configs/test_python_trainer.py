"""What a script hands to its trainers."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

IMPORTS = "from transformers import DataCollatorForSeq2Seq, Trainer\nfrom trl import SFTTrainer\n"
KEYS = ("code.evaluates", "code.hands_tokenizer", "code.own_loss")


def said(code: str) -> tuple[object, ...]:
    readings = read_config(f"{IMPORTS}{code}\n", name="train.py")
    facts = {fact.key: fact.value for reading in readings for fact in reading.facts}
    return tuple(facts.get(key) for key in KEYS)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Trainer(model=m, args=a, train_dataset=t)", (False, False, None)),
        ("Trainer(m, a, c, train_dataset=t, eval_dataset=e)", (True, False, None)),
        ("Trainer(model=m, train_dataset=t, eval_dataset=None)", (False, False, None)),
        ("Trainer(model=m, processing_class=tok)", (False, True, None)),
        ("Trainer(model=m, tokenizer=tok)", (False, True, None)),
        ("c = DataCollatorForSeq2Seq(tok)\nTrainer(model=m, data_collator=c)", (False, True, None)),
        ("SFTTrainer(model=m, compute_loss_func=own)", (False, False, True)),
        ("SFTTrainer(model=m, compute_loss_func=None)", (False, False, None)),
        ("SFTTrainer(model=m)\nTrainer(model=m, eval_dataset=e)", (True, False, None)),
    ],
)
def test_what_a_trainer_is_given_is_read(code: str, expected: tuple[object, ...]) -> None:
    assert said(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "Trainer(model=m, **more)",
        "Trainer(*parts)",
        "Trainer(m, a, c, t, e)",
        "Trainer(model=m)\nSFTTrainer(model=m, **more)",
        "lightning.Trainer(devices=1)",
        "pick(name)(model=m)",
    ],
)
def test_nothing_is_said_where_an_argument_may_be_hidden(code: str) -> None:
    assert said(code) == (None, None, None)


def test_a_trainer_of_another_library_is_none_of_these() -> None:
    readings = read_config("from lightning import Trainer\nTrainer(devices=1)\n", name="train.py")
    keys = {fact.key for reading in readings for fact in reading.facts}
    assert keys.isdisjoint(KEYS)


def test_a_trainer_may_be_called_with_its_package() -> None:
    code = "import transformers\ntransformers.Trainer(model=m, eval_dataset=e)\n"
    readings = read_config(code, name="train.py")
    facts = {fact.key: fact.value for reading in readings for fact in reading.facts}
    assert facts["code.evaluates"] is True
