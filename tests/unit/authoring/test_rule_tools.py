"""Running inline tests, mutating leaves, pages, templates and the published schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.authoring import schema, selftest
from oomdoctor.authoring.check import check_rules
from oomdoctor.authoring.given import book_of, stated_fact
from oomdoctor.authoring.lint import probes_for
from oomdoctor.authoring.mutation import mutants_of
from oomdoctor.authoring.page import SECTIONS, markdown_page
from oomdoctor.authoring.scaffold import template, write_template
from oomdoctor.errors import UsageError
from oomdoctor.model.enums import Kind
from oomdoctor.rules.bundle import read_causes
from oomdoctor.rules.language import compile_expression
from oomdoctor.rules.patterns import search
from oomdoctor.rules.shape import Condition, Rule
from oomdoctor.rules.source import leaf_condition, read_rule_file, read_rule_text

ROOT = Path(__file__).resolve().parents[3]
GOOD = ROOT / "fixtures" / "bad_rules" / "good.yaml"


def good_rule() -> Rule:
    rule = read_rule_file(GOOD).rule
    assert rule is not None
    return rule


FACTS = [
    ("oom.requested", "1.25 GiB", 1342177280, 5368709),
    ("env.torch", "2.10", "2.10", 0),
    ("eval.strategy", "no", "no", 0),
    ("train.packing", "no", False, 0),
    ("model.vocab", "151,936", 151936, 0),
    ("gpu.used_share", "85%", 0.85, 0),
]


@pytest.mark.parametrize(("key", "text", "value", "slack"), FACTS)
def test_a_fact_of_a_test_is_typed_by_its_kind(
    key: str, text: str, value: object, slack: float
) -> None:
    fact = stated_fact(key, text)

    assert (value, slack) == (fact.value, fact.slack)


def test_a_text_of_several_lines_has_a_quote_per_line() -> None:
    fact = stated_fact("trace.stack", "a\nb\n")

    assert [quote.text for quote in fact.quotes] == ["a", "b"]


def test_yaml_words_in_facts_are_taken_as_written() -> None:
    text = GOOD.read_text(encoding="utf-8").replace(
        "facts: {oom.backend: cuda}",
        "facts: {oom.backend: cuda, env.torch: 2.10, eval.strategy: no}",
    )

    (test,) = [t for t in read_rule_text(text).tests if t.expect == "unknown"]

    assert (test.facts["env.torch"], test.facts["eval.strategy"]) == ("2.10", "no")


def test_a_log_of_a_test_goes_through_the_parsers() -> None:
    pytest.importorskip("oomdoctor.configs.reader")
    text = GOOD.read_text(encoding="utf-8").replace(
        "facts: {oom.backend: cuda}",
        'log: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB."',
    )

    (test,) = [t for t in read_rule_text(text).tests if t.expect == "unknown"]
    book = book_of(test)

    assert (book.value("oom.backend"), book.value("oom.requested")) == ("cuda", 1245540516)


def test_a_gate_is_mutated_leaf_by_leaf_and_operand_by_operand() -> None:
    leaf = leaf_condition(compile_expression("oom.seen and not oom.caught", expect=Kind.BOOL))
    other = leaf_condition(compile_expression("oom.free < 1*GiB", expect=Kind.BOOL))
    condition = Condition(op="all", parts=(leaf, Condition(op="not", parts=(other,))))

    mutants = [(mutant.shown, mutant.value) for mutant in mutants_of(condition)]

    assert mutants == [
        ("oom.seen in oom.seen and not oom.caught", True),
        ("oom.seen in oom.seen and not oom.caught", False),
        ("oom.caught in oom.seen and not oom.caught", True),
        ("oom.caught in oom.seen and not oom.caught", False),
        ("oom.free < 1*GiB", True),
        ("oom.free < 1*GiB", False),
    ]


HOSTILE = [r"^(\w+\s?)+$", r"(x+x+)+y", r"(.*,){20}$", r"^(([0-9])+.)+$"]
HARMLESS = [
    r"cross_entropy|\.float\(",
    r"(?i)out of memory",
    r"^\S+ \| logits = .*$",
    r"a+b",
    r"\bfoo\b",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_that_back_tracks_without_end_is_found(pattern: str) -> None:
    assert any(search(pattern, probe).timed_out for probe in probes_for(pattern))


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_harmless_pattern_passes_the_probes(pattern: str) -> None:
    assert not any(search(pattern, probe).timed_out for probe in probes_for(pattern))


def test_a_page_has_all_sections_in_order() -> None:
    causes = read_causes(ROOT / "rules")
    rule = good_rule()

    markdown = markdown_page(rule, causes["fragmentation"])

    headings = [line[3:] for line in markdown.splitlines() if line.startswith("## ")]
    assert list(SECTIONS) == headings


def test_a_page_shows_frequencies_and_nats_of_each_line() -> None:
    page = markdown_page(good_rule(), None)

    row = next(line for line in page.splitlines() if line.startswith("| the cache is larger"))
    assert "| 0.9 | 0.1 | +2.20 nats | -2.20 nats |" in row


def test_a_page_shows_patches_and_savings() -> None:
    page = markdown_page(good_rule(), None)

    assert "  - env: `PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True`" in page.splitlines()
    assert "0.5 * torch.reserved_unallocated" in page


@pytest.mark.parametrize("code", ["ALC3901", "CFG9901"])
def test_the_template_passes_the_schema_and_its_tests(code: str) -> None:
    source = read_rule_text(template(code, "some-problem"))

    assert source.problems == ()
    assert selftest.run_tests(source).problems == []


def test_the_template_is_not_taken_for_a_finished_rule() -> None:
    source = read_rule_text(template("ALC3901", "x"), path="ALC3/ALC3901-x.yaml")

    report = check_rules([source], others=[], causes=read_causes(ROOT / "rules"))

    assert any("TODO" in problem.message for problem in report.problems)


def test_a_code_that_is_taken_is_not_given_again(tmp_path: Path) -> None:
    write_template("ALC3901", "one", tmp_path)

    with pytest.raises(UsageError, match="ALC3901 is taken"):
        write_template("ALC3901", "other", tmp_path)


@pytest.mark.parametrize(("code", "name"), [("ALC1", "x"), ("XYZ9001", "x"), ("ALC3901", "Some X")])
def test_malformed_codes_and_names_are_refused(code: str, name: str) -> None:
    with pytest.raises(UsageError):
        template(code, name)


def test_the_published_schema_is_the_one_of_the_table() -> None:
    assert schema.is_current(ROOT / "rules"), "run python -m oomdoctor.authoring.schema"


def test_checking_prints_places_and_tells_by_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ALC3" / "ALC3900-cache-in-pieces.yaml"
    path.parent.mkdir()
    path.write_text(GOOD.read_text(encoding="utf-8").replace("mps", "hip"), encoding="utf-8")

    code = selftest.main([str(path)])

    assert code == 1
    assert capsys.readouterr().out.startswith(f"{path}:")


@pytest.mark.slow
def test_a_hundred_rules_are_checked_in_one_go() -> None:
    text = GOOD.read_text(encoding="utf-8")
    text = text.replace("    expect: match\n", '    expect: match\n    probability: ">= 0"\n')
    sources = [
        read_rule_text(
            text.replace("ALC3900", f"ALC3{number:03}"), path=f"ALC3/ALC3{number:03}-x.yaml"
        )
        for number in range(100)
    ]

    report = check_rules(sources, others=[], causes=read_causes(ROOT / "rules"))

    assert report.rules == 100
    assert [one.message for one in report.problems if one.message.startswith("test ")] == []
