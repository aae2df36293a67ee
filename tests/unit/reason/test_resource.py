"""What ran out, and which answer follows."""

from __future__ import annotations

import pytest

from oomdoctor.reason.candidates import score_of
from oomdoctor.reason.rank import rank
from oomdoctor.reason.resource import (
    answer_of,
    certain_resource,
    combined_resource,
    leaning_of,
    signs_of,
)
from oomdoctor.record import replace
from oomdoctor.rules.shape import Condition
from tests.unit.reason.builders import (
    GIB,
    book,
    cause,
    fact,
    failure,
    leaf,
    line,
    rule,
    ruleset,
)

EMPTY = rank(ruleset([], []), book())


def test_an_allocator_message_with_figures_is_the_card() -> None:
    facts = book(oom__seen=True, oom__requested=GIB, oom__free=1)

    assert certain_resource(facts, failure()) == "gpu"


def test_a_bare_runtime_error_leaves_open_what_ran_out() -> None:
    assert certain_resource(book(oom__seen=True, oom__form="runtime"), failure()) == "unknown"


def test_a_request_that_fits_the_free_memory_leaves_it_open() -> None:
    facts = book(oom__seen=True, oom__requested=GIB, oom__request_fits_free=True)

    assert certain_resource(facts, failure()) == "unknown"


def test_reserved_bytes_near_the_allowed_bytes_are_a_cap() -> None:
    facts = book(
        oom__requested=GIB, oom__allowed=8 * GIB, torch__reserved=7 * GIB, oom__free=10 * GIB
    )

    assert certain_resource(facts, failure()) == "cap"


def test_a_full_card_under_a_distant_cap_is_the_card() -> None:
    facts = book(oom__requested=GIB, oom__allowed=40 * GIB, torch__reserved=7 * GIB, oom__free=1)

    assert certain_resource(facts, failure()) == "gpu"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("host-oom", "host"),
        ("shm", "host"),
        ("assert", "not_memory"),
        ("illegal-access", "not_memory"),
        ("collective", "not_memory"),
        ("size", "not_memory"),
        ("device-lost", "not_memory"),
        ("lost", "unknown"),
        ("peer", "unknown"),
        ("other", "unknown"),
    ],
)
def test_the_kind_of_failure_settles_the_resource(kind: str, expected: str) -> None:
    assert certain_resource(book(), failure(kind)) == expected


@pytest.mark.parametrize(
    "key", ["oom__absurd_size", "assert__before_oom", "collective__before_oom"]
)
def test_a_message_that_cannot_be_meant_is_no_shortage(key: str) -> None:
    assert certain_resource(book(oom__requested=GIB, **{key: True}), failure()) == "not_memory"


def test_a_settled_cause_brings_its_resource() -> None:
    sure = [line("oom.hint_line", 0.99, 0.001)]
    rules = ruleset([rule("H", "pinned", evidence=sure)], [cause("pinned", resource="host")])
    ranking = rank(rules, book(oom__seen=True, oom__hint_line=True))

    assert combined_resource("unknown", ranking) == "host"
    assert combined_resource("not_memory", ranking) == "not_memory"


def test_host_causes_that_hold_nearly_all_mass_settle_the_resource_together() -> None:
    lines = [line("oom.hint_line", 0.9, 0.02)]
    rules = ruleset(
        [rule("A", "a", evidence=lines), rule("B", "b", evidence=lines)],
        [cause("a", resource="host"), cause("b", resource="host")],
    )
    ranking = rank(rules, book(oom__seen=True, oom__hint_line=True))

    assert not ranking.conclusive
    assert combined_resource("unknown", ranking) == "host"
    assert combined_resource("gpu", ranking) == "gpu"


def test_a_bare_signal_9_leaves_open_who_sent_it() -> None:
    killed = failure("host-oom")

    assert certain_resource(book(host__killed=True), killed) == "unknown"
    assert certain_resource(book(host__killed=True, host__oom_kill=True), killed) == "host"
    assert certain_resource(book(host__killed=True, host__worker_killed=True), killed) == "host"


def test_a_bare_signal_9_hardly_leaves_room_for_the_device() -> None:
    killed, on_host = book(host__killed=True), book(host__killed=True, host__oom_kill=True)
    with_message = book(host__killed=True, oom__seen=True)
    event = failure("host-oom")

    assert leaning_of("unknown", killed, event) == "killed"
    assert leaning_of("host", on_host, event) == "host"
    assert leaning_of("unknown", with_message, event) == "unknown"
    assert leaning_of("unknown", killed, failure("other")) == "unknown"


def test_after_a_bare_kill_a_device_cause_without_a_sign_falls_behind() -> None:
    device = cause("a", prior=0.5)

    open_alone = score_of(device, 0.0, "unknown", is_open=True)

    assert score_of(device, 0.0, "killed", is_open=True) < open_alone - 3
    assert score_of(device, 0.0, "killed", is_open=False) > open_alone


def test_a_fault_that_the_event_itself_names_is_no_shortage() -> None:
    told = failure("other", facts=[fact("fault.device_index", value=True)])
    elsewhere = book(fault__device_index=True)

    assert certain_resource(elsewhere, told) == "not_memory"
    assert certain_resource(elsewhere, failure("other")) == "unknown"


def test_causes_off_the_card_settle_together_that_the_card_did_not_run_out() -> None:
    lines = [line("oom.hint_line", 0.9, 0.02)]
    rules = ruleset(
        [rule("A", "a", evidence=lines), rule("B", "b", evidence=lines)],
        [cause("a", prior=0.12, resource="host"), cause("b", resource="not_memory")],
    )
    ranking = rank(rules, book(oom__seen=True, oom__hint_line=True))

    assert not ranking.conclusive
    assert combined_resource("unknown", ranking) == "host"


@pytest.mark.parametrize(
    ("resource", "conclusive", "recognised", "expected"),
    [
        ("gpu", True, True, "cause"),
        ("cap", True, True, "cause"),
        ("gpu", False, True, "need_evidence"),
        ("unknown", True, True, "need_evidence"),
        ("host", False, True, "not_gpu_oom"),
        ("not_memory", True, True, "not_gpu_oom"),
        ("gpu", True, False, "nothing_found"),
    ],
)
def test_the_answer_follows_from_resource_and_certainty(
    resource: str, conclusive: bool, recognised: bool, expected: str
) -> None:
    assert answer_of(resource, conclusive=conclusive, recognised=recognised) == expected


def test_a_quiet_input_shows_no_sign() -> None:
    assert signs_of(book(run__step=5, gpu__used_share=0.4), EMPTY) is None


def test_a_full_card_is_a_sign() -> None:
    signs = signs_of(book(run__step=5, gpu__used_share=0.97), EMPTY)

    assert signs is not None
    assert [quote.line for quote in signs] == [2]


def test_a_steady_rise_is_a_sign_but_a_running_maximum_is_not() -> None:
    series = {"growth__per_step": 4096, "growth__points": 9, "growth__monotone": True}

    assert signs_of(book(**series), EMPTY) is not None
    assert signs_of(book(growth__quantity="running-max", **series), EMPTY) is None


def test_a_peak_that_rises_by_the_same_amount_each_time_is_a_sign() -> None:
    peak = "running-max"

    assert signs_of(book(growth__steady=True, growth__quantity=peak), EMPTY) is not None
    assert signs_of(book(growth__steady=False, growth__quantity=peak), EMPTY) is None
    assert signs_of(book(growth__steady=True, growth__quantity="host"), EMPTY) is None


def test_an_empty_process_table_beside_used_memory_is_a_sign() -> None:
    held = {"gpu__process_table_empty": True, "gpu__used": 20 * GIB}
    idle = {"gpu__process_table_empty": True, "gpu__used": GIB // 2}
    owned = {"gpu__process_table_empty": False, "gpu__used": 20 * GIB}

    assert signs_of(book(**held), EMPTY) is not None
    assert signs_of(book(**idle), EMPTY) is None
    assert signs_of(book(**owned), EMPTY) is None


def test_a_rule_that_is_sure_of_lines_in_the_log_is_a_sign() -> None:
    sure = [line("gpu.same_program_rows > 3", 0.95, 0.01)]
    rules = ruleset([rule("E", "a", "growth.points > 0", evidence=sure)], [cause("a", prior=0.5)])

    many = book(growth__points=9, gpu__same_program_rows=8)
    few = book(growth__points=9)

    assert signs_of(many, rank(rules, many)) is not None
    assert signs_of(few, rank(rules, few)) is None


def test_a_rule_that_is_sure_of_a_device_table_alone_is_no_sign() -> None:
    sure = [line("gpu.same_program_rows > 3", 0.95, 0.01)]
    either = Condition(op="any", parts=(leaf("gpu.process_rows > 0"), leaf("oom.seen")))
    gated = replace(rule("E", "a", evidence=sure), when=either)
    rules = ruleset([gated], [cause("a", prior=0.5)])
    rows = book(gpu__process_rows=8, gpu__same_program_rows=8)

    ranking = rank(rules, rows)

    assert ranking.conclusive
    assert signs_of(rows, ranking) is None
