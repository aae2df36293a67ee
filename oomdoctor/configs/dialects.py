"""All dialects in the order in which they are tried, and the choice among them by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import (
    accelerate,
    adapter_config,
    axolotl,
    deepspeed,
    diffusers,
    fsdp,
    hf_trainer,
    hub_config,
    lightning,
    llamafactory,
    serving,
    torchtitan,
    torchtune,
    trl,
)
from oomdoctor.configs.mapping import Dialect, open_end

if TYPE_CHECKING:
    from oomdoctor.configs.claims import Table
    from oomdoctor.configs.setting import Settings

ORDER = (
    torchtune.DIALECT,
    adapter_config.DIALECT,
    hub_config.DIALECT,
    accelerate.DIALECT,
    deepspeed.DIALECT,
    fsdp.DIALECT,
    torchtitan.DIALECT,
    lightning.DIALECT,
    axolotl.DIALECT,
    llamafactory.DIALECT,
    diffusers.DIALECT,
    trl.DIALECT,
    hf_trainer.DIALECT,
    serving.SGLANG_DIALECT,
    serving.DIALECT,
)


def _always(settings: Settings) -> bool:
    del settings
    return True


OF_FILES = (
    torchtune.DIALECT,
    adapter_config.DIALECT,
    hub_config.DIALECT,
    deepspeed.DIALECT,
    axolotl.DIALECT,
)
"""Dialects of files: flags of a script that look like them are the script's own."""


_NO_KEYS: Table = {}
NOTES = Dialect("notes", None, _NO_KEYS, _always, open_end)


def choose(settings: Settings) -> Dialect:
    """Return the first dialect whose marks the settings carry; plain notes when none does."""
    return next((dialect for dialect in ORDER if dialect.matches(settings)), NOTES)


def of_flags(settings: Settings) -> Dialect:
    """Return the first dialect that flags of a script can be of; plain notes when none fits."""
    able = (dialect for dialect in ORDER if dialect not in OF_FILES)
    return next((dialect for dialect in able if dialect.matches(settings)), NOTES)


def named(name: str) -> Dialect:
    """Return a dialect by its name; plain notes for a name that is none."""
    return next((dialect for dialect in ORDER if dialect.name == name), NOTES)
