"""What a script hands to its trainer: an evaluation set, the tokenizer, a loss of its own.

SFTTrainer(model=model, train_dataset=rows)            code.evaluates, code.hands_tokenizer
SFTTrainer(model=model, compute_loss_func=weighted)    code.own_loss
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

PACKAGES = ("transformers", "trl")
MOST_POSITIONAL = 3  # model, args, collator: what stands behind them differs between trainers
TOKENIZERS = ("processing_class", "tokenizer")
COLLATOR = "DataCollator"


def read(block: Block) -> Iterator[tuple[Claim, Quote]]:
    """Say what the trainers of one parsed piece are given; nothing where one of them hides it."""
    names = frozenset(_imported(block.tree))
    calls = [node for node in python_text.nodes(block.tree) if isinstance(node, ast.Call)]
    trainers = [node for node in calls if _is_trainer(python_text.called(node), names)]
    for node in trainers:
        given = _given(node)
        if "compute_loss_func" in given:
            where = python_text.quote(given["compute_loss_func"], block.lines)
            yield Claim("code.own_loss", value=True), where
    if not trainers or not all(map(_is_open, trainers)):
        return
    where = python_text.quote(trainers[-1].func, block.lines)
    evaluates = any("eval_dataset" in _given(node) for node in trainers)
    yield Claim("code.evaluates", evaluates), where
    tokenizer = any(set(TOKENIZERS) & _given(node).keys() for node in trainers)
    collators = any(COLLATOR in python_text.called(node) for node in calls)
    yield Claim("code.hands_tokenizer", tokenizer or collators), where


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names of trainers that come out of transformers or TRL."""
    for node in python_text.nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield from (alias.name for alias in node.names if alias.name.endswith("Trainer"))


def _is_trainer(name: str, imported: frozenset[str]) -> bool:
    package, _, short = name.rpartition(".")
    return name in imported or (package in PACKAGES and short.endswith("Trainer"))


def _is_open(node: ast.Call) -> bool:
    """Say whether all arguments are to be seen: no **kwargs, and few without a name."""
    named = all(word.arg is not None for word in node.keywords)
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    return named and not starred and len(node.args) <= MOST_POSITIONAL


def _given(node: ast.Call) -> dict[str, ast.expr]:
    """Return the keywords that are given something else than None."""
    return {
        word.arg: word.value
        for word in node.keywords
        if word.arg is not None
        and not (isinstance(word.value, ast.Constant) and word.value.value is None)
    }
