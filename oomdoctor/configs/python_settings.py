"""The settings that a script makes: arguments of calls, entries of dictionaries, assignments.

args = SFTConfig(bf16=True, optim_kwargs={"eps": 1})  SFTConfig.bf16, SFTConfig.optim_kwargs.eps
options = {"packing": True}; SFTConfig(**options)     packing, SFTConfig.packing
torch.backends.cudnn.benchmark = True                 torch.backends.cudnn.benchmark
lr: float = field(default=1e-4)                       lr
parser.add_argument("--lr", default=1e-4)             lr, unless the command line says otherwise
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_place, python_text
from oomdoctor.configs.setting import Setting
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Lines, Plain

POSITIONAL = {  # names of the first positional arguments where they matter
    "from_pretrained": ("model",),
    "LLM": ("model",),
    "SFTTrainer": ("model",),
    "set_per_process_memory_fraction": ("fraction",),
    "pipeline": ("task",),
    "TrainingArguments": ("output_dir",),
    "Seq2SeqTrainingArguments": ("output_dir",),
    "SFTConfig": ("output_dir",),
    "DPOConfig": ("output_dir",),
    "GRPOConfig": ("output_dir",),
    "DataLoader": ("dataset", "batch_size"),
    "BitsAndBytesConfig": ("load_in_8bit", "load_in_4bit"),
    "DataCollatorForLanguageModeling": ("tokenizer", "mlm"),
}
TOKENIZERS = ("tokenizer", "processor", "config", "featureextractor")


class Made(NamedTuple):
    """Settings of a script: those in force, those that a flag may change, those only to be listed.

    The last are arguments whose names mean something else than elsewhere: a tokenizer's.
    """

    settings: list[Setting]
    defaults: list[Setting]
    listed: list[Setting]


def read(block: python_text.Block, names: python_text.Names) -> Made:
    """Read all settings of one parsed piece."""
    made = Made([], [], [])
    for node in python_text.nodes(block.tree):
        if isinstance(node, ast.Call):
            _call(block, node, names, made)
        elif isinstance(node, ast.ClassDef):
            made.settings.extend(_fields(node, names, block.lines))
        else:
            made.settings.extend(_settings(node, names, block.lines))
    return made


def sections(block: python_text.Block, names: python_text.Names) -> Iterator[Setting]:
    """Read arguments of calls that are arguments themselves: `training=TrainingConfig(steps=5)`."""
    for node in python_text.nodes(block.tree):
        if not isinstance(node, ast.keyword) or not isinstance(node.value, ast.Call):
            continue
        for word in node.value.keywords:
            if node.arg is not None and word.arg is not None:
                where = python_text.quote(word.value, block.lines)
                yield Setting((node.arg, word.arg), value(word.value, names), where)


def _call(block: python_text.Block, node: ast.Call, names: python_text.Names, made: Made) -> None:
    full = python_text.called(node)
    short = full.rpartition(".")[2]
    if short == "from_pretrained" and any(mark in full.lower() for mark in TOKENIZERS):
        head = ".".join(full.split(".")[-2:])
        made.listed.extend(_keywords(node, (head,), names, block.lines))
        return
    if short == "add_argument":
        made.defaults.extend(_default(node, names, block.lines))
        return
    if short in python_place.FIELDS:
        return
    made.settings.extend(_keywords(node, (short,), names, block.lines))
    made.settings.extend(_positional(node, short, names, block.lines))
    for spread in python_place.spreads(names, node):
        if isinstance(spread, ast.Dict):
            made.settings.extend(_entries(spread, (short,), names, block.lines))
        else:
            made.settings.extend(_keywords(spread, (short,), names, block.lines))


def _settings(node: ast.AST, names: python_text.Names, lines: Lines) -> Iterator[Setting]:
    if isinstance(node, ast.Dict):
        yield from _entries(node, (), names, lines)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            path = _target(target)
            if path and not isinstance(node.value, (ast.Call, ast.Dict)):
                where = python_text.quote(node.value, lines)
                yield Setting(path, value(node.value, names), where)


def _entries(
    node: ast.Dict, path: tuple[str, ...], names: python_text.Names, lines: Lines
) -> Iterator[Setting]:
    for key, item in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            where = python_text.quote(item, lines)
            if path and isinstance(item, ast.Dict):
                yield from _entries(item, (*path, key.value), names, lines)
            else:
                yield Setting((*path, key.value), value(item, names), where)


def _keywords(
    node: ast.Call, path: tuple[str, ...], names: python_text.Names, lines: Lines
) -> Iterator[Setting]:
    for word in node.keywords:
        if word.arg is None:
            continue
        where = python_text.quote(word.value, lines)
        if isinstance(word.value, (ast.Lambda, ast.Dict)):
            yield Setting((*path, word.arg), python_text.source(word.value), where)
        else:
            yield Setting((*path, word.arg), value(word.value, names), where)
        if isinstance(word.value, ast.Dict):
            yield from _entries(word.value, (*path, word.arg), names, lines)


def _positional(
    node: ast.Call, short: str, names: python_text.Names, lines: Lines
) -> Iterator[Setting]:
    given = {word.arg for word in node.keywords}
    for item, name in zip(node.args, POSITIONAL.get(short, ()), strict=False):
        if isinstance(item, ast.Starred):
            return
        plain = isinstance(item, ast.Constant) or (
            isinstance(item, ast.Name) and item.id in names.values
        )
        if plain and name not in given:
            yield Setting((short, name), value(item, names), python_text.quote(item, lines))


def _fields(node: ast.ClassDef, names: python_text.Names, lines: Lines) -> Iterator[Setting]:
    """Read defaults that stand in a call: `lr: float = field(default=1e-4)`; others are plain."""
    for name, default in python_place.fields(node):
        if any(isinstance(s, ast.AnnAssign) and s.value is default for s in node.body):
            continue
        yield Setting((name,), value(default, names), python_text.quote(default, lines))


def _default(node: ast.Call, names: python_text.Names, lines: Lines) -> Iterator[Setting]:
    """Read the default of a flag; false and nothing say no more than that it may be given."""
    word = next((word for word in node.keywords if word.arg == "default"), None)
    flags = python_place.flags(node)
    if word is None or not flags:
        return
    name = max(flags, key=len)
    said = value(word.value, names)
    if said not in (None, False, "") and not str(said).startswith("<"):
        yield Setting((name,), said, python_text.quote(word.value, lines))


def value(node: ast.expr, names: python_text.Names) -> Plain:
    """Fold a value; a name that stays open is put in angle brackets, so that it is no text."""
    said = python_text.value_of(node, names)
    if not isinstance(said, str) or isinstance(node, ast.Constant):
        return said
    if isinstance(node, ast.Name):
        return said if node.id in names.values else f"<{said}>"
    open_end = isinstance(node, (ast.Subscript, ast.JoinedStr, ast.Attribute))
    return f"<{said}>" if open_end and not said.startswith(("torch.", "jnp.")) else said


def _target(node: ast.expr) -> tuple[str, ...]:
    """Return the path that is assigned: `x`, `a.b.c`, or the variable in `os.environ["X"]`."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return tuple(part for part in python_text.dotted(node).split(".") if part)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = node.slice.value
        if isinstance(name, str) and python_text.dotted(node.value).endswith("environ"):
            return (name,)
    return ()
