"""What single calls in a training script say: switches in one call, defaults left, adapters.

TrainingArguments(fp16=True, bf16=True)                precision.both_halves
BitsAndBytesConfig(load_in_4bit=True)                  quant.compute_dtype = fp32, quant.type = fp4
DataCollatorForLanguageModeling(tokenizer)             code.mlm
model.enable_input_require_grads()                     code.input_gradients
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text, scalars
from oomdoctor.configs.claims import Claim, dtype_of
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from oomdoctor.configs.python_text import Block, Names
    from oomdoctor.configs.setting import Plain
    from oomdoctor.model.core import Quote

UNSIGNED = {"uint8": "uint8", "int8": "int8", "float64": "fp64"}
PEFT_CONFIGS = frozenset(
    (
        *("LoraConfig", "IA3Config", "PromptTuningConfig", "PrefixTuningConfig", "OFTConfig"),
        *("PromptEncoderConfig", "AdaLoraConfig", "LoHaConfig", "LoKrConfig", "VeraConfig"),
        *("BOFTConfig", "LNTuningConfig", "get_peft_model", "PeftModel", "add_adapter"),
        *("AutoPeftModelForCausalLM", "get_peft_config", "load_adapter"),
    )
)
INPUT_GRADIENTS = frozenset(("enable_input_require_grads", "prepare_model_for_kbit_training"))
MAY_SET_PAD = frozenset(
    ("setup_chat_format", "smart_tokenizer_and_embedding_resize", "get_chat_template")
)
COLLATORS = frozenset(
    (
        *("DataCollatorWithPadding", "DataCollatorForLanguageModeling"),
        *("DataCollatorForSeq2Seq", "DataCollatorForTokenClassification"),
    )
)


class Call(NamedTuple):
    """A call: what is called, on what, its keywords as plain values and as nodes."""

    node: ast.Call
    name: str
    owner: str
    values: Mapping[str, Plain]
    nodes: Mapping[str, ast.expr]
    complete: bool  # no **kwargs hides an argument


def read(block: Block, names: Names) -> Iterator[tuple[Claim, Quote]]:
    """Read all calls of one parsed piece."""
    own_collator = _imports(block.tree, "trl", "DataCollatorForLanguageModeling")
    diffusers = _imports(block.tree, "diffusers", None)
    for node in python_text.nodes(block.tree):
        if isinstance(node, ast.Call):
            call = _call(node, names)
            found = [*_switches(call), *_bits(call), *_tokens(call), *_adapters(call)]
            if not own_collator:
                found += _collator(call)
            if call.name in ("add_adapter", "load_adapter") and not diffusers:
                found.append((Claim("code.adapter_api", value=True), node.func))
            yield from ((claim, python_text.quote(at, block.lines)) for claim, at in found)
        elif isinstance(node, ast.Assign):
            yield from (
                (Claim("code.sets_pad", value=True), python_text.quote(target, block.lines))
                for target in node.targets
                if _is_pad(target)
            )


def _is_pad(target: ast.expr) -> bool:
    """Match `tokenizer.pad_token`, `tokenizer.pad_token_id` and `tokens["pad_token"]`."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and target.slice.value == "pad_token"
    return python_text.dotted(target).endswith((".pad_token", ".pad_token_id"))


def _call(node: ast.Call, names: Names) -> Call:
    full = python_text.called(node)
    nodes = {word.arg: word.value for word in node.keywords if word.arg is not None}
    values = {name: python_text.value_of(value, names) for name, value in nodes.items()}
    owner, _, short = full.rpartition(".")
    return Call(node, short, owner, values, nodes, len(nodes) == len(node.keywords))


def _switches(call: Call) -> Iterator[tuple[Claim, ast.expr]]:
    """Two switches in one call of which only one may be on."""
    for key, one, two in (
        ("precision.both_halves", "fp16", "bf16"),
        ("quant.both_bits", "load_in_8bit", "load_in_4bit"),
    ):
        given = [name for name in call.nodes if name in (one, two)]
        if len(given) == 2:
            both = all(call.values[name] is True for name in given)
            yield Claim(key, both), call.nodes[given[-1]]


def _bits(call: Call) -> Iterator[tuple[Claim, ast.expr]]:
    """What a 4-bit configuration leaves to its defaults, which never changed."""
    named = call.name == "BitsAndBytesConfig"
    loads = call.name == "from_pretrained" and "Fast" not in call.owner
    if not (named or loads) or call.values.get("load_in_4bit") is not True:
        return
    switch = call.nodes["load_in_4bit"]
    compute = dtype_of(call.values.get("bnb_4bit_compute_dtype"))
    kind = scalars.as_text(call.values.get("bnb_4bit_quant_type"))
    stored = scalars.as_text(call.values.get("bnb_4bit_quant_storage")) or ""
    storage = UNSIGNED.get(stored.removeprefix("torch.")) or dtype_of(stored)
    for key, name, value, left in (
        ("quant.compute_dtype", "bnb_4bit_compute_dtype", compute, "fp32"),
        ("quant.type", "bnb_4bit_quant_type", kind if kind in ("fp4", "nf4") else None, "fp4"),
        ("quant.storage", "bnb_4bit_quant_storage", storage, "uint8"),
    ):
        if value is not None:
            yield Claim(key, value), call.nodes[name]
        elif name not in call.nodes and call.complete:
            source = f"default of {name} in BitsAndBytesConfig"
            yield Claim(key, left, 0, source, Origin.DERIVED), switch


def _tokens(call: Call) -> Iterator[tuple[Claim, ast.expr]]:
    """Tokens that are added, and a pad token among them."""
    words = _words(call.node.args)
    if call.name in MAY_SET_PAD or (call.name == "add_special_tokens" and words is None):
        yield Claim("code.sets_pad", value=True), call.node.func
    if call.name == "add_special_tokens" and words is not None:
        if "pad_token" in words:
            yield Claim("code.sets_pad", value=True), call.node.func
        if "additional_special_tokens" in words:
            yield Claim("train.adds_tokens", value=True), call.node.func
    elif call.name in ("add_tokens", "setup_chat_format"):
        yield Claim("train.adds_tokens", value=True), call.node.func
    if "pad_token" in call.nodes and "tokenizer" in f"{call.owner}{call.name}".lower():
        yield Claim("code.sets_pad", value=True), call.nodes["pad_token"]
    if call.name in COLLATORS:
        yield Claim("code.pads", value=True), call.node.func
    padding = call.values.get("padding")
    if padding in (True, "max_length", "longest") and "tokenizer" in f"{call.owner}{call.name}":
        yield Claim("code.pads", value=True), call.nodes["padding"]


def _words(args: Sequence[ast.expr]) -> frozenset[str] | None:
    """Return the keys of dictionaries among the arguments; None where one is made elsewhere."""
    if not all(isinstance(arg, ast.Dict) for arg in args[:1]) or not args:
        return None
    return frozenset(
        key.value
        for arg in args
        if isinstance(arg, ast.Dict)
        for key in arg.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    )


def _adapters(call: Call) -> Iterator[tuple[Claim, ast.expr]]:
    """Adapters, and what lets gradients reach them through reentrant checkpoints."""
    if call.name in PEFT_CONFIGS or call.owner.rpartition(".")[2] in PEFT_CONFIGS:
        yield Claim("code.attaches_adapter", value=True), call.node.func
    elif "peft_config" in call.nodes:
        yield Claim("code.attaches_adapter", value=True), call.nodes["peft_config"]
    if call.name == "get_peft_model" and "Fast" not in call.owner:
        yield Claim("code.wraps_peft", value=True), call.node.func
    if call.name in INPUT_GRADIENTS:
        yield Claim("code.input_gradients", value=True), call.node.func


def _collator(call: Call) -> list[tuple[Claim, ast.expr]]:
    if call.name != "DataCollatorForLanguageModeling" or not call.complete:
        return []
    if "mlm" in call.nodes:
        said = call.values["mlm"]
        return [(Claim("code.mlm", said), call.nodes["mlm"])] if isinstance(said, bool) else []
    if len(call.node.args) > 1:
        second = call.node.args[1]
        constant = second.value if isinstance(second, ast.Constant) else None
        is_flag = isinstance(constant, bool)
        return [(Claim("code.mlm", bool(constant)), second)] if is_flag else []
    source = "mlm is True unless told otherwise"
    return [(Claim("code.mlm", value=True, source=source, origin=Origin.DERIVED), call.node.func)]


def _imports(tree: ast.Module, package: str, name: str | None) -> bool:
    """Say whether a package, or one name out of it, is imported."""
    for node in python_text.nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [f"{alias.name}." for alias in node.names]
        ours = [full for full in names if full.startswith(f"{package}.")]
        if any(name is None or full.endswith(f".{name}") for full in ours):
            return True
    return False
