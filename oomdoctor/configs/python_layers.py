"""Scripts that try convolutions alone, and what one of them unfolds its input to.

conv = torch.nn.Conv3d(256, 64, kernel_size=3).cuda()         code.convolutions_only
out = conv(torch.rand(1, 256, 5, 1090, 1922, device="cuda"))  conv.unfolded, conv.places

A convolution that cuDNN does not take unfolds one sample of its input into columns: input channels
x places of the kernel for each place of the output.
"""

from __future__ import annotations

import ast
from math import prod
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

_SIZES = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3}
_TRANSPOSED = frozenset(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"))
_FUNCTIONS = frozenset(("conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"))
_HARMLESS = frozenset(("ReLU", "LeakyReLU", "SiLU", "GELU", "BatchNorm2d", "BatchNorm3d"))
_HARMLESS |= {"Sequential", "MaxPool2d", "MaxPool3d", "AvgPool2d", "AvgPool3d", "Parameter"}
_MAKES = frozenset(("rand", "randn", "zeros", "ones", "empty", "full", "rand_like", "randn_like"))
_LOADS = frozenset(("from_pretrained", "load", "load_state_dict", "DataLoader", "create_model"))
_ARGUMENTS = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation")


def read(blocks: Sequence[Block]) -> Iterator[tuple[Claim, Quote]]:
    """Find a convolution where nothing else with weights is built, and what it is given."""
    if any(_other(node) for block in blocks for node in python_text.nodes(block.tree)):
        return
    told = False
    for block in blocks:
        calls = [node for node in python_text.nodes(block.tree) if isinstance(node, ast.Call)]
        built = [call for call in calls if _is_convolution(call)]
        if built and not told:
            told = True
            only = Claim("code.convolutions_only", value=True)
            yield only, python_text.quote(built[0], block.lines)
        yield from _columns(block, calls)


def _name(call: ast.Call) -> str:
    return python_text.called(call).rpartition(".")[2]


def _is_convolution(call: ast.Call) -> bool:
    name = _name(call)
    return name in _SIZES or name in _TRANSPOSED or name in _FUNCTIONS


def _other(node: ast.AST) -> bool:
    """Say whether a part of the script is more than convolutions on made-up inputs."""
    if isinstance(node, ast.ClassDef):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = _name(node)
    module = python_text.called(node).rpartition(".")[0].rpartition(".")[2]
    layer = module == "nn" and not _is_convolution(node) and name not in _HARMLESS
    return layer or name in _LOADS


def _columns(block: Block, calls: Sequence[ast.Call]) -> Iterator[tuple[Claim, Quote]]:
    """Yield the columns of the largest convolution whose input's shape stands in the script."""
    modules: dict[str, ast.Call] = {}
    inputs: dict[str, ast.Call] = {}
    for node in python_text.nodes(block.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for call in _calls_of(node.value):
                if _name(call) in _SIZES:
                    modules[node.targets[0].id] = call
                elif _name(call) in _MAKES:
                    inputs[node.targets[0].id] = call
    best: tuple[int, int, ast.Call] | None = None
    for call in calls:
        if not (isinstance(call.func, ast.Name) and call.func.id in modules and call.args):
            continue
        given = call.args[0]
        made = inputs.get(given.id) if isinstance(given, ast.Name) else given
        shape = _shape(made) if isinstance(made, ast.Call) else None
        sizes = shape and _unfolded(modules[call.func.id], shape)
        if sizes and (best is None or prod(sizes) > best[0] * best[1]):
            best = (sizes[0], sizes[1], modules[call.func.id])
    if best is not None:
        where = python_text.quote(best[2], block.lines)
        yield Claim("conv.unfolded", best[0]), where
        yield Claim("conv.places", best[1]), where


def _calls_of(node: ast.expr) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _whole(node: ast.expr | None) -> tuple[int, ...] | None:
    """Return the whole numbers of a literal, one or several."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    row = value if isinstance(value, (tuple, list)) else (value,)
    whole = tuple(one for one in row if isinstance(one, int) and not isinstance(one, bool))
    return whole if whole and len(whole) == len(row) else None


def _shape(call: ast.Call) -> tuple[int, ...] | None:
    """Return the shape that `torch.rand(1, 3, 64, 64)` or `torch.rand([1, 3, 64, 64])` makes."""
    for part in _calls_of(call):
        if _name(part) in _MAKES:
            if len(part.args) == 1:
                return _whole(part.args[0])
            whole = [_whole(one) for one in part.args]
            flat = [one[0] for one in whole if one is not None and len(one) == 1]
            return tuple(flat) if flat and len(flat) == len(part.args) else None
    return None


def _unfolded(module: ast.Call, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return (input channels x places of the kernel, places of the output) of a convolution."""
    dims = _SIZES[_name(module)]
    words: Mapping[str, ast.expr] = dict(zip(_ARGUMENTS, module.args, strict=False)) | {
        word.arg: word.value for word in module.keywords if word.arg
    }
    usual = dict(zip(_ARGUMENTS[2:], (0, 1, 0, 1), strict=True))
    rows = [_each(words.get(name), dims, none) for name, none in usual.items()]
    channels = _whole(words.get("in_channels"))
    kernel, stride, padding, dilation = rows
    if channels is None or not (kernel and stride and padding and dilation):
        return None
    if (
        "groups" in words
        or len(shape) not in (dims + 1, dims + 2)
        or shape[-dims - 1] != channels[0]
    ):
        return None
    parts = zip(shape[-dims:], kernel, stride, padding, dilation, strict=True)
    out = [
        (size + 2 * pad - gap * (wide - 1) - 1) // step + 1 for size, wide, step, pad, gap in parts
    ]
    if min(*out, *kernel) < 1:
        return None
    return channels[0] * prod(kernel), prod(out)


def _each(node: ast.expr | None, dims: int, none: int) -> tuple[int, ...] | None:
    """Return one number per dimension: a single one stands for all; without any, `none`."""
    if node is None:
        return (none,) * dims
    whole = _whole(node)
    if whole is None or len(whole) not in (1, dims) or min(whole) < 0:
        return None
    return whole * dims if len(whole) == 1 else whole
