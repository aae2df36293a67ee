"""Common key names that only rules about memory read: padding, length groups, returned outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.claims import Claim, Convert, count, flag, when_true, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain

padding = word(
    "train.padding", {"max_length": "max_length", "longest": "longest", "do_not_pad": "none"}
)


def _sampling(value: Plain) -> Iterator[Claim]:
    """Read `train_sampling_strategy`, which took the place of `group_by_length`."""
    said = (scalars.as_text(value) or "").lower()
    if said in ("random", "sequential", "group_by_length", "batch_by_size"):
        yield Claim("train.group_by_length", said == "group_by_length")


def eval_rows(value: Plain) -> Iterator[Claim]:
    """Read the size of the held-out part where it is a number of rows and not a share."""
    number = scalars.as_number(value)
    if number is not None and not isinstance(value, bool) and number > 1:
        yield from count("data.eval_rows")(value)


ROWS: tuple[tuple[str, Convert], ...] = (
    ("padding", padding),
    ("pad_to_sequence_len", when_true(Claim("train.padding", "max_length"))),
    ("group_by_length", flag("train.group_by_length")),
    ("train_sampling_strategy", _sampling),
    ("val_set_size val_size", eval_rows),
    ("max_eval_samples eval_samples n_eval", count("data.eval_rows")),
    ("output_attentions", flag("model.output_attentions")),
    ("output_hidden_states", flag("model.output_hidden")),
)
