"""Scripts that only let a model answer: they generate, and nothing in them trains.

model = AutoModelForCausalLM.from_pretrained("name").eval()
response, history = model.chat(tokenizer, "hello")        train.inference

model = AutoModelForCausalLM.from_pretrained("name").cuda()
model = model.eval()                                      code.loads_only: nothing else is shown
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

ANSWERS = frozenset(("generate", "chat", "stream_chat", "batch_chat", "stream_generate"))
TRAINS = frozenset(
    ("backward", "fit", "train", "zero_grad", "prepare_model_for_kbit_training", "get_peft_model")
)
PARTS_OF_TRAINING = ("trainer", "trainingarguments", "optim", "sftconfig", "loss", "train_")


def read(blocks: Sequence[Block]) -> Iterator[tuple[Claim, Quote]]:
    """Find the call that answers, where no part of training stands beside it."""
    if any(_trains(node) for block in blocks for node in python_text.nodes(block.tree)):
        return
    for block in blocks:
        for node in python_text.nodes(block.tree):
            if isinstance(node, ast.Call) and _method(node) in ANSWERS:
                yield (
                    Claim("train.inference", value=True),
                    python_text.quote(node.func, block.lines),
                )
                return
    yield from _loading(blocks)


def _loading(blocks: Sequence[Block]) -> Iterator[tuple[Claim, Quote]]:
    """Find the call that loads a model, where the script shows nothing that follows it."""
    for block in blocks:
        for node in python_text.nodes(block.tree):
            if isinstance(node, ast.Call) and _loads_model(node):
                yield (
                    Claim("code.loads_only", value=True),
                    python_text.quote(node.func, block.lines),
                )
                return


def _loads_model(node: ast.Call) -> bool:
    """Match `AutoModel.from_pretrained(...)`; a tokenizer or a processor is no model."""
    owner = python_text.called(node).lower().rpartition(".")[0]
    other = ("tokenizer", "processor", "config", "extractor", "scheduler")
    return _method(node) == "from_pretrained" and not owner.endswith(other)


def _method(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _trains(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and _method(node) in TRAINS:
        # `model.train(False)` is another name of `model.eval()`
        return not any(isinstance(arg, ast.Constant) and arg.value is False for arg in node.args)
    names: list[str] = []
    if isinstance(node, ast.Name):
        names = [node.id]
    elif isinstance(node, ast.Attribute):
        names = [node.attr]
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [alias.name for alias in node.names]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        names = [node.name, *(_bases(node) if isinstance(node, ast.ClassDef) else ())]
    return any(part in name.lower() for name in names for part in PARTS_OF_TRAINING)


def _bases(node: ast.ClassDef) -> Iterator[str]:
    yield from (python_text.dotted(base) for base in node.bases)
