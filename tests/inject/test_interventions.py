"""Each injected change takes effect in a program that knows nothing of it, and says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.inject.interventions import NAMES
from tests.hang import no_hang
from tests.inject import programs
from tests.inject.running import needs, output_of, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs("torch")]

PLAIN = """
import gc, json, weakref
import torch

gc.disable()
seen = {}
rows = torch.utils.data.TensorDataset(torch.ones(64, 8))
loader = torch.utils.data.DataLoader(rows, 16, num_workers=2, pin_memory=True, prefetch_factor=2)
seen["loader"] = [loader.batch_size, loader.num_workers, loader.pin_memory]

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
seen["optimizer"] = type(optimizer).__name__
torch.backends.cudnn.benchmark = True
double = lambda one: one * 2
seen["compiled"] = torch.compile(double) is not double

losses, total = [], 0.0
for step in range(2):
    loss = model(torch.ones(2, 8)).sum()
    loss.backward()
    total += loss
    losses.append(loss)
    holder = torch.nn.Linear(1, 1)
    holder.itself, dead = holder, weakref.ref(holder)
    del holder
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
seen["cycle_lives"] = dead() is not None
seen["gradient"] = model.weight.grad is not None
seen["graph_held"] = total.grad_fn is not None or any(one.grad_fn for one in losses)
seen["benchmark"] = torch.backends.cudnn.benchmark

twice = model(torch.ones(2, 8)).sum()
twice.backward(retain_graph=True)
try:
    twice.backward()
    seen["graph_kept"] = True
except RuntimeError:
    seen["graph_kept"] = False

def validate():
    return model(torch.ones(2, 8)).requires_grad

seen["validates_with_graph"] = validate()
model.eval()
seen["evaluates_with_graph"] = model(torch.ones(2, 8)).requires_grad

torch.save({"weight": model.weight.detach()}, "saved.pt")
seen["loaded_to"] = str(torch.load("saved.pt", map_location="meta")["weight"].device)

logits = torch.randn(700, 11, requires_grad=True)
target = torch.randint(0, 11, (700,))
target[:5] = -100
torch.nn.functional.cross_entropy(logits, target).backward()
chunked, logits.grad = logits.grad, None
kept = logits.log_softmax(1)[torch.arange(5, 700), target[5:]]
(-kept.mean()).backward()
seen["loss_is_right"] = torch.allclose(chunked, logits.grad, atol=1e-6)
print(json.dumps(seen))
"""
OF_PLAIN = {
    **{name: {} for name in ("benchmark-off", "chunked-loss", "collect", "detach", "no-grad")},
    **{name: {} for name in ("load-on-host", "no-compile", "no-retain-graph", "nothing")},
    **{name: {} for name in ("pin-memory-off", "zero-grad-none")},
    "optimizer": {"name": "sgd"},
    "rows": {"count": 4},
    "workers": {"count": 0},
}
PLAIN_AS_IT_IS = {
    "loader": [16, 2, True],
    "optimizer": "AdamW",
    "compiled": True,
    "cycle_lives": True,
    "gradient": True,
    "graph_held": True,
    "benchmark": True,
    "graph_kept": True,
    "validates_with_graph": True,
    "evaluates_with_graph": True,
    "loaded_to": "meta",
    "loss_is_right": True,
}
PLAIN_CHANGED = {
    "loader": [4, 0, False],
    "optimizer": "SGD",
    "compiled": False,
    "cycle_lives": False,
    "gradient": False,
    "graph_held": False,
    "benchmark": False,
    "graph_kept": False,
    "validates_with_graph": False,
    "evaluates_with_graph": False,
    "loaded_to": "cpu",
    "loss_is_right": True,
}
MODEL = (
    programs.TINY
    + """
import json

config._attn_implementation = "eager"
model = LlamaForCausalLM(config)
model.train()
ids = torch.randint(0, 512, (2, 64))
out = model(input_ids=ids, labels=ids)
print(json.dumps({
    "attention": model.config._attn_implementation,
    "cache": out.past_key_values is not None,
    "checkpointing": model.is_gradient_checkpointing,
    "dtype": str(model.lm_head.weight.dtype),
    "length": out.logits.shape[1],
}))
"""
)
TOKENIZER = """
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1}, unk_token="a"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
rows = tokenizer(["a a a", "a"], padding="max_length", max_length=64, truncation=True)
print([len(row) for row in rows["input_ids"]])
"""


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang(300):
        yield


def last_of(result: Any) -> Any:
    return json.loads(output_of(result).strip().rpartition("\n")[2])


def test_a_program_is_as_it_is_under_the_control_alone(tmp_path: Path) -> None:
    result = run(tmp_path, PLAIN, steps=0, hooks={"nothing": {}})

    assert last_of(result) == PLAIN_AS_IT_IS
    assert result.interventions == {"nothing": 1}


def test_interventions_change_a_plain_program(tmp_path: Path) -> None:
    result = run(tmp_path, PLAIN, steps=0, hooks=OF_PLAIN)

    assert last_of(result) == PLAIN_CHANGED
    assert [name for name, times in result.interventions.items() if not times] == []


def test_variables_that_hold_a_graph_are_named(tmp_path: Path) -> None:
    program = """
import torch
model = torch.nn.Linear(8, 8)
total = 0.0
for step in range(2):
    loss = model(torch.ones(2, 8)).sum()
    total = total + loss
    loss.backward()
"""

    result = run(tmp_path, program, steps=0, hooks={"detach": {}})

    assert any("a graph is held by total in" in one for one in result.held_sites)


@needs("transformers")
def test_interventions_change_a_model_of_transformers(tmp_path: Path) -> None:
    hooks: dict[str, dict[str, object]] = {
        "attention": {"implementation": "sdpa"},
        "checkpointing": {},
        "cut-rows": {"tokens": 16},
        "load-16-bit": {},
        "use-cache-off": {},
    }

    result = run(tmp_path, MODEL, hooks=hooks)

    assert last_of(result) == {
        "attention": "sdpa",
        "cache": False,
        "checkpointing": True,
        "dtype": "torch.bfloat16",
        "length": 16,
    }
    assert all(result.interventions[name] for name in hooks)


@needs("transformers", "accelerate")
def test_interventions_change_the_evaluation_of_a_trainer(tmp_path: Path) -> None:
    hooks: dict[str, dict[str, object]] = {
        "eval-accumulation": {"steps": 1},
        "eval-rows": {"count": 2},
        "save-without-gather": {},
    }

    result = run(tmp_path, programs.TRAINER, evaluates=True, hooks=hooks)

    assert result.outcome == "fit"
    assert result.interventions == {
        "eval-accumulation": 1,
        "eval-rows": 1,
        "save-without-gather": 0,  # nothing is sharded
    }


@needs("transformers", "tokenizers")
def test_rows_are_padded_to_the_longest(tmp_path: Path) -> None:
    result = run(tmp_path, TOKENIZER, hooks={"pad-to-longest": {}})

    assert output_of(result) == "[3, 3]\n"
    assert result.interventions == {"pad-to-longest": 1}


WORST = """
import json, torch
rows = [torch.arange(n) for n in (3, 9, 4, 7)]

class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return len(rows)

    def __getitem__(self, index):
        return {"input_ids": rows[index]}

def collate(examples):
    longest = max(len(one["input_ids"]) for one in examples)
    pad = torch.nn.functional.pad
    ids = [pad(one["input_ids"], (0, longest - len(one["input_ids"]))) for one in examples]
    return {"input_ids": torch.stack(ids), "share": torch.ones(len(ids), 3)}

loader = torch.utils.data.DataLoader(Texts(), batch_size=2, shuffle=True, collate_fn=collate)
print(json.dumps([[list(one.shape) for one in batch.values()] for batch in loader]))
"""


def test_rows_are_stretched_to_a_length(tmp_path: Path) -> None:
    result = run(tmp_path, WORST, hooks={"stretch-rows": {"tokens": 20}})

    assert json.loads(output_of(result)) == [[[2, 20], [2, 3]], [[2, 20], [2, 3]]]
    assert result.interventions["stretch-rows"] > 0


def test_the_longest_examples_come_first(tmp_path: Path) -> None:
    result = run(tmp_path, WORST, hooks={"longest-first": {}})

    assert [batch[0] for batch in json.loads(output_of(result))] == [[2, 9], [2, 4]]
    assert result.interventions["longest-first"] > 0


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    hooks: dict[str, dict[str, object]] = {"empty-cache": {}, "no-such-thing": {}}

    result = run(tmp_path, programs.LOOP, "2", "8", hooks=hooks)

    assert result.outcome == "fit"
    assert result.interventions == {"empty-cache": 0, "no-such-thing": 0}
    assert "no-such-thing: no intervention has this name" in result.assumptions
    assert any("the process uses no card" in one for one in result.assumptions)


def test_every_intervention_has_a_module(root: Path) -> None:
    folder = root / "oomdoctor" / "inject" / "interventions"

    assert [name for name in NAMES if not (folder / f"{name.replace('-', '_')}.py").exists()] == []
