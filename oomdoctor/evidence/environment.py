"""Environment of a run: variables that are set, the platform, and calls that cap the allocator.

    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
    PYTORCH_ALLOC_CONF: expandable_segments:True           (YAML, printenv with =)
    docker run --gpus all -e CUDA_VISIBLE_DEVICES=0 ...
    torch.cuda.set_per_process_memory_fraction(0.5, 0)
    [2024-01-01 00:00:00.000 Control    57] Cmd:set_default_device_pinned_mem_limit 0 4606M
    Platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35

PyTorch's fixed hint (`try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid
fragmentation`) is no setting, wherever it is wrapped; see `environment_settings`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence import environment_settings as settings
from oomdoctor.evidence.amounts import first_of_each, flag, stated
from oomdoctor.evidence.environment_signs import sign_facts
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.facts import alloc_conf
from oomdoctor.model.core import Reading
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.environment_settings import Setting
    from oomdoctor.model.core import Document, Fact, LogLine

FRACTIONS = ("memory_fraction", "gpu memory share", "gpu memory fraction")
ANCHORS = (
    "_alloc_conf",
    "_visible_devices",
    "set_allocator_settings",
    "xla_python_client",
    "tf_force_gpu",
    "no_cuda_memory_caching",
    *FRACTIONS,
    "pinned_mem_limit",
    "pinned_device_mem_limit",
    "wsl",
    "/mnt/",
    ":\\",
    "macos",
    "/users/",
    "darwin",
    "platform",
    "linux",
    "docker",
    "kubepods",
    "container",
    "ipykernel",
    "ipython",
    "cell in",
    "input in",
    "google.colab",
)
DEVICE_NAMES = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
LIMIT_NAME = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
_OF_CALLS = (*FRACTIONS, "set_allocator_settings(", "pinned_mem_limit", LIMIT_NAME.lower())
TRUE_WORDS = ("1", "true", "yes", "on")
FALSE_WORDS = ("0", "false", "no", "off")


@cache
def _fraction_call() -> re.Pattern[str]:
    return re.compile(
        r"(?:set_per_process_memory_fraction\(\s*(?:fraction\s*=\s*)?"
        r"|(?:per_process(?:_gpu)?|cuda)_memory_fraction[\"']?\s*[=:]\s*"
        r"|(?i:GPU memory (?:share|fraction)(?: (?:for|per) \w+(?: \w+)?)?)\s*[=:]\s*)"
        r"(\d?\.\d+|[01])\b"
    )


@cache
def _settings_call() -> re.Pattern[str]:
    return re.compile(r"set_allocator_settings\(\s*[\"']([^\"']+)[\"']")


@cache
def _client_limit() -> re.Pattern[str]:
    return re.compile(
        r"set_(?:default_)?device_pinned_mem_limit\s+\d+\s+(\d+[KMG]?)", re.IGNORECASE
    )


def read(document: Document) -> Reading:
    """Return what is certain about variables, caps and the platform."""
    found = settings.settings(document)
    facts = [
        *_allocator_facts(found),
        *_device_facts(found),
        *_xla_facts(document, found),
        *_call_facts(document),
        *sign_facts(document),
    ]
    return Reading(facts=first_of_each(facts))


def _last(found: Sequence[Setting], *names: str) -> Setting | None:
    """Return the setting that wins: the last one."""
    return next((one for one in reversed(found) if one.name in names), None)


def _allocator_facts(found: Sequence[Setting]) -> Iterator[Fact]:
    conf = next(
        (
            one
            for one in reversed(found)
            if one.name in alloc_conf.NAMES and (not one.value or alloc_conf.is_setting(one.value))
        ),
        None,
    )
    if conf is not None:
        yield from alloc_conf.facts(conf.value, quotes=(conf.quote,))
    off = _last(found, "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
    if off is not None and off.value.lower() in TRUE_WORDS:
        yield flag("alloc.cache_disabled", off.quote)


def _device_facts(found: Sequence[Setting]) -> Iterator[Fact]:
    """Yield the visible devices; the later of two settings wins.

    Two inline settings before two commands are two runs and no conflict; what a launcher reports
    per rank is no setting at all.
    """
    own = [one for one in found if one.name in DEVICE_NAMES]
    assigned = [one for one in own if one.how != "reported"]
    chosen = (assigned or own)[-1:]
    for one in chosen:
        yield stated("env.visible_devices", one.value, one.quote)
        rivals = [
            other
            for other in assigned
            if other.name == one.name
            and other.value.replace(" ", "") != one.value.replace(" ", "")
            and "lasting" in (one.how, other.how)
        ]
        if rivals:
            quotes = [other.quote for other in rivals]
            yield flag("env.visible_devices_conflict", *quotes, one.quote)


def _xla_facts(document: Document, found: Sequence[Setting]) -> Iterator[Fact]:
    for name, key in (
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "xla.preallocate"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "tf.allow_growth"),
    ):
        one = _last(found, name)
        if one is not None and one.value.lower() in (*TRUE_WORDS, *FALSE_WORDS):
            yield flag(key, one.quote, value=one.value.lower() in TRUE_WORDS)
    share = _last(found, "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")
    if share is not None and re.fullmatch(r"\d?\.\d+|[01]", share.value):
        yield stated("xla.memory_fraction", float(share.value), share.quote)
    kind = _last(found, "XLA_PYTHON_CLIENT_ALLOCATOR")
    if kind is not None:
        yield stated("xla.allocator", kind.value, kind.quote)
    in_code = [one for one in found if one.name.startswith("XLA_") and one.in_python]
    lines = document.lines
    rows = haystack_of(document).lines_with(("import jax", "from jax")) if in_code else ()
    imported = next((row for row in rows if _imports_jax(lines[row])), None)
    if in_code and imported is not None and in_code[0].order > imported:
        line = document.lines[imported]
        yield flag("xla.set_after_import", document.quote(line), in_code[0].quote)


def _imports_jax(line: LogLine) -> bool:
    return bool(re.match(r"\s*(?:import|from) jax\b", line.text))


def _call_facts(document: Document) -> Iterator[Fact]:
    for index in haystack_of(document).lines_with(_OF_CALLS):
        line = document.lines[index]
        text = line.text
        if any(word in text.lower() for word in FRACTIONS) and not text.lstrip().startswith("#"):
            found = _fraction_call().search(text)
            if found is not None:
                quote = document.quote(line, *found.span())
                yield stated("alloc.fraction", float(found[1]), quote)
        if "set_allocator_settings(" in text and not text.lstrip().startswith("#"):
            found = _settings_call().search(text)
            if found is not None:
                yield from alloc_conf.facts(found[1], quotes=(document.quote(line),))
        if "pinned_mem_limit" in text or LIMIT_NAME in text:
            yield from _limit_facts(document, line)


def _limit_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _client_limit().search(line.text)
    if found is None:
        found = re.search(rf"{LIMIT_NAME}\W+\d+=(\d+[KMG]?)", line.text)
    if found is None:
        return
    quote = document.quote(line, *found.span())
    digits = found[1] if found[1][-1].isalpha() else f"{found[1]}B"
    size = parse_size(digits)
    yield flag("mps.client_limit", quote)
    if size is not None:
        yield stated("mps.client_limit_bytes", size.bytes, quote)
