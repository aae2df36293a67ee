"""Common key names about machines, references, generation and compilation that only lint reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import Claim, Convert, Table, both, count, flag, ratio, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain


def bucket(value: Plain) -> Iterator[Claim]:
    """Read ZeRO's reduce bucket: a number of values, or `auto` for the trainer's own rule."""
    said = scalars.as_text(value)
    if said == "auto":
        yield Claim("zero.reduce_auto", value=True)
    number = scalars.as_number(value)
    if number is not None and number >= 1:
        yield Claim("zero.reduce_bucket", int(number))


def values(key: str) -> Convert:
    """Take a number of values such as `1e9`."""

    def convert(value: Plain) -> Iterator[Claim]:
        number = scalars.as_number(value)
        if number is not None and number >= 0:
            yield Claim(key, int(number))

    return convert


DEEPSPEED: Table = {
    "zero_optimization.reduce_bucket_size": bucket,
    "zero_optimization.overlap_comm": flag("zero.overlap"),
    "zero_optimization.stage3_max_live_parameters": values("zero.max_live"),
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": flag("zero.gathers_on_save"),
    "zero_optimization.stage3_gather_fp16_weights_on_model_save": flag("zero.gathers_on_save"),
}
ACCELERATE: Table = {
    "num_machines": count("dist.nodes"),
    "deepspeed_config.zero3_save_16bit_model": flag("zero.gathers_on_save"),
    "dynamo_config.dynamo_mode": text("compile.mode"),
}
LIGHTNING: Table = {
    "trainer.precision": both(meanings.precision, text("lightning.precision")),
    "trainer.num_nodes": count("dist.nodes"),
}
ROWS: tuple[tuple[str, Convert], ...] = (
    ("nnodes num_machines deepspeed.num_nodes", count("dist.nodes")),
    ("gradient_as_bucket_view", flag("dist.bucket_views")),
    ("grpoconfig.beta trl.beta", ratio("rl.beta")),
    ("use_vllm", flag("rl.use_vllm")),
    ("steps_per_generation", count("rl.steps_per_generation")),
    ("generation_num_beams num_beams", count("gen.beams")),
    ("torch_compile_mode compile.mode", text("compile.mode")),
)
