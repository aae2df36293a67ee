"""Versions that nobody states: what a framework's release pins, else the newest that is known.

Axolotl 0.19.0 runs transformers 5.16.1 whatever the newest is; a plain script may run any.
Both are assumptions, and the source of each says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.facts.book import FactBook

# requirements of the wheels themselves: axolotl 0.19.0, llamafactory 0.9.5 (upper bounds)
PINS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "axolotl": (
        "Axolotl 0.19.0",
        {"axolotl": "0.19.0", "transformers": "5.16.1", "trl": "1.9.0", "peft": "0.20.0"},
    ),
    "llamafactory": (
        "LLaMA-Factory 0.9.5",
        {"llamafactory": "0.9.5", "transformers": "5.6.0", "trl": "0.24.0"},
    ),
}
NEWEST: Mapping[str, str] = {
    "transformers": "5.24.0",
    "trl": "1.16.0",
    "peft": "0.21.2",
    "accelerate": "1.15.0",
    "torch": "2.13.0",
    "bitsandbytes": "0.50.2",
    "deepspeed": "0.19.8",
    "unsloth": "2026.10.9",
    "torchtune": "0.6.1",
    "torchtitan": "0.3.0",
    "lightning": "2.6.6",
}
_USES: Mapping[str, tuple[str, ...]] = {
    "transformers": ("transformers", "peft", "accelerate", "torch", "bitsandbytes", "deepspeed"),
    "torchtune": ("torchtune", "torch"),
    "torchtitan": ("torchtitan", "torch"),
    "lightning": ("lightning", "torch"),
}
_ON_TRANSFORMERS = ("trl", "axolotl", "llamafactory", "unsloth", "accelerate", "deepspeed")


def pinned(book: FactBook) -> tuple[Fact, ...]:
    """Return the versions to assume for the packages that the job's framework uses."""
    framework = str(book.value("job.framework") or "")
    stated = book.value(f"env.{framework}")
    release, pins = PINS.get(framework, ("", {}))
    if stated is not None and str(stated) != pins.get(framework):
        pins = {}  # another release of the framework pins other versions
    return (*_pins(release, pins), *_newest(framework, pins))


def _pins(release: str, pins: Mapping[str, str]) -> Iterator[Fact]:
    for package, version in pins.items():
        yield _fact(package, version, f"pin of {release}")


def _newest(framework: str, pins: Mapping[str, str]) -> Iterator[Fact]:
    packages = _USES.get(framework, ())
    if framework in _ON_TRANSFORMERS or framework == "transformers":
        packages = ("trl", *_USES["transformers"])
        if framework in NEWEST:
            packages = (framework, *packages)
    for package in dict.fromkeys(packages):
        if package not in pins and package in NEWEST:
            yield _fact(package, NEWEST[package], "the newest version known; --versions states it")


def _fact(package: str, version: str, source: str) -> Fact:
    return Fact(key=f"env.{package}", value=version, origin=Origin.ASSUMED, source=source)
