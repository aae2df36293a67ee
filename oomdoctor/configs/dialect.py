"""What reading a config gives, whatever its dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReading:
    """The facts of one config with their places, and the text that patches are made against.

    `dialect` is one of hf_trainer, trl, axolotl, llamafactory, unsloth, deepspeed, accelerate,
    fsdp, torchtune, torchtitan, lightning, nanogpt, diffusers, vllm, sglang, python, shell,
    hub_config, adapter_config, notes.
    `closes` names the artifact kinds that this config makes complete (`train-config`, ...).
    """

    source_id: str
    dialect: str
    facts: tuple[Fact, ...]
    text: str
    path: str | None = None
    notes: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
