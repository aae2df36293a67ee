"""Sets keyword arguments of a known constructor in a Python script, by the positions in its tree.

args = SFTConfig(output_dir="out", bf16=True)  ->  SFTConfig(output_dir="out", bf16=True, ...)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.difference import nested, same
from oomdoctor.configs.setting import Lines
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted

TARGETS = {  # dialect: the calls that take its settings, the first that occurs is edited
    "trl": ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig", "ORPOConfig"),
    "hf_trainer": (
        "TrainingArguments",
        "Seq2SeqTrainingArguments",
        "SFTConfig",
        "DPOConfig",
        "GRPOConfig",
        "KTOConfig",
        "RewardConfig",
    ),
    "unsloth": ("SFTConfig", "TrainingArguments", "get_peft_model", "from_pretrained"),
    "lightning": ("Trainer",),
    "vllm": ("LLM", "AsyncEngineArgs", "EngineArgs"),
    "sglang": ("Engine", "ServerArgs"),
    "accelerate": ("Accelerator",),
}


LOADING = frozenset(  # settings that a config file holds, and code gives when it loads the model
    ("attn_implementation", "dtype", "torch_dtype", "device_map", "low_cpu_mem_usage")
)
QUANTISING = frozenset(("load_in_4bit", "load_in_8bit", "bnb_4bit_use_double_quant"))
ADAPTER = {  # the name of a config file's setting in LoraConfig
    "lora_r": "r",
    "lora_alpha": "lora_alpha",
    "lora_target_modules": "target_modules",
    "lora_modules_to_save": "modules_to_save",
    "lora_dropout": "lora_dropout",
    "use_dora": "use_dora",
}
NOWHERE = frozenset(("use_peft", "fsdp_config"))  # no argument of a call: code is needed


class Span(NamedTuple):
    """A stretch of the text as offsets in characters."""

    start: int
    end: int


def edit(text: str, wanted: Wanted, dialect: str) -> str | None:
    """Return the script with all wanted arguments set; None where no call takes them."""
    for key, value in wanted.items():
        takers, _ = _takers(key, dialect)
        if dialect != "python" and not any(name in text for name in takers):
            return None
        changed = _set(text, key, value, dialect)
        if changed is None:
            return None
        text = changed
    return text


def held(text: str, key: str, dialect: str) -> tuple[bool, object]:
    """Return whether an argument is given in the call that takes it, and its value."""
    tree = _tree(text)
    call, name = _target(tree, key, dialect) if tree else (None, key)
    word = next((w for w in call.keywords if w.arg == name.split(".")[0]), None) if call else None
    if word is None or tree is None:
        return False, None
    inner = _literal(word.value, tree)
    for part in name.split(".")[1:]:
        if not isinstance(inner, dict) or part not in inner:
            return False, None
        inner = inner[part]
    return True, inner


def _literal(node: ast.expr, tree: ast.Module) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return python_text.value_of(node, python_text.Names(tree))
    return value


def _tree(text: str) -> ast.Module | None:
    blocks = python_text.blocks(Lines.of_text("", text))
    return blocks[0].tree if len(blocks) == 1 and blocks[0].lines.shift == 0 else None


def _target(tree: ast.Module, key: str, dialect: str) -> tuple[ast.Call | None, str]:
    """Find the call to edit: the one that `Name.argument` says, or the dialect's own."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names, key = _takers(key, dialect)
    found = [c for n in names for c in calls if python_text.called(c).rpartition(".")[2] == n]
    first = key.split(".")[0]
    holder = next((c for c in found if any(w.arg == first for w in c.keywords)), None)
    return holder or (found[0] if found else None), key


def _takers(key: str, dialect: str) -> tuple[tuple[str, ...], str]:
    """Name the calls that take a setting, and the argument's name there."""
    names = TARGETS.get(dialect, ())
    if dialect == "python":
        head, _, key = key.rpartition(".")
        names = (head.rpartition(".")[2],)
    elif dialect in ("trl", "hf_trainer", "unsloth"):
        if key in NOWHERE:
            names = ()
        elif key in LOADING or (key in QUANTISING and dialect == "unsloth"):
            names = ("from_pretrained",)
        elif key in QUANTISING:
            names = ("BitsAndBytesConfig",)
        elif key in ADAPTER:
            names, key = ("LoraConfig", "get_peft_model"), ADAPTER[key]
    return names, key


def _assigned(tree: ast.Module, key: str) -> ast.expr | None:
    """Return what is assigned to a dotted name: `torch.backends.cudnn.benchmark = True`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and python_text.dotted(node.targets[0]) == key:
            return node.value
    return None


def _set(text: str, key: str, value: object, dialect: str) -> str | None:
    tree = _tree(text)
    call, name = _target(tree, key, dialect) if tree else (None, key)
    value_node = _assigned(tree, key) if tree and dialect == "python" else None
    if tree is not None and value_node is not None:
        held_value = _literal(value_node, tree)
        return text if same(held_value, value) else _put(text, _span(text, value_node), repr(value))
    if call is None or tree is None or any(word.arg is None for word in call.keywords):
        return None
    there, old = held(text, key, dialect)
    if there and same(old, value):
        return text
    return _argument(text, call, name.split("."), value)


def _argument(text: str, call: ast.Call, path: list[str], value: object) -> str | None:
    """Put an argument into a call, into the mapping that it is given where the path goes on."""
    first, *inner = path
    word = next((w for w in call.keywords if w.arg == first), None)
    if word is None:
        return _add(text, call, f"{first}={nested(inner, value)!r}")
    if inner and isinstance(word.value, ast.Dict):
        return _into_dict(text, word.value, inner, value)
    return _put(text, _span(text, word.value), repr(nested(inner, value)))


def _into_dict(text: str, node: ast.Dict, names: list[str], value: object) -> str | None:
    for key, inner in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == names[0]:
            if len(names) > 1 and isinstance(inner, ast.Dict):
                return _into_dict(text, inner, names[1:], value)
            return _put(text, _span(text, inner), repr(nested(names[1:], value)))
    written = f"{names[0]!r}: {nested(names[1:], value)!r}"
    if not node.values:
        return _put(text, _span(text, node), "{" + written + "}")
    end = _span(text, node.values[-1]).end
    return f"{text[:end]}, {written}{text[end:]}"


def _add(text: str, call: ast.Call, written: str) -> str | None:
    """Add an argument behind the last one, on a line of its own where the last one has one."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    close = _span(text, call).end - 1
    if not arguments:
        return text[:close] + written + text[close:]
    last = max((_span(text, node) for node in arguments), key=lambda span: span.end)
    starts = [*(_span(text, node).start for node in call.args)]
    starts += [_offset(text, word.lineno, word.col_offset) for word in call.keywords]
    begin = max(start for start in starts if start <= last.start)
    row = text.rfind("\n", 0, begin) + 1
    lead = text[row:begin]
    between = text[last.end : close]
    if lead.strip() or "\n" not in between:
        return f"{text[: last.end]}, {written}{text[last.end :]}"
    line_end = text.find("\n", last.end)
    rest = text[last.end : line_end]
    comma = "" if rest.lstrip().startswith(",") else ","
    new = f"{lead}{written},"
    return f"{text[: last.end]}{comma}{rest}\n{new}{text[line_end:]}"


def _put(text: str, span: Span, written: str) -> str:
    return text[: span.start] + written + text[span.end :]


def _span(text: str, node: ast.AST) -> Span:
    start = _offset(text, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
    end = _offset(text, getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))
    return Span(start, end)


def _offset(text: str, line: int, column: int) -> int:
    """Turn a line and a column in UTF-8 bytes, as ast counts, into an offset in characters."""
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    row = text[at : text.find("\n", at) if "\n" in text[at:] else None]
    return at + len(row.encode("utf-8")[:column].decode("utf-8", errors="ignore"))
