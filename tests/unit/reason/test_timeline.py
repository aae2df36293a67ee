"""The first failure in time; consequences; ranks that agree."""

from __future__ import annotations

from oomdoctor.reason.roll_call import fold_ranks
from oomdoctor.reason.timeline import first_failure, in_time, timeline_facts
from tests.unit.reason.builders import GIB, fact, failure


def values(facts: tuple[object, ...]) -> dict[str, object]:
    return {one.key: one.value for one in facts}  # type: ignore[attr-defined] - facts


def test_without_stamps_the_order_in_the_input_counts() -> None:
    first = first_failure([failure(order=9), failure("collective", order=3)])

    assert first is not None
    assert (first.kind, first.order) == ("gpu-oom", 9)


def test_stamps_of_one_format_decide() -> None:
    late = failure(order=1, rank=0, stamp="2024-05-01 10:00:02.5")
    early = failure(order=2, rank=3, stamp="2024-05-01 10:00:02.45")

    first = first_failure([late, early])

    assert first is not None
    assert first.rank == 3


def test_stamps_of_different_formats_are_not_compared() -> None:
    one = failure(order=1, stamp="2024-05-01 10:00:09")
    other = failure(order=2, stamp="[12.5]")

    assert in_time([one, other]) == (one, other)


def test_a_collective_timeout_after_a_memory_failure_is_a_consequence() -> None:
    timeout = failure("collective", order=1, rank=0, stamp="10:30:00")
    oom = failure(order=2, rank=5, stamp="10:00:00")

    first = first_failure([timeout, oom])

    assert first is not None
    assert first.rank == 5


def test_an_absurd_size_after_a_timeout_is_a_consequence() -> None:
    timeout = failure("collective", order=1, rank=0)
    garbage = failure(order=2, rank=1, facts=[fact("oom.absurd_size", value=True)])

    first = first_failure([timeout, garbage])
    said = values(timeline_facts([timeout, garbage], first))

    assert first is not None
    assert first.kind == "collective"
    assert said["collective.before_oom"] is True


def test_memory_messages_after_an_assertion_follow_from_it() -> None:
    failures = [failure("assert", order=1), failure(order=2)]

    first = first_failure(failures)

    assert first is not None
    assert first.kind == "assert"
    assert values(timeline_facts(failures, first))["assert.before_oom"] is True


def test_an_assertion_of_another_rank_poisons_nobody() -> None:
    failures = [failure("assert", order=5, rank=1), failure(order=2, rank=0)]

    assert "assert.before_oom" not in values(timeline_facts(failures, first_failure(failures)))


def test_a_failure_that_ended_the_run_goes_before_one_that_was_caught() -> None:
    caught = failure(order=1, facts=[fact("oom.caught", value=True)])
    fatal = failure("host-oom", order=2)

    first = first_failure([caught, fatal])

    assert first is not None
    assert first.kind == "host-oom"


def test_a_caught_failure_is_still_the_event_where_nothing_else_failed() -> None:
    caught = failure(order=1, facts=[fact("oom.caught", value=True)])

    assert first_failure([caught]) == caught


def test_an_unknown_failure_does_not_hide_a_memory_failure() -> None:
    first = first_failure([failure("other", order=1), failure(order=2)])

    assert first is not None
    assert first.kind == "gpu-oom"


def test_without_failures_there_is_no_first() -> None:
    assert first_failure([]) is None


def test_a_repetition_of_the_message_lends_its_facts() -> None:
    figures = [fact("oom.requested", GIB), fact("oom.free", 7)]
    bare = failure(order=1, facts=figures)
    traced = failure(order=8, facts=[*figures, fact("run.phase", "backward")])

    first = first_failure([bare, traced])

    assert first is not None
    assert first.order == 1
    assert values(first.facts)["run.phase"] == "backward"


def test_another_message_of_the_same_rank_lends_nothing() -> None:
    one = failure(order=1, facts=[fact("oom.requested", GIB)])
    other = failure(order=8, facts=[fact("oom.requested", 2 * GIB), fact("run.phase", "eval")])

    first = first_failure([one, other])

    assert first == one


def test_ranks_that_agree_become_one_entry() -> None:
    same = [fact("oom.requested", GIB)]
    failures = [failure(order=n, rank=n, facts=same) for n in (0, 1, 2)]
    failures.append(failure("collective", order=9, rank=3))

    folded = fold_ranks(failures)

    assert [one.ranks for one in folded] == [(0, 1, 2), (3,)]
    assert folded[0].headline == "GPU out of memory, 1.00 GiB requested"
    assert "follows from an earlier failure" in folded[1].headline


def test_events_and_failed_ranks_are_counted() -> None:
    failures = [failure(order=1, rank=0), failure(order=2, rank=0), failure(order=3, rank=1)]

    said = values(timeline_facts(failures, failures[0]))

    assert (said["oom.events"], said["oom.failed_ranks"], said["run.rank"]) == (3, 2, 0)


def test_a_rank_that_waited_for_one_out_of_memory_is_not_the_cause_whatever_the_lines_order() -> (
    None
):
    waited = failure("collective", order=1, rank=0)
    short = failure(order=7, rank=1, facts=[fact("oom.requested", 2 * GIB)])
    absurd = failure(order=7, rank=1, facts=[fact("oom.absurd_size", value=True)])

    first = first_failure([waited, short])
    garbage = first_failure([waited, absurd])

    assert first is not None
    assert garbage is not None
    assert first.kind == "gpu-oom"
    assert garbage.kind == "collective"
