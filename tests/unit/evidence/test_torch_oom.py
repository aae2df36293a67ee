"""Allocator messages of every generation and back end give exactly their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import torch_oom
from oomdoctor.facts.registry import spec_of
from oomdoctor.units import parse_size
from tests.unit.evidence.documents import document_of, raw_text
from tests.unit.evidence.torch_oom_table import ABSURD, CASES, WITH_HINT

if TYPE_CHECKING:
    from oomdoctor.model.core import Failure

_FLAGS = {"oom.seen", "oom.figures_given", "oom.hint_line", "oom.absurd_size"}


def only_failure(name: str) -> Failure:
    failures = torch_oom.read(document_of(raw_text("torch_oom", f"{name}.txt"))).failures
    assert len(failures) == 1, failures
    return failures[0]


def plain(value: object) -> object:
    size = parse_size(value) if isinstance(value, str) else None
    return value if size is None else size.bytes


@pytest.mark.parametrize("name", CASES)
def test_a_message_gives_exactly_the_facts_it_states(name: str) -> None:
    expected = {key: plain(value) for key, value in CASES[name].items()}

    failure = only_failure(name)

    actual = {one.key: one.value for one in failure.facts if one.key not in _FLAGS}
    assert expected == actual
    assert failure.kind == "gpu-oom"


@pytest.mark.parametrize("name", CASES)
def test_flags_say_whether_figures_hint_and_a_possible_size_are_there(name: str) -> None:
    asked = "oom.requested" in CASES[name]
    expected = {"oom.seen": True, "oom.figures_given": asked}
    if name in WITH_HINT:
        expected["oom.hint_line"] = True
    if asked or name in ABSURD:
        expected["oom.absurd_size"] = name in ABSURD

    actual = {one.key: one.value for one in only_failure(name).facts if one.key in _FLAGS}

    assert expected == actual


@pytest.mark.parametrize("name", CASES)
def test_every_quote_stands_in_the_file_where_it_says(name: str) -> None:
    lines = raw_text("torch_oom", f"{name}.txt").split("\n")

    quotes = [quote for one in only_failure(name).facts for quote in one.quotes]

    assert quotes
    for quote in quotes:
        assert quote.end_column is not None
        assert lines[quote.line - 1][quote.column - 1 : quote.end_column - 1] == quote.text


@pytest.mark.parametrize("name", CASES)
def test_every_key_is_registered_and_choices_are_kept(name: str) -> None:
    for one in only_failure(name).facts:
        spec = spec_of(one.key)
        assert not spec.choices or one.value in spec.choices


def test_sizes_carry_half_of_their_last_digit_as_slack() -> None:
    facts = {one.key: one for one in only_failure("cuda_6_processes").facts}

    assert round(2**30 / 200) == facts["oom.requested"].slack
    assert round(2**30 / 200) + round(2**20 / 200) == facts["oom.listed_processes_bytes"].slack


def test_a_number_wrapped_over_two_lines_is_quoted_from_both() -> None:
    text = raw_text("torch_oom", "wrapped_80.txt").replace("[rank1]: ", "")
    flat = text.replace("\n", "")
    width = flat.index("1.05 GiB") + 2
    wrapped = flat[:width] + "\n" + flat[width:]

    failure = torch_oom.read(document_of(wrapped)).failures[0]

    free = next(one for one in failure.facts if one.key == "oom.free")
    assert plain("1.05 GiB") == free.value
    assert [quote.text for quote in free.quotes] == ["1.", "05 GiB"]


def test_a_short_line_is_not_joined_into_a_longer_number() -> None:
    text = (
        "CUDA out of memory.\nTried to allocate 1\n2.00 GiB. GPU 0 has a total capacity of 8.00 GiB"
    )

    failure = torch_oom.read(document_of(text)).failures[0]

    assert "oom.requested" not in {one.key for one in failure.facts}


def test_the_exact_bytes_of_the_warning_line_join_the_message_that_follows() -> None:
    failure = only_failure("cuda_7_warning")

    facts = {one.key: (one.value, one.slack) for one in failure.facts}

    assert facts["oom.requested"] == (1612709888, 0)
    assert facts["oom.free"] == (8278507520, 0)
    assert facts["oom.capacity"] == (33672921088, 0)
    assert plain("18.75 GiB") == facts["torch.allocated"][0]
    assert failure.order == 5


def test_rank_and_line_come_from_the_head_line() -> None:
    text = "epoch 1\n" + raw_text("torch_oom", "cuda_6_processes.txt")

    failure = torch_oom.read(document_of(text)).failures[0]

    assert (failure.order, failure.rank) == (2, 1)
    assert failure.line_quote.text.startswith("torch.OutOfMemoryError: CUDA out of memory.")


@pytest.mark.parametrize(
    "text",
    [
        "If you run into CUDA out of memory errors, lower the batch size.",
        "Tip: to avoid CUDA out of memory. Use gradient checkpointing.",
        '    if "CUDA out of memory" in str(error):',
        "    except torch.cuda.OutOfMemoryError:",
        '    raise RuntimeError("CUDA out of memory.")',
        "from torch import OutOfMemoryError",
        "GPU 0 has a total capacity of 23.64 GiB",
    ],
)
def test_advice_and_source_code_are_no_failures(text: str) -> None:
    assert torch_oom.read(document_of(text)).failures == ()


@pytest.mark.parametrize(
    ("text", "backend", "key", "gib"),
    [
        (
            (
                "torch.OutOfMemoryError: Tried to allocate 4.00 GiB.\n"
                "GPU 1 has a total capacity of 79.00 GiB of which 1.00 GiB is free."
            ),
            *("cuda", "oom.capacity", 79),
        ),
        (
            "[rank3]: torch.cuda.OutOfMemoryError: Tried to allocate 4.00 GiB",
            "cuda",
            "oom.requested",
            4,
        ),
        (
            "torch.OutOfMemoryError: GPU 0 has a total capacity of 79.00 GiB",
            "cuda",
            "oom.capacity",
            79,
        ),
        (
            (
                "RuntimeError: Tried to allocate 2.00 GiB (GPU 0; 23.00 GiB total capacity; 20.00"
                " GiB already allocated; 1.00 GiB free; 21.00 GiB reserved in total by PyTorch)"
            ),
            *("cuda", "torch.reserved", 21),
        ),
        ("Tried to allocate 2.00 GiB (NPU 0; 60.00 GiB total capacity;", "npu", "oom.capacity", 60),
        (
            "Tried to allocate 512.00 MiB on private pool. Use PYTORCH_MPS",
            "mps",
            "oom.requested",
            0.5,
        ),
        (
            "GPU 0 has a total capacity of 79.00 GiB of which 1.00 GiB is free.",
            "cuda",
            "oom.free",
            1,
        ),
    ],
)
def test_a_message_that_lost_its_first_words_is_known_by_what_it_says(
    text: str, backend: str, key: str, gib: float
) -> None:
    (failure,) = torch_oom.read(document_of(text)).failures

    facts = {one.key: one.value for one in failure.facts}
    assert (failure.kind, facts["oom.backend"], facts[key]) == ("gpu-oom", backend, gib * 2**30)


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("torch.OutOfMemoryError: Failed to allocate 2.00 GiB", "cuda"),
        ("torch.cuda.OutOfMemoryError: kein Platz", "cuda"),
        ("OutOfMemoryError: HIP ...", "hip"),
        ("torch.OutOfMemoryError: XPU ...", "xpu"),
        ("(Worker pid=41) torch.OutOfMemoryError: no room for the experts", "cuda"),
    ],
)
def test_the_class_is_a_failure_of_a_device_whatever_follows_it(text: str, backend: str) -> None:
    (failure,) = torch_oom.read(document_of(text)).failures

    assert (failure.kind, {one.key: one.value for one in failure.facts}["oom.backend"]) == (
        "gpu-oom",
        backend,
    )


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "OutOfMemoryError: Container killed due to memory usage",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory",
        "# torch.OutOfMemoryError: raised where the card is full",
        "WARNING: torch.OutOfMemoryError: may be raised where the card is full",
    ],
)
def test_a_class_of_the_same_name_is_no_failure_of_a_device(text: str) -> None:
    assert [one.kind for one in torch_oom.read(document_of(text)).failures] == []


@pytest.mark.parametrize(
    "text", ["torch.OutOfMemoryError: CUDA out of m", "torch.cuda.OutOfMemoryError"]
)
def test_the_class_alone_announces_a_message_that_was_cut_off(text: str) -> None:
    failure = torch_oom.read(document_of(text)).failures[0]

    facts = {one.key: one.value for one in failure.facts}
    assert (
        failure.kind,
        facts["oom.backend"],
        facts["oom.figures_given"],
    ) == ("gpu-oom", "cuda", False)
