from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_stats, torch_summary
from tests.unit.evidence.documents import raw_text
from tests.unit.evidence.tables_documents import GIB, MIB, fact_of, read_raw, read_text, values

MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity;"
    " 14.10 GiB already allocated; 1.00 GiB free; 20.10 GiB reserved in total by PyTorch)\n"
)


def test_the_current_table_gives_all_rows() -> None:
    reading = read_raw(torch_summary, "memory_summary", "current.txt")

    assert values(reading) == {
        "torch.allocated": 14336 * MIB,
        "torch.active": 18432 * MIB,
        "torch.requested_live": 14301 * MIB,
        "torch.reserved": 20480 * MIB,
        "torch.non_releasable": 1790 * MIB,
        "torch.peak_allocated": 15360 * MIB,
        "torch.peak_reserved": 20992 * MIB,
        "torch.awaiting_free": 4096 * MIB,
        "torch.oom_count": 1,
        "torch.alloc_retries": 3,
    }
    assert reading.closes == ("memory-summary",)


def test_the_table_of_torch_1_5_has_other_units_and_no_requested_row() -> None:
    said = values(read_raw(torch_summary, "memory_summary", "torch_1_5.txt"))

    assert (
        said["torch.allocated"],
        said["torch.reserved"],
        said["torch.alloc_retries"],
    ) == (7100 * MIB, 7800 * MIB, 1)
    assert "torch.requested_live" not in said


def test_an_abbreviated_table_in_kibibytes_is_known_to_one_kibibyte() -> None:
    allocated = fact_of(
        read_raw(torch_summary, "memory_summary", "abbreviated_small.txt"), "torch.allocated"
    )

    assert (allocated.value, allocated.slack) == (262656 << 10, 1 << 10)


def test_figures_are_cut_so_the_slack_is_a_whole_unit() -> None:
    allocated = fact_of(read_raw(torch_summary, "memory_summary", "current.txt"), "torch.allocated")

    assert allocated.slack == MIB


def test_of_two_devices_the_one_that_reserves_most_speaks() -> None:
    said = values(read_raw(torch_summary, "memory_summary", "two_devices.txt"))

    assert (said["torch.allocated"], said["torch.alloc_retries"]) == (9000 * MIB, 5)


def test_of_two_tables_of_a_device_the_one_nearest_to_the_failure_speaks() -> None:
    early = raw_text("memory_summary", "torch_1_5.txt")
    late = raw_text("memory_summary", "current.txt")

    said = values(read_text(torch_summary, early + "step\n" * 60 + "OutOfMemoryError\n" + late))

    assert said["torch.allocated"] == 14336 * MIB


def test_the_figures_of_a_message_are_not_mixed_with_those_of_another_moment() -> None:
    said = values(read_text(torch_summary, MESSAGE + raw_text("memory_summary", "current.txt")))

    assert {"torch.allocated", "torch.reserved"} & set(said) == set()
    assert (said["torch.active"], said["torch.awaiting_free"]) == (18432 * MIB, 4096 * MIB)


def test_rows_without_a_title_are_a_table() -> None:
    text = "| Allocated memory      |  14336 MiB |  15360 MiB |  46592 MiB |  32256 MiB |\n"

    assert values(read_text(torch_summary, text)) == {
        "torch.allocated": 14336 * MIB,
        "torch.peak_allocated": 15360 * MIB,
    }


@pytest.mark.parametrize(
    "text",
    [
        (
            "{'allocated_bytes.all.current': 1048576, 'reserved_bytes.all.peak': 4194304,"
            " 'num_ooms': 1}"
        ),
        (
            '{"allocated_bytes.all.current": 1048576,\n "reserved_bytes.all.peak": 4194304,\n'
            ' "num_ooms": 1}'
        ),
        (
            "OrderedDict([('allocated_bytes.all.current', 1048576),"
            " ('reserved_bytes.all.peak', 4194304), ('num_ooms', 1)])"
        ),
        "allocated_bytes.all.current=1048576\nreserved_bytes.all.peak=4194304\nnum_ooms=1",
    ],
    ids=["dict", "json", "ordered-dict", "lines"],
)
def test_statistics_are_exact_in_every_notation(text: str) -> None:
    reading = read_text(torch_stats, text)

    assert values(reading) == {
        "torch.allocated": 1048576,
        "torch.peak_reserved": 4194304,
        "torch.oom_count": 1,
    }
    assert [fact.slack for fact in reading.facts] == [0, 0, 0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.cuda.memory_allocated(): 15032385536", {"torch.allocated": 15032385536}),
        ("torch.cuda.max_memory_reserved() = 15032385536", {"torch.peak_reserved": 15032385536}),
        (
            "after del: memory_allocated=0 MB memory_reserved=48606 MB",
            {"torch.allocated": 0, "torch.reserved": 48606 * MIB},
        ),
        (
            "allocated: 10.25 GB reserved: 12.5 GB, max allocated: 14.5 GB",
            {
                "torch.allocated": 10.25 * GIB,
                "torch.reserved": 12.5 * GIB,
                "torch.peak_allocated": 14.5 * GIB,
            },
        ),
        ("torch reserved=48606 MB allocated=0 MB", {"torch.reserved": 48606 * MIB,
                                                    "torch.allocated": 0}),
        ("Peak memory allocated: 20 GiB", {"torch.peak_allocated": 20 * GIB}),
        ("step 100  memory_allocated 24 GB", {"torch.allocated": 24 * GIB}),
        (
            "MA 11.5 GB         Max_MA 12.25 GB         CA 13.0 GB         Max_CA 14 GB",
            {
                "torch.allocated": 11.5 * GIB,
                "torch.peak_allocated": 12.25 * GIB,
                "torch.reserved": 13 * GIB,
                "torch.peak_reserved": 14 * GIB,
            },
        ),
        (
            "mem_get_info: total=81008 MB free=32402 MB",
            {
                "gpu.total": 81008 * MIB,
                "gpu.free": 32402 * MIB,
                "gpu.used": 48606 * MIB,
            },
        ),
        (
            "torch.cuda.mem_get_info(): (34359738368, 85899345920)",
            {
                "gpu.free": 34359738368,
                "gpu.total": 85899345920,
                "gpu.used": 51539607552,
            },
        ),
    ],
)  # fmt: skip
def test_printed_figures_are_read(line: str, expected: dict[str, float]) -> None:
    assert expected == values(read_text(torch_stats, line))


@pytest.mark.parametrize(
    "line",
    [
        "memory_allocated: 10.5",
        "memory_allocated: 24064",
        "unallocated: 2 GB",
        "CPU memory allocated: 20 GB",
        "print(torch.cuda.memory_allocated() / 1e9)",
        "        Reserved                          : 649 MiB",
        MESSAGE,
    ],
)
def test_figures_without_a_unit_and_of_other_memory_are_not_taken(line: str) -> None:
    assert values(read_text(torch_stats, line)) == {}


def test_the_last_figure_before_the_failure_counts() -> None:
    text = "allocated: 1 GB\nallocated: 2 GB\nCUDA error: out of memory\nallocated: 3 GB\n"

    assert values(read_text(torch_stats, text))["torch.allocated"] == 2 * GIB


def test_figures_of_another_moment_do_not_replace_those_of_the_message() -> None:
    said = values(read_text(torch_stats, "allocated: 1 GB, max allocated: 2 GB\n" + MESSAGE))

    assert said == {"torch.peak_allocated": 2 * GIB}
