"""Batches on the host: what collators hand to models, with numbers that nobody reads.

Token ids run through a vocabulary above its special tokens, so that none of them is padding or the
end of a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job

    Batch = dict[str, torch.Tensor]

IGNORED = -100
_SPECIAL = 5
_WORDS = 900
_SHORTER = 8
_MASKED = 7  # every seventh token is guessed: 15 %
_SIDE = 224
_CLASSES = 1000
_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a config.json that describes the language model."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) and "vocab_size" in inner else config


def tokens(job: Job, rows: int, length: int) -> torch.Tensor:
    """Return ids of tokens, none of them special where the vocabulary is large enough."""
    known = int(text_config(job.model.config).get("vocab_size", _WORDS + _SPECIAL))
    words = max(1, min(_WORDS, known - _SPECIAL))
    return torch.arange(rows * length).reshape(rows, length) % words + min(_SPECIAL, known - 1)


def mask(job: Job, rows: int, length: int) -> torch.Tensor:
    """Return the mask of a batch: with padding, the first row is full and the others end earlier.

    A single row has one token of padding.
    """
    made = torch.ones(rows, length, dtype=torch.long)
    if job.padded:
        made[1:, -max(1, length // _SHORTER) :] = 0
        made[0, -1] = 0 if rows == 1 else 1
    return made


def text(job: Job, rows: int, length: int) -> Batch:
    """Return rows of text."""
    return {"input_ids": tokens(job, rows, length), "attention_mask": mask(job, rows, length)}


def classified(job: Job, rows: int, length: int) -> Batch:
    """Return rows of text, each of one class; a single label is a number to come near to."""
    return {**text(job, rows, length), "labels": _classes(job, rows)}


def classified_tokens(job: Job, rows: int, length: int) -> Batch:
    """Return rows of text, each token of one class."""
    made = text(job, rows, length)
    labels = torch.arange(rows * length).reshape(rows, length) % (job.labels or 2)
    return {**made, "labels": labels.masked_fill(made["attention_mask"] == 0, IGNORED)}


def masked(job: Job, rows: int, length: int) -> Batch:
    """Return rows of which some tokens are to be guessed."""
    made = text(job, rows, length)
    guessed = (torch.arange(length) % _MASKED == 0).expand(rows, -1)
    guessed = guessed & (made["attention_mask"] == 1)
    return {**made, "labels": made["input_ids"].masked_fill(~guessed, IGNORED)}


def translated(job: Job, rows: int, length: int) -> Batch:
    """Return rows and what they become."""
    return {**text(job, rows, length), "labels": tokens(job, rows, job.target_len or length)}


def pictures(job: Job, rows: int, length: int) -> Batch:
    """Return pictures and their classes."""
    del length
    return {**pixels(job, rows), "labels": _classes(job, rows)}


def pixels(job: Job, rows: int) -> Batch:
    """Return pictures in fp32, as processors make them; a model alone in 16 bits needs these."""
    side = job.image_size or side_of(job.model.config)
    config: Mapping[str, Any] = job.model.config
    channels = int(config.get("num_channels", 3))
    dtype = torch.float32 if job.amp else _HALF.get(job.dtype, torch.float32)
    return {"pixel_values": torch.zeros(rows, channels, side, side, dtype=dtype)}


def side_of(config: Mapping[str, Any]) -> int:
    """Return the pixels of a side that a config names."""
    side = config.get("image_size", _SIDE)
    return int(max(side) if isinstance(side, (list, tuple)) else side)


def _classes(job: Job, rows: int) -> torch.Tensor:
    classes = job.labels or _CLASSES
    labels = torch.arange(rows) % classes
    return labels.float() if classes == 1 else labels
