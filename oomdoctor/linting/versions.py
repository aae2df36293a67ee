"""Which versions a job runs with: stated, locked beside its files, or installed.

transformers==4.46.3              --versions, requirements.txt
[[package]] name = "trl" version = "0.12.2"       uv.lock, poetry.lock
site-packages/peft-0.13.2.dist-info               the active environment
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.linting.naming import nearest
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.linting.jobs import Job

KEYS = {
    "torch": "env.torch",
    "transformers": "env.transformers",
    "trl": "env.trl",
    "peft": "env.peft",
    "accelerate": "env.accelerate",
    "bitsandbytes": "env.bitsandbytes",
    "deepspeed": "env.deepspeed",
    "vllm": "env.vllm",
    "lightning": "env.lightning",
    "pytorch-lightning": "env.lightning",
    "diffusers": "env.diffusers",
    "axolotl": "env.axolotl",
    "llamafactory": "env.llamafactory",
    "unsloth": "env.unsloth",
    "torchtune": "env.torchtune",
    "torchtitan": "env.torchtitan",
    "flash-attn": "env.flash_attn",
    "xformers": "env.xformers",
    "liger-kernel": "env.liger",
}
CUDA = "env.torch_cuda"
REQUIREMENTS = re.compile(r"requirements[\w.-]*\.(?:txt|in|lock)$")
LOCKS = ("uv.lock", "poetry.lock", "pylock.toml")
MOST_BYTES = 16 * 1024 * 1024


def parse_versions(items: Sequence[str]) -> tuple[Fact, ...]:
    """Parse `transformers==4.46.3`, several with commas, or the name of a requirements file."""
    facts: dict[str, Fact] = {}
    for item in (part.strip() for text in items for part in text.split(",")):
        if not item:
            continue
        found = tuple(_of_file(item)) if os.path.isfile(item) else _one(item)
        for fact in found:
            facts.setdefault(fact.key, fact)
    return tuple(facts.values())


def _one(item: str) -> tuple[Fact, ...]:
    name, _, version = item.replace("==", "=").partition("=")
    key = KEYS.get(_normal(name))
    if key is not None and _version().fullmatch(version.strip()):
        source = "stated with --versions"
        facts = (_fact(key, version.strip(), source, Origin.STATED),)
        cuda = _built_for(key, version.strip())
        return (*facts, _fact(CUDA, cuda, source, Origin.STATED)) if cuda else facts
    near = None if key else nearest(_normal(name), KEYS)
    meant = f"did you mean {near}? " if near else ""
    raise UsageError(
        f"--versions {item!r} is not PACKAGE==VERSION, nor the name of a file",
        hint=f"{meant}packages that matter: {', '.join(sorted(KEYS))}",
    )


@cache
def _version() -> re.Pattern[str]:
    suffixes = r"(?:[.-]?(?:a|b|c|rc|pre|post|dev)\.?\d*)*"
    return re.compile(rf"v?\d+(?:\.\d+)*{suffixes}(?:\+[\w.-]+)?", re.IGNORECASE)


def found_versions(job: Job) -> tuple[Fact, ...]:
    """Return the versions that a lock file beside the job or the active environment holds."""
    facts: dict[str, Fact] = {}
    folders = {os.path.dirname(os.path.abspath(file.path)) for file in job.files}
    for folder in dict.fromkeys([*sorted(folders), os.getcwd()]):
        for fact in _locked(folder):
            facts.setdefault(fact.key, fact)
    for fact in installed():
        facts.setdefault(fact.key, fact)
    return tuple(facts.values())


@cache
def _locked(folder: str) -> tuple[Fact, ...]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    chosen = [name for name in LOCKS if name in names]
    chosen += [name for name in names if REQUIREMENTS.match(name)]
    return tuple(fact for name in chosen for fact in _of_file(os.path.join(folder, name)))


def _of_file(path: str) -> Iterator[Fact]:
    """Yield the exact versions of a requirements or lock file, each with its line."""
    try:
        if os.path.getsize(path) > MOST_BYTES:
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = file.read().split("\n")
    except OSError:
        return
    pairs = _tables(rows) if os.path.basename(path) in LOCKS else _pins(rows)
    for number, name, version in pairs:
        key = KEYS.get(_normal(name))
        if key is not None:
            quote = Quote(artifact=path, line=number, text=rows[number - 1].strip())
            yield Fact(key=key, value=version.partition("+")[0], quotes=(quote,))
            cuda = _built_for(key, version)
            if cuda is not None:
                yield Fact(key=CUDA, value=cuda, quotes=(quote,))


def _pins(rows: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    pattern = re.compile(r"\s*([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*===?\s*v?(\d[\w.+]*)")
    for number, row in enumerate(rows, 1):
        found = pattern.match(row)
        if found is not None:
            yield number, found[1], found[2].rstrip(".")


def _tables(rows: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Read `name = ` and the `version = ` behind it, as all lock files in TOML write them."""
    name = ""
    for number, row in enumerate(rows, 1):
        key, equals, value = row.partition("=")
        if row.startswith("["):
            name = ""
        elif equals and key.strip() == "name":
            name = value.strip().strip("\"'")
        elif equals and key.strip() == "version" and name:
            yield number, name, value.strip().strip("\"'")
            name = ""


@cache
def installed() -> tuple[Fact, ...]:
    """Return the versions in the active virtual or conda environment; none where none is active."""
    home = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if not home:
        return ()
    facts: dict[str, Fact] = {}
    for name, version in _distributions(home):
        key = KEYS.get(_normal(name))
        if key is not None:
            source = f"installed in {home}"
            facts.setdefault(key, _fact(key, version, source, Origin.PROBED))
            cuda = _built_for(key, version)
            if cuda is not None:
                facts.setdefault(CUDA, _fact(CUDA, cuda, source, Origin.PROBED))
    return tuple(facts.values())


def forget() -> None:
    """Look at lock files and at the environment anew: they may have changed."""
    _locked.cache_clear()
    installed.cache_clear()


def _distributions(home: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each folder `name-version.dist-info`; nothing is imported."""
    library = os.path.join(home, "lib")
    try:
        folders = [os.path.join(library, name, "site-packages") for name in os.listdir(library)]
    except OSError:
        folders = []
    folders.append(os.path.join(home, "Lib", "site-packages"))
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                package, _, version = name.removesuffix(".dist-info").rpartition("-")
                yield package, version


def _built_for(key: str, version: str) -> str | None:
    """Return the CUDA that a wheel of PyTorch is built for: 12.8 of 2.7.1+cu128."""
    found = re.search(r"\+cu(\d{2})(\d)$", version) if key == "env.torch" else None
    return f"{found[1]}.{found[2]}" if found else None


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _fact(key: str, version: str, source: str, origin: Origin) -> Fact:
    return Fact(key=key, value=version.partition("+")[0], origin=origin, source=source)
