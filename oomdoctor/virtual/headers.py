"""The functions that the headers of CUDA declare, after the preprocessor went over them.

extern cudaError_t cudaMalloc(void **devPtr, size_t size);
cusolverStatus_t cusolverDnSgeqrf_bufferSize(
    cusolverDnHandle_t handle, int m, int n, float * A, int lda, int *lwork);
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Parameter(NamedTuple):
    """A parameter: its type with the stars, its name ("" where the header gives none)."""

    type: str
    name: str

    @property
    def is_output(self) -> bool:
        """Say whether the function may write through it: what it points to is not constant."""
        last = max(self.type.rfind("*"), self.type.rfind("["))
        target = self.type[: max(last, 0)].strip()
        constant = target.endswith("const") or ("*" not in target and target.startswith("const "))
        return last >= 0 and not constant


class Prototype(NamedTuple):
    """A declared function; `text` is its declaration without the semicolon."""

    name: str
    returns: str
    parameters: tuple[Parameter, ...]
    text: str


@cache
def _declaration() -> re.Pattern[str]:
    # one level of parentheses inside, for pointers to functions: void (*call)(void *)
    inside = r"(?:[^();{}]|\([^()]*\)(?:\([^()]*\))?)*"
    kinds = "cu[A-Z]|cuda[A-Z]|cublas|cudnn|nccl|pnccl|cusolver|cufft|cusparse"
    return re.compile(
        rf"(?P<returns>[A-Za-z_][\w \t\n*]*?)\b(?P<name>(?:{kinds})\w*)\s*"
        rf"\((?P<parameters>{inside})\)\s*;"
    )


@cache
def _attribute() -> re.Pattern[str]:
    return re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def prototypes(text: str) -> Iterator[Prototype]:
    """Yield the functions of CUDA that a preprocessed text declares."""
    for found in _declaration().finditer(_attribute().sub(" ", text)):
        returns = " ".join(found["returns"].removeprefix("extern").split())
        if returns in ("", "return", "typedef", "else"):
            continue
        parameters = tuple(_parameters(found["parameters"]))
        text_of = ", ".join(" ".join(part.split()) for part in _split(found["parameters"]))
        yield Prototype(
            found["name"], returns, parameters, f"{returns} {found['name']}({text_of or 'void'})"
        )


def _parameters(text: str) -> Iterator[Parameter]:
    for part in _split(text):
        plain = " ".join(part.split())
        if plain == "void":
            continue
        found = re.match(r"(.*?[\s*])(\w+)\s*((?:\[[^\]]*\])*)$", plain)
        if found is None or "(" in plain:
            yield Parameter(plain, "")
        else:
            yield Parameter((found[1] + found[3]).strip(), found[2])


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of parentheses."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def renamed(text: str) -> frozenset[str]:
    """Return the names that a header gives to a newer version: `#define cuMemAlloc cuMemAlloc_v2`.

    Libraries export the old names, too, with an older meaning.
    """
    pattern = r"^#define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_PT[SD][SZ]?\()?\1_v\d\)?\s*$"
    return frozenset(re.findall(pattern, text, re.MULTILINE))
