"""How a lint finding stands: errors need evidence, versions decide what a refused key is."""

from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.reason.standing import standing_of
from oomdoctor.rules.evaluate import gate
from oomdoctor.rules.source import read_rule_text

RULE = """\
schema: 1
code: {code}
name: a-rule
title: A title
severity: error
maturity: incubating
since: 0.1.0
category: config
basis: source
source: read
{more}
when: {when}
why: because
known_problems: none
references: [https://example.org/]
tests:
  - {{name: a, expect: match}}
"""


def standing(when: str, facts: list[Fact], more: str = "") -> tuple[str, int, str | None] | None:
    source = read_rule_text(RULE.format(code="KEY3999", when=when, more=more))
    assert source.rule is not None, source.problems
    book = FactBook().add(facts)
    found = standing_of(source.rule, gate(source.rule, book), book)
    return None if found is None else (found.severity.value, len(found.assumed), found.breaks)


def said(key: str, value: bool | int | str, origin: Origin = Origin.STATED) -> Fact:
    return Fact(key=key, value=value, origin=origin, source="somebody")


def test_what_is_stated_stays_an_error() -> None:
    facts = [said("train.packing", value=True)]
    assert standing("train.packing", facts) == ("error", 0, None)


def test_a_gate_that_needs_an_assumption_is_a_warning_that_names_it() -> None:
    facts = [said("train.packing", value=True), said("train.micro_batch", 8, Origin.ASSUMED)]
    when = "{all: [train.packing, train.micro_batch >= 8]}"
    assert standing(when, facts) == ("warning", 1, None)


def test_an_assumption_that_is_not_needed_lowers_nothing() -> None:
    facts = [said("train.packing", value=True), said("train.micro_batch", 8, Origin.ASSUMED)]
    when = "{any: [train.packing, train.micro_batch >= 8]}"
    assert standing(when, facts) == ("error", 0, None)


@pytest.mark.parametrize("when", ["train.packing", "train.use_cache"])
def test_a_gate_that_does_not_hold_is_no_finding(when: str) -> None:
    assert standing(when, [said("train.packing", value=False)]) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            [said("env.transformers", "5.24.0")],
            ("error", 0, "refused from transformers 4.51.0 on; in use: 5.24.0"),
        ),
        (
            [said("env.transformers", "4.36.2")],
            ("info", 0, "works with transformers 4.36.2; refused from 4.51.0 on"),
        ),
        (
            [said("env.transformers", "4.51.0", Origin.PROBED)],
            ("error", 0, "refused from transformers 4.51.0 on; in use: 4.51.0"),
        ),
        (
            [said("env.transformers", "5.24.0", Origin.ASSUMED)],
            ("warning", 1, "refused from transformers 4.51.0 on"),
        ),
        ([said("env.transformers", "4.46.3", Origin.ASSUMED)], None),
        (
            [],
            (
                "warning",
                0,
                "refused from transformers 4.51.0 on; the version in use is not known",
            ),
        ),
    ],
)
def test_the_version_in_use_decides_what_a_refused_key_is(
    facts: list[Fact], expected: tuple[str, int, str | None] | None
) -> None:
    key = said("train.packing", value=True)
    more = 'breaks_from: {transformers: "4.51.0"}'
    assert standing("train.packing", [key, *facts], more) == expected


def test_of_what_was_derived_only_what_was_assumed_first_is_named_as_people_write_it() -> None:
    source = read_rule_text(RULE.format(code="KEY3999", when="save.checkpoint > 1 * GiB", more=""))
    assert source.rule is not None, source.problems
    root = Fact(
        key="model.params", value=6 * 10**9, origin=Origin.ASSUMED, source="size in its name"
    )
    size = Fact(
        key="save.checkpoint",
        value=84 * 10**9,
        origin=Origin.ASSUMED,
        source="parameters x 14 bytes",
        rests_on=("model.params",),
    )
    book = FactBook().add([root, size])

    found = standing_of(source.rule, gate(source.rule, book), book)

    assert found is not None
    assert found.assumed == ("model.params = 6,000,000,000 (size in its name)",)
