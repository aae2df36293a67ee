"""The whole answer: its kind, its words, and what is left out where nothing failed."""

from __future__ import annotations

from oomdoctor.model.core import Quote
from oomdoctor.reason.conclude import conclude
from tests.unit.reason.builders import GIB, book, cause, failure, fix, line, rule, ruleset

FOREIGN = rule(
    "EXT5001",
    "other-process",
    says="Other processes hold {gpu.foreign}.",
    evidence=[line("gpu.foreign > 2*GiB", 0.97, 0.02, label="others hold gigabytes")],
    fixes=[fix("stop-them")],
)
LARGE = rule("ACT2001", "large-batch", fixes=[fix("smaller-batch")])
RULES = ruleset(
    [FOREIGN, LARGE, rule("CFG9001", None, "data.workers > 8")],
    [cause("other-process", prior=0.2), cause("large-batch", prior=0.2)],
)
MESSAGE = {"oom__seen": True, "oom__requested": GIB, "oom__free": 1 << 20}


def test_a_settled_cause_is_named_in_its_own_words() -> None:
    said = conclude(book(gpu__foreign=8 * GIB, **MESSAGE), ruleset=RULES, failures=[failure()])

    assert (said.answer, said.resource, said.conclusive) == ("cause", "gpu", True)
    assert said.headline == "Other processes hold 8.00 GiB."
    assert [one.fix_id for one in said.prescriptions] == ["stop-them"]


def test_an_open_question_asks_for_a_measurement() -> None:
    said = conclude(book(**MESSAGE), ruleset=RULES, failures=[failure()])

    assert (said.answer, said.conclusive) == ("need_evidence", False)
    assert said.next_measurements[0].fact == "gpu.foreign"


def test_a_quiet_input_gives_no_cause_but_keeps_side_findings() -> None:
    said = conclude(book(run__step=4, data__workers=64), ruleset=RULES)

    assert (said.answer, said.resource, said.causes) == ("nothing_found", "unknown", ())
    assert said.other_probability == 1.0
    assert [one.code for one in said.side_findings] == ["CFG9001"]
    assert said.next_measurements[0].command


def test_a_full_card_alone_is_a_sign_that_needs_evidence() -> None:
    said = conclude(book(gpu__used_share=0.98), ruleset=RULES)

    assert said.answer == "need_evidence"
    assert [quote.line for quote in said.signs] == [1]


def test_a_failure_of_another_kind_is_no_gpu_oom() -> None:
    said = conclude(book(run__step=4), ruleset=RULES, failures=[failure("other")])

    assert (said.answer, said.resource, said.causes) == ("not_gpu_oom", "not_memory", ())


def test_a_library_that_cannot_start_may_hide_a_full_card() -> None:
    said = conclude(book(oom__form="cudnn-handle"), ruleset=RULES, failures=[failure("other")])

    assert said.answer == "need_evidence"
    assert said.causes


def test_host_memory_is_named_even_while_the_reason_stays_open() -> None:
    said = conclude(book(), ruleset=RULES, failures=[failure("host-oom")])

    assert (said.answer, said.resource, said.conclusive) == ("not_gpu_oom", "host", False)


def test_a_finding_that_quotes_nothing_shows_the_failing_line() -> None:
    rules = ruleset([rule("A", "a", "oom.caught")], [cause("a")])

    said = conclude(book(), ruleset=rules, failures=[failure(order=7)])

    assert said.causes[0].quotes == (Quote(artifact="crash.log", line=7, text="gpu-oom at 7"),)


def test_notes_are_kept_once() -> None:
    said = conclude(book(), ruleset=RULES, notes=["a", "b", "a"])

    assert said.notes == ("a", "b")


def test_the_leading_cause_also_quotes_the_lines_that_repeat_its_failure() -> None:
    rules = ruleset([rule("A", "a", "oom.caught")], [cause("a")])
    failures = [failure(order=7), failure(order=9, rank=1), failure("collective", order=11)]

    said = conclude(book(), ruleset=rules, failures=failures)

    assert [quote.line for quote in said.causes[0].quotes] == [7, 9, 11]


def test_a_cause_that_rests_on_other_lines_quotes_no_repetition() -> None:
    rules = ruleset([rule("A", "a", "oom.caught")], [cause("a")])

    said = conclude(
        book(oom__caught=True),
        ruleset=rules,
        failures=[failure(order=7), failure(order=9, rank=1)],
    )

    assert [quote.line for quote in said.causes[0].quotes] == [1]
