"""Which settings are arguments of a trainer."""

from __future__ import annotations

import pytest

from oomdoctor.facts.arguments import KEY, arguments
from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin


def listed(*rows: tuple[str, str]) -> FactBook:
    """Return a book of settings, each a line with the file that it stands in."""
    quotes = tuple(
        Quote(artifact=name, line=number, text=line) for number, (line, name) in enumerate(rows, 1)
    )
    value = "\n".join(line for line, _ in rows)
    return FactBook().add([Fact(key="job.settings", value=value, quotes=quotes)])


def test_a_variable_beside_a_constructor_is_no_argument() -> None:
    book = listed(
        ("no_cuda = false", "a.py"),
        ("seq2seqtrainingarguments.warmup_ratio = 0.1", "a.py"),
        ("loraconfig.r = 8", "a.py"),
    )

    (found,) = arguments(book)

    assert (found.value, found.origin) == ("warmup_ratio = 0.1", Origin.DERIVED)
    assert [quote.line for quote in found.quotes] == [2]


def test_keys_of_a_file_and_flags_of_a_command_are_arguments() -> None:
    book = listed(
        ("warmup_ratio = 0.1", "a.yaml"),
        ("fsdp_config.activation_checkpointing = true", "a.yaml"),
        ("sftconfig.packing = true", "b.py"),
        ("packing = false", "b.py"),
        ("group_by_length = true", "c.sh"),
    )

    (found,) = arguments(book)

    assert str(found.value).split("\n") == [
        "warmup_ratio = 0.1",
        "fsdp_config.activation_checkpointing = true",
        "packing = true",
        "group_by_length = true",
    ]


def test_a_stated_list_is_kept() -> None:
    stated = listed(("a = 1", "a.yaml")).add([Fact(key=KEY, value="b = 2")])

    assert arguments(stated) == ()


@pytest.mark.parametrize(
    "book", [FactBook(), listed(("loraconfig.r = 8", "a.py"), ("sftconfig.x.y = 1", "a.py"))]
)
def test_without_settings_there_are_no_arguments(book: FactBook) -> None:
    found = arguments(book)

    assert [line for fact in found for line in str(fact.value).split("\n")] == (
        [] if not book.facts else ["loraconfig.r = 8", "sftconfig.x.y = 1"]
    )
