"""Writes in C the functions of CUDA that nobody wrote by hand, so that each call is noticed.

What becomes of a function follows from its declaration:

| it | so it |
|---|---|
| computes on a card (a product, a factorisation, an FFT) | does nothing |
| asks how much memory a computation wants | answers 0 and is reported as assumed |
| makes a handle of such a library | gives a fresh one |
| writes something else, or what it writes is not known | fails and is reported as refused |
| writes nothing | does nothing and is reported as ignored |

Functions written by hand (csrc/) are found first, so that those written here beside them never run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.virtual.headers import Parameter, Prototype


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library of CUDA: headers, file names, names of functions, status "not supported"."""

    headers: tuple[str, ...]
    files: str
    names: str
    refusal: int
    computes: bool = False
    only_with: str = ""


LIBRARIES = (
    Library(headers=("cuda.h",), files="", names=r"cu[A-Z]", refusal=801),
    Library(
        headers=("cuda_runtime_api.h",),
        files="libcudart.so",
        names=r"(__)?cuda[A-Z]",
        refusal=801,
    ),
    Library(
        headers=("cublas_v2.h", "cublasLt.h"),
        files="libcublas",
        names=r"cublas",
        refusal=15,
        computes=True,
    ),
    Library(headers=("nccl.h",), files="libnccl.so", names=r"p?nccl[A-Z]", refusal=5),
    # what cuDNN can say without a handle, the real library says
    Library(
        headers=("cudnn.h",),
        files="",
        names=r"cudnn",
        refusal=3000,
        computes=True,
        only_with="cudnnHandle_t",
    ),
    Library(headers=("cusolverDn.h",), files="", names=r"cusolverDn", refusal=9, computes=True),
    Library(headers=("cufftXt.h",), files="", names=r"cufft", refusal=16, computes=True),
    Library(headers=("cusparse.h",), files="", names=r"cusparse", refusal=10, computes=True),
)

_ASKS = re.compile(
    "Get|Find|Create|create|Query|[bB]uffer_?[sS]ize|Nnz|_nnz|Size|Version|Property|Heuristic"
    "|workEstimation|Estimate|MakePlan|Plan[123M]|zeroPivot"
)
# sizes that decide how tensors are laid out, so that 0 would be wrong at once
_NOT_ZERO = re.compile("Nnz|_nnz|MatGetSize|zeroPivot|RNN|MultiHeadAttn|Convolution")
_SIZE_NAMES = re.compile("lwork|size|bytes|workspace", re.IGNORECASE)


def includes(libraries: Iterable[Library]) -> str:
    """Return the lines that include all headers."""
    return "".join(f"#include <{name}>\n" for one in libraries for name in one.headers)


def plain_source(library: Library, declared: Iterable[Prototype], exported: Iterable[str]) -> str:
    """Return the functions that need no look at their arguments, in a file without headers."""
    lines = []
    known = {one.name: one for one in declared if _is_ours(library, one.name)}
    exported_ones = {name for name in exported if _is_ours(library, name)}
    for name in sorted({*known, *exported_ones}):
        prototype = known.get(name)
        if prototype is not None and (_typed(library, prototype) or _stays(library, prototype)):
            continue
        lines.append(_plain(library, name, prototype))
    return "".join(f"{line}\n" for line in lines)


def typed_source(library: Library, declared: Iterable[Prototype]) -> str:
    """Return the functions that write to their arguments, for a file with the headers."""
    known = {one.name: one for one in declared if _is_ours(library, one.name)}
    bodies = ((one, _typed(library, one)) for one in known.values() if not _stays(library, one))
    return "".join(f"{one.text}\n{{\n{body}}}\n" for one, body in bodies if body)


def _is_ours(library: Library, name: str) -> bool:
    return re.match(library.names, name) is not None and not name.endswith("_t")


def _stays(library: Library, prototype: Prototype) -> bool:
    """Say whether the real library answers."""
    types = [one.type for one in prototype.parameters]
    return bool(library.only_with) and library.only_with not in types


def _plain(library: Library, name: str, prototype: Prototype | None) -> str:
    writes = prototype is None or any(one.is_output for one in prototype.parameters)
    if library.computes and prototype is not None and not _ASKS.search(name):
        return f"DOES_NOTHING({name})"
    if writes:
        return f"IS_REFUSED({name}, {library.refusal})"
    return f"IS_IGNORED({name})"


def _typed(library: Library, prototype: Prototype) -> str:
    """Return the body of a function that has to look at its arguments, "" for the others."""
    if any(not one.name for one in prototype.parameters):
        return ""
    if prototype.returns.endswith("char*") or prototype.returns.endswith("char *"):
        return '    return "";\n'
    if not library.computes:
        return ""
    if not _ASKS.search(prototype.name):
        return "".join(_host_results(prototype.parameters))
    return _fresh_handle(prototype) or _size_of_nothing(prototype)


def _fresh_handle(prototype: Prototype) -> str:
    """Return the body of a function that makes a handle."""
    made = prototype.parameters[0] if prototype.parameters else None
    if made is None or not re.search("[cC]reate", prototype.name) or not _is_handle(made):
        return ""
    base = made.type.rstrip("* ")
    return f"    *{made.name} = ({base})(uintptr_t)vc_fresh_handle();\n    return 0;\n"


def _size_of_nothing(prototype: Prototype) -> str:
    """Return the body of a function that says how much memory a computation wants: none."""
    sizes = [one.name for one in prototype.parameters if one.is_output and _is_size(one)]
    if not sizes or _NOT_ZERO.search(prototype.name):
        return ""
    lines = "".join(f"    if ({name})\n        *{name} = 0;\n" for name in sizes)
    return f'    vc_report(VC_ASSUMED, "{prototype.name}: 0 bytes");\n{lines}    return 0;\n'


def _host_results(parameters: Iterable[Parameter]) -> Iterator[str]:
    """Where a result goes to the host, it is 0 there instead of what lay there."""
    for one in parameters:
        if one.name == "result" and one.is_output:
            base = "char" if one.type.startswith("void") else one.type.rstrip("* ")
            yield (
                f"    if (result && vc_card_of(result) < 0)\n"
                f"        memset(result, 0, sizeof({base}));\n    return 0;\n"
            )


def _is_size(parameter: Parameter) -> bool:
    base = parameter.type.rstrip("* ")
    counts = base in ("size_t", "int", "int64_t", "long long")
    return counts and "*" in parameter.type and bool(_SIZE_NAMES.search(parameter.name))


def _is_handle(parameter: Parameter) -> bool:
    return parameter.type.count("*") == 1 and bool(
        re.search(r"(_t|Handle|Descr|Info|Params)\s*\*$", parameter.type)
    )


PLAIN_HEAD = """\
/* Written by oomdoctor/virtual/rest.py from the headers and libraries of the user's wheels. */
#include "virtual.h"
#define DOES_NOTHING(name) int name(void) { return 0; }
#define IS_IGNORED(name) int name(void) { vc_report(VC_IGNORED, #name); return 0; }
#define IS_REFUSED(name, status) int name(void) { vc_report(VC_REFUSED, #name); return status; }
"""
TYPED_HEAD = """\
/* Written by oomdoctor/virtual/rest.py from the headers of the user's wheels. */
#include "virtual.h"
#include <string.h>
"""
