"""A key of very many parts is looked up by its ends alone."""

from __future__ import annotations

from oomdoctor.configs import mapping, vocabulary
from oomdoctor.configs.dialects import ORDER


def test_no_key_of_a_dialect_is_deeper_than_what_is_looked_up() -> None:
    keys = [key for dialect in ORDER for key in dialect.keys] + list(vocabulary.table())

    assert max(key.count(".") + 1 for key in keys) <= mapping.DEEPEST


def test_the_end_of_a_deep_key_still_counts() -> None:
    path = (*(["section"] * 20_000), "optim", "lr")
    short = ("optim", "lr")

    for dialect in ORDER:
        assert mapping.converter(path, dialect) is mapping.converter(short, dialect)
