"""The example scripts of diffusers and their kin (sd-scripts, kohya): flags or TOML.

accelerate launch train_dreambooth_lora_sdxl.py --pretrained_model_name_or_path=MODEL
  --resolution=1024 --train_batch_size=1 --gradient_checkpointing --use_8bit_adam --rank=8
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings
from oomdoctor.configs.claims import Claim, Table, both, count, given
from oomdoctor.configs.mapping import Dialect, open_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

MARKS = (
    "instance_data_dir",
    "instance_prompt",
    "train_text_encoder",
    "with_prior_preservation",
    "validation_prompt",
    "use_8bit_adam",
    "enable_xformers_memory_efficient_attention",
    "num_validation_images",
    "validation_epochs",
    "snr_gamma",
    "network_module",
    "network_dim",
    "cache_latents",
    "center_crop",
    "pretrained_vae_model_name_or_path",
)
KEYS: Table = {
    "train_batch_size": count("train.micro_batch"),
    "rank": both(count("lora.rank"), given("lora.on")),
    "resolution": meanings.image_size,
    "sample_batch_size": count("eval.batch"),
}


def matches(settings: Settings) -> bool:
    """Say whether the keys are those of image model training."""
    if settings.names("per_device_train_batch_size", "finetuning_type", "model_name_or_path"):
        return False
    own = settings.names(*MARKS)
    base = settings.names("pretrained_model_name_or_path", "resolution", "train_batch_size")
    return own >= 2 or (own >= 1 and base >= 1) or base >= 2


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Name task and kind of model."""
    if settings.rows:
        yield Claim("job.task", "diffusion"), settings.rows[0]
        yield Claim("model.kind", "diffusion"), settings.rows[0]


DIALECT = Dialect("diffusers", "diffusers", KEYS, matches, open_end, derived)
