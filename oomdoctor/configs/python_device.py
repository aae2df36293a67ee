"""Scripts that touch a card in the wrong process or the wrong place.

class Pairs(Dataset):
    def __getitem__(self, i):
        return self.model(x.cuda())            code.cuda_in_workers: loader workers run this

dist.init_process_group("nccl")
model = DistributedDataParallel(net.to("cuda"))    code.same_device: each rank takes GPU 0
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

IN_WORKERS = ("__getitem__", "__getitems__", "__iter__")
HANDED_OVER = ("collate_fn", "worker_init_fn")
DEVICES = ("cuda", "cuda:0")
RANKS = ("DistributedDataParallel", "DDP", "init_process_group")
# whatever speaks of ranks' own cards, or leaves their choice to a library
CHOOSES = (
    *("local_rank", "set_device", "cuda_visible_devices", "device_ids", "accelerator("),
    *("cuda:{", "fabric(", "trainer(", "device_count", "hvd.", "get_rank() %", "rank %"),
)


def read(blocks: Sequence[Block], text: str) -> Iterator[tuple[Claim, Quote]]:
    """Find the first place of each kind."""
    for block in blocks:
        node = next(_touching(_worker_code(block.tree), any_index=True), None)
        if node is not None:
            where = python_text.quote(node, block.lines)
            yield Claim("code.cuda_in_workers", value=True), where
            break
    yield from _same_device(blocks, text.lower())


def _worker_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what loader workers run: methods of data sets, collators, initialisers."""
    functions = {
        node.name: node for node in python_text.nodes(tree) if isinstance(node, ast.FunctionDef)
    }
    for node in python_text.nodes(tree):
        if isinstance(node, ast.ClassDef) and any(map(_is_data_set, node.bases)):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name in IN_WORKERS:
                    yield part
        elif isinstance(node, ast.keyword) and node.arg in HANDED_OVER:
            if isinstance(node.value, ast.Lambda):
                yield node.value
            elif isinstance(node.value, ast.Name) and node.value.id in functions:
                yield functions[node.value.id]


def _is_data_set(base: ast.expr) -> bool:
    name = python_text.dotted(base).rpartition(".")[2]
    return name.endswith(("Dataset", "DataPipe"))


def _touching(parts: Iterable[ast.AST], *, any_index: bool) -> Iterator[ast.expr]:
    """Yield expressions that put something on a card (with `any_index`, on a numbered one too)."""
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and _on_card(node, any_index=any_index):
                yield node


def _on_card(node: ast.Call, *, any_index: bool) -> bool:
    name = python_text.called(node).rpartition(".")[2]
    if not name and isinstance(node.func, ast.Attribute):
        name = node.func.attr
    if name == "cuda":
        return any_index or not node.args
    alone = name == "to" or (name == "device" and len(node.args) == 1)
    given = [*node.args[:1]] if alone else []
    given += [word.value for word in node.keywords if word.arg == "device"]
    if name == "set_device":
        return any_index
    return any(_names_card(value, any_index=any_index) for value in given)


def _names_card(node: ast.expr, *, any_index: bool) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return node.value in DEVICES or (any_index and node.value.startswith("cuda:"))


def _same_device(blocks: Sequence[Block], text: str) -> Iterator[tuple[Claim, Quote]]:
    """Several ranks, a model on "cuda", and nowhere a word about which card is whose."""
    if any(word in text for word in CHOOSES):
        return
    calls = [
        node
        for block in blocks
        for node in python_text.nodes(block.tree)
        if isinstance(node, ast.Call)
    ]
    names = {python_text.called(node).rpartition(".")[2] for node in calls}
    if not names.intersection(RANKS):
        return
    for block in blocks:
        node = next(_touching((block.tree,), any_index=False), None)
        if node is not None:
            where = python_text.quote(node, block.lines)
            yield Claim("code.same_device", value=True), where
            return
