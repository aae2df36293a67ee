"""In whose spelling a fix is written: that of the given configs, else of the likely framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import OomdoctorError
from oomdoctor.model.plan import Patch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook
    from oomdoctor.rules.shape import Fix

# What people start with when a config in one of these dialects has no patch of its own.
_ALIASES = {
    "trl": ("trl", "hf_trainer"),
    "unsloth": ("unsloth", "trl", "hf_trainer", "python"),
    "diffusers": ("diffusers", "python"),
    "nanogpt": ("nanogpt", "python"),
    "transformers": ("hf_trainer",),
    "python": ("python", "trl", "hf_trainer"),
    "shell": ("cli", "hf_trainer", "vllm"),
    "notes": ("hf_trainer", "python"),
    "plain": ("python",),
    "hf_trainer": ("hf_trainer", "trl"),
}
# Engines and the spellings that they take; a flag of one engine is no advice for another.
_ENGINES = {"vllm": ("vllm", "trl", "python"), "sglang": ("sglang", "python")}
_ENGINE_FLAGS = frozenset({"vllm", "sglang"})
_LIKELY = ("hf_trainer", "trl", "python", "deepspeed", "accelerate", "axolotl", "vllm")


def patches_of(
    fix: Fix, book: FactBook, readings: Sequence[ConfigReading]
) -> tuple[Patch, ...] | None:
    """Spell the change for the given configs; None where they hold all of it already."""
    if not fix.patch:
        return ()
    from oomdoctor.rules.settings import filled

    written = tuple(name for name in _dialects_of(readings, fix) if _takes(name, book))
    names = written or _likely_dialects(fix, book)
    try:
        found = {name: filled(fix.patch[name], book) for name in (*names, *_environment(fix))}
    except OomdoctorError:
        return ()
    settings = {name: keys for name, keys in found.items() if keys}
    if not readings:
        return _as_settings(settings)
    from oomdoctor.configs.patch import are_held, patch

    try:
        made = patch(readings, settings) if settings else ()
        done = not made and bool(written) and are_held(readings, settings)
    except Exception:  # noqa: BLE001 - a file that cannot be edited still gets its settings named
        return _as_settings(settings)
    return None if done else made


def is_spelled(fix: Fix, book: FactBook, readings: Sequence[ConfigReading]) -> bool:
    """Say whether the versions in use take what a fix sets in the dialect of the given configs."""
    names = _dialects_of(readings, fix) if fix.patch else ()
    if not names:
        return True
    from oomdoctor.facts.argument_versions import are_taken

    return any(are_taken(name, fix.patch[name], book) for name in names)


def _as_settings(settings: Mapping[str, Mapping[str, object]]) -> tuple[Patch, ...]:
    return tuple(Patch(dialect=name, settings=keys) for name, keys in settings.items())


def _dialects_of(readings: Sequence[ConfigReading], fix: Fix) -> tuple[str, ...]:
    """Return the spellings of a fix that the given configs take."""
    from oomdoctor.configs.names import TRL_CONFIGS

    wanted: dict[str, None] = {}
    for reading in readings:
        names = _ALIASES.get(reading.dialect, (reading.dialect,))
        calls_trl = any(f"{name}(" in reading.text for name in TRL_CONFIGS)
        if reading.dialect == "python" and not calls_trl:
            names = ("python", "hf_trainer", "trl")
        found = next((name for name in names if name in fix.patch), None)
        if found is not None:
            wanted[found] = None
    return tuple(wanted)


def _likely_dialects(fix: Fix, book: FactBook) -> tuple[str, ...]:
    """Return the spelling of the likely framework, where no config takes the fix."""
    first = str(book.value("job.framework") or "")
    names = (*_ALIASES.get(first, (first,)), *_LIKELY, *sorted(fix.patch))
    names = tuple(name for name in names if _takes(name, book))
    found = next((name for name in names if name in fix.patch and name != "env"), None)
    return () if found is None else (found,)


def _takes(name: str, book: FactBook) -> bool:
    """Say whether the engine at hand takes settings in that spelling."""
    engine = book.value("serve.engine")
    return (
        name not in _ENGINE_FLAGS or not isinstance(engine, str) or name in _ENGINES.get(engine, ())
    )


def _environment(fix: Fix) -> tuple[str, ...]:
    return ("env",) if "env" in fix.patch else ()
