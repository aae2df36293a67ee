"""Common key names that single checks of lint read: groups of answers, emptied caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs.claims import count

if TYPE_CHECKING:
    from oomdoctor.configs.claims import Convert

ROWS: tuple[tuple[str, Convert], ...] = (
    ("num_generations", count("rl.generations")),
    ("num_generations_eval", count("rl.eval_generations")),
    ("generation_batch_size", count("rl.generation_batch")),
    ("torch_empty_cache_steps", count("train.empty_cache_steps")),
)
