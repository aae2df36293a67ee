"""Series of memory over steps are found, and what they count is told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.growth import read, series_of
from oomdoctor.evidence.source import source_of_text
from oomdoctor.facts.registry import spec_of
from tests.unit.evidence.documents import raw_text

GIB = 1024**3
MIB = 1024**2


def values(text: str) -> dict[str, object]:
    facts = read(clean(source_of_text(text))).facts
    return {fact.key.removeprefix("growth."): fact.value for fact in facts}


def test_a_series_with_steps_has_a_slope() -> None:
    assert values(raw_text("logs", "growth_by_step.txt")) == {
        "quantity": "allocated",
        "points": 3,
        "first": 10 * GIB,
        "last": 12 * GIB,
        "monotone": True,
        "span": 200,
        "per_step": round(2 * GIB / 200),
    }


@pytest.mark.parametrize(
    ("text", "quantity", "span", "last"),
    [
        (
            "step 0    memory_allocated 4 GB\nstep 100  memory_allocated 24 GB",
            "allocated",
            100,
            24 * GIB,
        ),
        ("[iter 1] max_mem: 3000M\n[iter 50] max_mem: 5000M", "running-max", 49, 5000 * MIB),
        (
            "step 1 driver_allocated_memory 1 GB\nstep 9 driver_allocated_memory 2 GB",
            "driver",
            8,
            2 * GIB,
        ),
        ("step 1 rss 10.0 GB\nstep 3 rss 12.0 GB", "host", 2, 12 * GIB),
        ("step 1 memory_reserved: 10 GiB\nstep 3 memory_reserved: 12 GiB", "reserved", 2, 12 * GIB),
        ("iter 1: loss 2, mem 100 MB\niter 5: loss 2, mem 200 MB", "device", 4, 200 * MIB),
    ],
)
def test_what_a_series_counts(text: str, quantity: str, span: int, last: int) -> None:
    found = values(text)

    assert (found["quantity"], found["span"], found["last"]) == (quantity, span, last)


def test_megatron_lines_give_mebibytes_after_iterations() -> None:
    found = values(raw_text("logs", "megatron.txt"))

    assert found["quantity"] == "allocated"
    assert found["span"] == 10
    assert found["per_step"] == 10 * MIB


def test_repeated_rows_of_one_card_are_a_series() -> None:
    rows = "\n".join(
        f"| 58%  70C  P2  67W / 200W |  {mib}MiB /  8111MiB | 9% Default |"
        for mib in (1906, 5202, 8108)
    )

    found = values(rows)

    assert found["quantity"] == "device"
    assert found["last"] == 8108 * MIB
    assert "per_step" not in found


def test_rows_of_several_cards_are_no_series() -> None:
    rows = "\n".join(
        f"|   {card}  Tesla V100-SXM2...  On   | 00000000:1{card}:00.0 Off | 0 |\n"
        f"| N/A  34C  P0  55W / 300W |  {mib}MiB / 32510MiB | 0% Default |"
        for card, mib in enumerate((480, 900, 1200))
    )

    assert values(rows) == {}


def test_figures_of_different_places_are_no_series() -> None:
    text = "after init: memory reserved (GB): 6.59\nafter load: memory reserved (GB): 32"

    assert values(text) == {}


def test_figures_after_the_failure_do_not_count() -> None:
    failure = "RuntimeError: CUDA out of memory."
    text = f"step 1 memory_allocated 4 GB\n{failure}\nstep 2 memory_allocated 1 GB"

    assert values(text) == {}


def test_a_second_run_starts_a_series_of_its_own() -> None:
    text = "\n".join(f"step {n} memory_allocated {n + 1} GB" for n in (1, 2, 3, 1, 2))

    found = series_of(clean(source_of_text(text)))

    assert [len(series.points) for series in found] == [3, 2]


@pytest.mark.parametrize(
    ("line", "quantity"),
    [
        ("step {step} allocated {gib}.0 GiB", "allocated"),
        ("iter {step}: allocated {mib}MiB, reserved 40000MiB", "allocated"),
        ("step {step}: torch.cuda.memory_allocated(): {size}", "allocated"),
        ("[{step}/900] cuda memory {mib} MiB", "device"),
        ("iter {step} vram {gib}.0 GiB", "device"),
        ("mem after step {step} = {gib}.000 GiB", "device"),
    ],
)
def test_figures_are_read_in_the_words_of_hand_written_loops(line: str, quantity: str) -> None:
    rows = (
        line.format(step=100 * n, gib=3 + 4 * n, mib=1024 * (3 + 4 * n), size=(3 + 4 * n) * GIB)
        for n in range(3)
    )

    found = values("\n".join(rows))

    assert (found["quantity"], found["first"], found["last"]) == (quantity, 3 * GIB, 11 * GIB)


def test_a_short_number_without_a_unit_is_no_memory() -> None:
    assert values("\n".join(f"step {n} memory_allocated {n}" for n in range(1, 4))) == {}


def test_a_series_that_falls_is_not_monotone() -> None:
    text = (
        "step 1 memory_allocated 4 GB\nstep 2 memory_allocated 6 GB\nstep 3 memory_allocated 5 GB"
    )

    assert values(text)["monotone"] is False


def logged(values_mib: list[int], *, head: str = "Test:") -> str:
    return "\n".join(
        f"{head}  [{10 * n}/900]  eta: 0:03:03    time: 0.05  data: 0.0004  max mem: {mib}"
        for n, mib in enumerate(values_mib)
    )


@pytest.mark.parametrize("head", ["Test:", "Evaluation", "Epoch: [3]"])
def test_a_peak_that_rises_evenly_over_ten_lines_is_steady(head: str) -> None:
    said = values(logged([9000 + 37 * n + n % 2 for n in range(12)], head=head))

    assert (said["quantity"], said["first"], said["steady"]) == ("running-max", 9000 * MIB, True)


@pytest.mark.parametrize(
    "peaks",
    [
        [3000, 5000, 6400, 7300, 7800, 8000, 8100, 8150, 8170, 8180, 8185],
        [3000, 3400, 3800, 4200, 4600, 5000, 5000, 5000, 5000, 5000, 5000],
        [6000, 6005, 7100, 7104, 7600, 7610, 8800, 8802, 9100, 9104, 9400],
        [6000 + n for n in range(20)],
    ],
    ids=["levels off", "stops", "leaps", "megabytes"],
)
def test_a_peak_that_levels_off_or_leaps_is_not_steady(peaks: list[int]) -> None:
    assert values(logged(peaks))["steady"] is False


def test_fewer_than_ten_points_do_not_say_whether_a_rise_is_steady() -> None:
    assert "steady" not in values(logged([9000 + 37 * n for n in range(9)]))


def test_lines_that_count_no_steps_are_not_steady() -> None:
    rows = "\n".join(f"layer {n} loaded, memory allocated {n + 1}.0 GiB" for n in range(12))

    assert values(rows)["steady"] is False


def test_the_memory_of_openmmlab_is_a_peak_in_mebibytes() -> None:
    rows = "\n".join(
        f"Epoch(train)  [1][{50 * n}/3696]  eta: 1:01:10  memory: {5600 + 40 * n}  loss: 1"
        for n in range(12)
    )

    said = values(rows)

    assert (said["quantity"], said["first"]) == ("running-max", 5600 * MIB)
    assert said["steady"] is True


def test_facts_are_registered_and_quoted() -> None:
    for fact in read(clean(source_of_text(raw_text("logs", "growth_by_step.txt")))).facts:
        assert spec_of(fact.key).key == fact.key
        assert fact.quotes


@given(
    st.lists(st.sampled_from(["step 1 mem", "allocated: 3 GB", "| 1MiB / 2MiB |", "rss 3", "\n"]))
)
def test_reading_never_raises(pieces: list[str]) -> None:
    read(clean(source_of_text(" ".join(pieces))))


def test_warnings_of_one_refusal_are_no_series() -> None:
    warning = (
        "[W1130 22:56:56.57778{} CUDACachingAllocator.cpp:3933] memory allocation failed with "
        "OOM on device 0 while trying to allocate 213909504 bytes (free: 133378868, total: 9)."
    )

    assert values("\n".join(warning.format(number) for number in range(3))) == {}
