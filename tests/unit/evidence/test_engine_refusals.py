"""What engines and device-sharing layers refuse with an error of their own is a failure, once."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import engine_says, host_signs, torch_oom, vllm_log
from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of
from tests.unit.evidence.tables_documents import GIB

WEIGHTS_TOO_LARGE = (
    "ValueError: Loaded weights leave no GPU memory for the KV cache under"
    " --mem-fraction-static=0.62. Raise --mem-fraction-static above 0.711 (minimum viable ="
    " 1 - available/pre = 0.7102)."
)
UNBALANCED = (
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    " pre_model_load_memory=21.5, local_gpu_memory=46.9, local_gpu_memory * 0.9=42.21"
)
STATE_BLOCKS = (
    "ValueError: max_num_seqs (512) exceeds available Mamba cache blocks (140). Each decode"
    " sequence requires one Mamba cache block, so CUDA graph capture cannot proceed."
)
NOT_A_WORD = (
    "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a"
    " single token. Try increasing `gpu_memory_utilization`."
)
POOL_FULL = "RuntimeError: Prefill out of memory. Try to lower your batch size."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WEIGHTS_TOO_LARGE, "raise-static-pool"),
        (UNBALANCED, "cards-unequal"),
        (STATE_BLOCKS, "request-exceeds-cache"),
        (NOT_A_WORD, "no-cache-blocks"),
        (POOL_FULL, "pool-full"),
    ],
)
def test_a_refusal_of_an_engine_is_a_failure_and_has_a_name(text: str, says: str) -> None:
    document = document_of(text)
    (failure,) = torch_oom.read(document).failures
    facts = {fact.key: fact.value for fact in failure.facts}
    (said,) = engine_says.read(document).facts

    assert (failure.kind, facts["oom.seen"], facts["oom.form"]) == ("gpu-oom", True, "engine")
    assert says == said.value


def test_the_refusal_states_the_fraction_that_is_too_small() -> None:
    told = {fact.key: fact.value for fact in vllm_log.read(document_of(WEIGHTS_TOO_LARGE)).facts}

    assert told == {"serve.static_fraction": 0.62}


def test_a_check_of_unequal_cards_that_only_warns_is_no_failure() -> None:
    text = UNBALANCED.replace("RuntimeError: ", "[2026-03-01 10:00:00 TP1] ")

    assert torch_oom.read(document_of(text)).failures == ()


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        (
            (
                "ValueError: Not enough host memory available. Requesting 310.40 GB but only have"
                " 96.20 GB free. Please reduce the size of the hierarchical cache."
            ),
            310.40 * GIB,
        ),
        (
            (
                "ValueError: Too large swap space. 48.00 GiB out of the 62.70 GiB total CPU memory"
                " is allocated for the swap space."
            ),
            48 * GIB,
        ),
    ],
)
def test_an_engine_that_finds_main_memory_too_small_is_a_failure_of_the_host(
    text: str, requested: float
) -> None:
    document = document_of(text)
    (failure,) = host_signs.read(document).failures
    facts = {fact.key: fact.value for fact in failure.facts}

    assert failure.kind == "host-oom"
    assert round(requested) == facts["host.requested"]
    assert torch_oom.read(document).failures == ()


def test_a_large_swap_space_that_an_engine_warns_of_is_no_failure() -> None:
    text = "WARNING config.py:9] Possibly too large swap space. 4.00 GiB out of the 7.70 GiB total"

    assert host_signs.read(document_of(text)).failures == ()


CAPS = [
    (
        (
            "[HAMI-core ERROR (pid:9 thread=139642 allocator.c:53)]: Device 1 OOM 4362076160 /"
            " 4294967296"
        ),
        {"oom.gpu_index": 1, "oom.allowed": 4294967296},
    ),
    (
        (
            "[4pdvGPU ERROR (pid:12 thread=1396 multiprocess_memory_limit.c:277)]: device OOM"
            " encountered: usage=6442450944 limit=5368709120"
        ),
        {"oom.allowed": 5368709120},
    ),
    (
        (
            "[softmig ERROR (pid:7 allocator.c:70)]: Device 0 OOM 9663676416 / 8589934592 (trying"
            " to allocate 2147483648 bytes)"
        ),
        {"oom.gpu_index": 0, "oom.allowed": 8589934592, "oom.requested": 2147483648},
    ),
    (
        (
            "[HAMI-core ERROR (pid:5 hip.c:9)]: Device 2 OOM: usage 3221225472 + alloc 1073741824 ="
            " 4294967296 > limit 4000000000"
        ),
        {"oom.gpu_index": 2, "oom.allowed": 4000000000, "oom.requested": 1073741824},
    ),
]


@pytest.mark.parametrize(("line", "figures"), CAPS)
def test_a_layer_that_shares_a_card_names_the_cap_it_holds_a_container_to(
    line: str, figures: dict[str, int]
) -> None:
    (failure,) = torch_oom.read(document_of(line)).failures
    facts = {fact.key: fact.value for fact in failure.facts}
    named = ("oom.gpu_index", "oom.allowed", "oom.requested")

    assert facts["oom.form"] == "preempted"
    assert figures == {key: facts[key] for key in named if key in facts}


def test_the_unknown_code_behind_a_cap_is_no_failure_of_its_own() -> None:
    text = (
        f"{CAPS[0][0]}\nTraceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    loss.backward()\n'
        "RuntimeError: CUDA error: unrecognized error code"
    )

    assert [failure.kind for failure in read_all(document_of(text)).failures] == ["gpu-oom"]


def test_a_refusal_by_the_cap_that_work_goes_on_behind_ended_nothing() -> None:
    text = f"{CAPS[0][0]}\nstep 41 loss 2.1\nstep 42 loss 2.0\nstep 43 loss 2.0"
    (failure,) = torch_oom.read(document_of(text)).failures

    assert True is {fact.key: fact.value for fact in failure.facts}["oom.caught"]
