"""A setting whose value is an expression leaves its fact open: no default takes its place."""

from __future__ import annotations

import pytest

from oomdoctor.configs.open_keys import is_open
from oomdoctor.configs.reader import read_config
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.defaults import assumed

SCRIPT = """\
from unsloth import FastLanguageModel
from transformers import Trainer, TrainingArguments

model, tokenizer = FastLanguageModel.from_pretrained(model_name="a/b", load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=ranks[0], lora_alpha=16)
args = TrainingArguments(
    output_dir="o", per_device_train_batch_size=2, bf16=supported(), optim=config.optim
)
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<args.rank>", True),
        ("$SCHEDULE", True),
        ("${LR}", True),
        ("{{ lr }}", True),
        ("not supported()", True),
        ("'epoch' if x else 'no'", True),
        ("cosine", False),
        ("full_shard auto_wrap", False),
        ("<|end_of_text|> of $5", False),
        ("q_proj|v_proj", False),
        (r".*layers\.(1|2)\.q_proj", False),
        (3, False),
        (None, False),
    ],
)
def test_what_is_an_expression(value: str | int | None, expected: bool) -> None:
    assert is_open(value) is expected


def test_what_an_expression_states_is_open_and_no_default_is_assumed() -> None:
    (reading,) = read_config(SCRIPT, name="a.py", path="a.py")
    facts = {fact.key: fact for fact in reading.facts}
    made = FactBook().add(reading.facts, closes=("train-config",))
    defaults = {fact.key for fact in assumed(made)}

    assert str(facts["job.open"].value).split("\n") == ["lora.rank", "train.amp", "optimizer.name"]
    assert [quote.line for quote in facts["job.open"].quotes] == [5, 7, 7]
    assert "optimizer.name" not in facts
    assert defaults.isdisjoint({"lora.rank", "optimizer.name", "train.amp"})
    assert "data.workers" in defaults
