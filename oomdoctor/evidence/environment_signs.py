r"""Signs of the platform, of containers and of notebooks that leave no doubt.

    Platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35       wsl
    File "C:\Users\anna\miniconda3\lib\site-packages\torch\nn\modules\linear.py"   windows
    File "/Users/anna/venv/lib/python3.11/site-packages/torch/..."                 macos
    - Platform: Linux-6.5.0-35-generic-x86_64-with-glibc2.35                       linux
    memory: usage 33554432kB ... /kubepods/burstable/pod1234/...                   container
    File "/tmp/ipykernel_4711/123456.py", line 3, in <module>                      notebook

A path below `/home` proves nothing: WSL has it too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import flag, stated
from oomdoctor.evidence.haystack import haystack_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

LONGEST = 4000
CONTAINER_WORDS = (
    "/.dockerenv",
    "kubepods",
    "docker run ",
    "docker exec ",
    "containerd://",
    "nvidia container runtime",
    "container image copyright",
    "/run/containerd",
    "singularity exec",
    "apptainer exec",
)
NOTEBOOK_WORDS = (
    "/ipykernel_",
    "ipykernel_launcher",
    "<ipython-input-",
    "cell in[",
    "cell in [",
    "input in [",
    "input in <cell line",
    "google.colab",
    "ipython/core/interactiveshell.py",
)


@cache
def _container_group() -> re.Pattern[str]:
    return re.compile(r"/docker[/-][0-9a-f]{12,}")


@cache
def _platforms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the patterns, surest first: WSL also calls itself Linux."""
    return (
        (
            "wsl",
            re.compile(r"microsoft-standard|-Microsoft\b|\bWSL ?2\b|/mnt/[cd]/(?:Users|users)/"),
        ),
        (
            "windows",
            re.compile(r"(?:^|[\s\"'(=])[A-Z]:\\+(?:\w|\.)[^\s:*?]*\\|Windows-1[01]-|win_amd64"),
        ),
        ("macos", re.compile(r"\bmacOS-\d|File \"/Users/\w|Darwin Kernel|macosx_\d+_\d+_arm64")),
        (
            "linux",
            re.compile(r"(?i)\bplatform\W{1,8}Linux-\d|\bLinux version \d"),
        ),
    )


@cache
def _platform_words() -> tuple[str, ...]:
    return (
        "icrosoft",
        "WSL",
        "/mnt/",
        ":\\",
        "Windows-",
        "win_amd",
        "acOS",
        "macosx",
        "/Users/",
        "Darwin",
        "inux",
    )  # fmt: skip - a flat list of literals


@cache
def _words() -> tuple[str, ...]:
    """Return all literals in lower case: a line without any of them is not looked at."""
    words = (*CONTAINER_WORDS, "/docker", *NOTEBOOK_WORDS, *_platform_words())
    return tuple(word.lower() for word in words)


def sign_facts(document: Document) -> Iterator[Fact]:
    """Yield the platform, and whether it is a container or a notebook."""
    best: tuple[int, str, LogLine, tuple[int, int]] | None = None
    container = notebook = None
    for index in haystack_of(document).lines_with(_words()):
        line = document.lines[index]
        text = line.text[:LONGEST]
        lower = text.lower()
        if container is None and _has_container_sign(lower):
            container = document.quote(line)
        if notebook is None and any(word in lower for word in NOTEBOOK_WORDS):
            notebook = document.quote(line)
        if any(word in text for word in _platform_words()):
            for order, (name, pattern) in enumerate(_platforms()):
                found = pattern.search(text) if best is None or order < best[0] else None
                if found is not None:
                    best = (order, name, line, found.span())
                    break
    if best is not None:
        yield stated("env.platform", best[1], document.quote(best[2], *best[3]))
    if container is not None:
        yield flag("env.container", container)
    if notebook is not None:
        yield flag("env.notebook", notebook)


def _has_container_sign(lower: str) -> bool:
    if any(word in lower for word in CONTAINER_WORDS):
        return True
    return "/docker" in lower and _container_group().search(lower) is not None
