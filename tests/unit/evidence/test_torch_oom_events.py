"""What counting the events of a whole log says, and what wins when ranks interleave."""

from __future__ import annotations

from oomdoctor.evidence import torch_oom
from tests.unit.evidence.documents import document_of

MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 7.00 GiB total "
    "capacity; {allocated} GiB already allocated; 20.00 MiB free; 6.50 GiB reserved in total by "
    "PyTorch)"
)


def facts_of(*lines: str) -> dict[str, object]:
    reading = torch_oom.read(document_of("\n".join(lines)))
    return {one.key: one.value for one in reading.facts}


def test_the_same_bytes_after_more_work_are_a_repeat() -> None:
    message = MESSAGE.format(allocated="6.10")

    facts = facts_of(">>> train()", message, "at iteration 19", ">>> train()", message)

    assert facts == {"oom.events": 2, "oom.repeats_same_allocated": True}


def test_a_message_printed_again_by_the_traceback_is_one_event() -> None:
    message = MESSAGE.format(allocated="6.10")

    facts = facts_of(message, "Traceback (most recent call last):", "  x = f(y)", message)

    assert facts == {"oom.events": 1}


def test_other_bytes_at_the_second_failure_are_no_repeat() -> None:
    facts = facts_of(MESSAGE.format(allocated="6.10"), "step 4", MESSAGE.format(allocated="6.30"))

    assert facts == {"oom.events": 2, "oom.repeats_same_allocated": False}


def test_two_refusals_of_a_process_that_holds_nothing_leave_nothing_over() -> None:
    message = MESSAGE.format(allocated="0.00").replace("0.00 GiB", "0 bytes")

    facts = facts_of(">>> x = f()", message, ">>> x = g()", message)

    assert facts == {"oom.events": 2, "oom.repeats_same_allocated": False}


def test_failed_ranks_are_counted_once_each() -> None:
    message = MESSAGE.format(allocated="6.10")

    facts = facts_of(f"[rank0]: {message}", f"[rank3]: {message}", "step 2", f"[rank3]: {message}")

    assert facts["oom.failed_ranks"] == 2


def test_interleaved_ranks_keep_their_own_figures() -> None:
    first, second = MESSAGE.format(allocated="6.10"), MESSAGE.format(allocated="5.20")
    lines = []
    for start in range(0, max(len(first), len(second)), 60):
        lines.append(f"[rank0]: {first[start : start + 60]}")
        lines.append(f"[rank1]: {second[start : start + 60]}")

    failures = torch_oom.read(document_of("\n".join(lines))).failures

    allocated = {
        failure.rank: one.value
        for failure in failures
        for one in failure.facts
        if one.key == "torch.allocated"
    }
    assert allocated == {0: round(6.1 * 2**30), 1: round(5.2 * 2**30)}


def test_two_messages_in_one_line_are_two_events() -> None:
    first, second = MESSAGE.format(allocated="6.10"), MESSAGE.format(allocated="5.20")

    failures = torch_oom.read(document_of(f'["{first}", "{second}"]')).failures

    assert [round(6.1 * 2**30), round(5.2 * 2**30)] == [
        one.value for failure in failures for one in failure.facts if one.key == "torch.allocated"
    ]


def test_a_class_whose_message_stands_in_the_next_line_is_one_event() -> None:
    text = f"torch.OutOfMemoryError:\n{MESSAGE.format(allocated='6.10').partition(' ')[2]}"

    failures = torch_oom.read(document_of(text)).failures

    given = [one.value for one in failures[0].facts if one.key == "oom.figures_given"]
    assert (len(failures), given) == (1, [True])


def test_a_notebook_heading_announces_a_message_that_was_cut_off() -> None:
    heading = "OutOfMemoryError                          Traceback (most recent call last)"
    ended = f"{heading}\n{MESSAGE.format(allocated='6.10')}"

    cut, whole = (torch_oom.read(document_of(text)).failures for text in (heading, ended))

    assert (len(cut), len(whole)) == (1, 1)


def test_processes_without_a_size_are_counted_and_weigh_nothing() -> None:
    """Inside a container the driver does not tell what a process holds."""
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90.00 MiB. GPU 0 has a total"
        " capacity of 47.50 GiB of which 30.00 MiB is free. Process 41 has 0 bytes memory in use."
        " Process 42 has 0 bytes memory in use. Including non-PyTorch memory, this process has 0"
        " bytes memory in use. Of the allocated memory 11.20 GiB is allocated by PyTorch, and 60.00"
        " MiB is reserved by PyTorch but unallocated."
    )

    (failure,) = torch_oom.read(document_of(text)).failures

    facts = {one.key: one.value for one in failure.facts}
    missing = {"oom.this_process", "oom.listed_processes_bytes", "oom.largest_process"} - set(facts)
    assert (facts["oom.listed_processes"], len(missing)) == (2, 3)


def test_a_warning_of_a_state_dict_is_caught_where_its_start_was_cut_off() -> None:
    text = (
        "k_proj.weight on rank 2. This may mean that this state_dict entry could point to invalid"
        " memory regions after returning from state_dict() call if this parameter is managed by"
        f" FSDP. Error: {MESSAGE.format(allocated='6.10').partition(' ')[2]}"
    )

    (failure,) = torch_oom.read(document_of(text)).failures

    assert [one.value for one in failure.facts if one.key == "oom.caught"] == [True]


CUT = (
    '  File "engine/cache.py", line 90, in check_room',
    '    raise ValueError("No available memory for the cache blocks. "',
    '                     "Try a larger share.")',
)


def failures_of(*lines: str) -> tuple[str, ...]:
    reading = torch_oom.read(document_of("\n".join(lines)))
    return tuple(one.kind for one in reading.failures)


def test_a_traceback_cut_before_its_message_ends_in_what_it_raises() -> None:
    assert failures_of(*CUT) == ("gpu-oom",)


def test_the_message_itself_is_heard_and_not_the_line_that_raises_it() -> None:
    reading = torch_oom.read(
        document_of(
            "\n".join((*CUT, "ValueError: No available memory for the cache blocks. Try more"))
        )
    )

    assert [one.line_quote.line for one in reading.failures] == [4]


def test_a_raise_in_printed_source_is_no_failure() -> None:
    assert failures_of("def check_room():", CUT[1], CUT[2]) == ()


def test_a_raise_of_a_traceback_about_something_else_is_no_failure() -> None:
    assert failures_of(CUT[0], '    raise ValueError("the file is empty")') == ()
