"""What a script imports, defines and calls, one line each with its place."""

from __future__ import annotations

from oomdoctor.configs.reader import read_config

SCRIPT = """\
import torch.nn as nn
from trl import ConstantLengthDataset, SFTConfig as Args
from .data import rows
# from trl import GRPOTrainer
class Ours(transformers.Trainer):
    def compute_loss(self, model, inputs):
        return nn.functional.cross_entropy(model(**inputs).logits, inputs["labels"])
Ours(args=Args(output_dir="o"), train_dataset=ConstantLengthDataset(rows())).train()
"""


def test_imports_definitions_and_calls_stand_in_their_order() -> None:
    (reading,) = read_config(SCRIPT, name="a.py")
    (fact,) = [fact for fact in reading.facts if fact.key == "job.calls"]

    assert str(fact.value).split("\n") == [
        "import torch.nn",
        "import trl.ConstantLengthDataset",
        "import trl.SFTConfig",
        "import .data.rows",
        "class Ours(transformers.Trainer)",
        "def Ours.compute_loss",
        "call nn.functional.cross_entropy",
        "call model",
        "call Ours",
        "call Ours.train",
        "call Args",
        "call ConstantLengthDataset",
        "call rows",
    ]
    assert [(q.line, q.column, q.text) for q in fact.quotes[1:4]] == [
        (2, 17, "ConstantLengthDataset"),
        (2, 40, "SFTConfig as Args"),
        (3, 19, "rows"),
    ]


def test_all_segments_of_a_paste_are_joined() -> None:
    text = "import torch\n\nfree words between the two\n\ntorch.cuda.empty_cache()\n"
    facts = [f for r in read_config(text, name="a.txt") for f in r.facts if f.key == "job.calls"]

    assert [fact.value for fact in facts] == ["import torch", "call torch.cuda.empty_cache"]
    assert all(len(f.quotes) == str(f.value).count("\n") + 1 for f in facts)


def test_a_config_calls_nothing() -> None:
    (reading,) = read_config("output_dir: o\nper_device_train_batch_size: 1\n", name="a.yaml")

    assert [fact.key for fact in reading.facts if fact.key == "job.calls"] == []
