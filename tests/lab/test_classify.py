"""What came of a command is told by its processes, its exit status, the kernel and its output."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.lab.classify import Ending, ending_of
from oomdoctor.lab.told import Told
from oomdoctor.model.trial import OomIdentity

CUDA_OOM = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB of "
    "which 8.00 MiB is free."
)
FRAMES = [
    ["/x/torch/_ops.py", "__call__", 1],
    ["/x/torch/nn/functional.py", "linear", 2],
    ["/home/me/train.py", "main", 3],
]


def told(*messages: dict[str, Any]) -> Told:
    heard = Told()
    for message in messages:
        heard.hear({"pid": 1, "rank": None, "world": 1, **message})
    return heard


def step(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "step", "number": number, "phase": "train step", **more}


def oom(**more: Any) -> dict[str, Any]:
    given = {"requested_bytes": 20 << 20, "exception": "OutOfMemoryError", "frames": FRAMES}
    return {"type": "oom", **given, **more}


def ending(
    heard: Told, code: int | None = 1, kills: int | None = 0, output: str = "", device: str = "cuda"
) -> Ending:
    return ending_of(heard, code=code, kills=kills, output=output, device=device)


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        (told(), "its cap was not in force: no process that imported torch could be watched"),
        (
            told({"type": "hello"}, {"type": "exit"}),
            "no process that is watched held a tensor there",
        ),
    ],
    ids=["not watched", "nothing held"],
)
def test_an_end_without_a_cap_in_force_does_not_show_a_fit(heard: Told, said: str) -> None:
    capped = ending_of(heard, code=0, kills=0, output="", device="cpu", is_capped=True)
    free = ending_of(heard, code=0, kills=0, output="", device="cpu")

    assert (capped.outcome, free.outcome) == ("crash", "fit")
    assert said in capped.reason


def test_an_end_below_a_cap_that_was_in_force_is_a_fit() -> None:
    heard = told(step(2, allocated_bytes=5), {"type": "done"})

    found = ending_of(heard, code=0, kills=0, output="", device="cpu", is_capped=True)

    assert found == Ending(outcome="fit", reason="")


def test_an_observed_refusal_is_an_oom_with_its_site_and_the_class_of_its_size() -> None:
    found = ending(told(oom()))

    assert found.outcome == "oom"
    assert found.requested_bytes == 20 << 20
    assert found.identity == OomIdentity(
        backend="cuda", exception="OutOfMemoryError", site="functional.py:linear", size_class=24
    )


def test_any_rank_that_runs_out_makes_the_trial_an_oom_even_if_the_others_are_done() -> None:
    heard = told(
        {**step(2), "pid": 1, "rank": 0, "world": 2},
        {**oom(), "pid": 2, "rank": 1, "world": 2},
        {"type": "done", "pid": 1, "rank": 0, "world": 2},
    )

    found = ending(heard)

    assert found.outcome == "oom"
    assert found.rank == 1
    assert "on rank 1 of 2" in found.reason


@pytest.mark.parametrize(
    ("after", "code"), [([step(1)], 1), ([step(1), {"type": "done"}], None), ([], 0)]
)
def test_a_program_that_handles_it_is_an_oom_all_the_same_and_that_is_said(
    after: list[dict[str, Any]], code: int | None
) -> None:
    found = ending(told(oom(), *after), code=code)

    assert found.outcome == "oom"
    assert "handled that and went on" in found.reason


@pytest.mark.parametrize(
    ("name", "text", "outcome", "backend"),
    [
        ("OutOfMemoryError", CUDA_OOM, "oom", "cuda"),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling", "oom", "cuda"),
        ("MemoryError", "", "host-oom", "host"),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory", "host-oom", "host"),
    ],
)
def test_an_uncaught_exception_that_means_no_memory_is_one(
    name: str, text: str, outcome: str, backend: str
) -> None:
    found = ending(told({"type": "error", "exception": name, "text": text, "frames": FRAMES}))

    assert found.outcome == outcome
    assert found.identity is not None
    assert found.identity.backend == backend
    assert found.identity.exception == name


def test_an_error_raised_while_handling_a_lack_of_memory_is_one_of_memory() -> None:
    error = {"type": "error", "exception": "TrainerError", "text": "failed"}

    found = ending(told({**error, "causes": ["TrainerError", "OutOfMemoryError"]}))

    assert found.outcome == "oom"


def test_every_rank_done_fits_whatever_the_launcher_then_does() -> None:
    heard = told(
        *({**step(2), "pid": pid, "rank": pid, "world": 2} for pid in (0, 1)),
        *({"type": "done", "pid": pid, "rank": pid, "world": 2} for pid in (0, 1)),
    )

    assert ending(heard, code=1).outcome == "fit"


def test_a_rank_that_is_not_done_keeps_the_others_from_a_fit() -> None:
    heard = told(
        {**step(2), "pid": 1, "rank": 0, "world": 2},
        {"type": "done", "pid": 1, "rank": 0, "world": 2},
        {**step(1), "pid": 2, "rank": 1, "world": 2},
    )

    assert ending(heard, code=1).outcome == "crash"


@pytest.mark.parametrize("code", [-9, 137])
@pytest.mark.parametrize(("kills", "outcome"), [(1, "host-oom"), (None, "host-oom"), (0, "crash")])
def test_a_kill_is_put_down_to_memory_unless_the_kernel_says_otherwise(
    code: int, kills: int | None, outcome: str
) -> None:
    assert ending(told(), code=code, kills=kills).outcome == outcome


def test_an_exit_without_an_error_fits_and_says_what_was_not_seen() -> None:
    assert "imported torch" in ending(told(), code=0).reason
    assert "without an optimizer step" in ending(told({"type": "hello"}), code=0).reason
    assert ending(told(step(1)), code=0).reason == ""


def test_the_words_of_the_output_tell_a_lack_of_memory_that_no_hook_saw() -> None:
    output = f"step 1\ntorch.OutOfMemoryError: {CUDA_OOM}\n"

    found = ending(told(), output=output)

    assert found.outcome == "oom"
    assert found.requested_bytes == 20 << 20


def test_any_other_error_is_a_crash_with_its_last_line() -> None:
    found = ending(told(), code=2, output="train.py: error: unrecognized arguments: --bs\n\n")

    assert found.outcome == "crash"
    assert found.reason == "exit code 2: train.py: error: unrecognized arguments: --bs"
