from __future__ import annotations

import pytest

from oomdoctor.evidence import nvidia_smi
from tests.unit.evidence.documents import document_of
from tests.unit.evidence.tables_documents import MIB, fact_of, read_raw, read_text, values

CARDS = {
    "driver_418_two_cards.txt": ("GeForce RTX 208...", 10989, 10874, "418.39", "10.1"),
    "driver_470_rank_contexts.txt": ("NVIDIA A100-SXM...", 40536, 40112, "470.103.01", "11.4"),
    "driver_535_empty.txt": ("NVIDIA L4", 23034, 21904, "535.129.03", "12.2"),
    "driver_580_exclusive.txt": ("NVIDIA H100 80GB HBM3", 81559, 42677, "580.65.06", "13.0"),
    "windows_551_wddm.txt": ("NVIDIA GeForce RTX 4070 ...", 12282, 11871, "551.86", "12.4"),
    "wsl_535.txt": ("NVIDIA GeForce RTX 3060", 12288, 923, "537.13", "12.2"),
}
PROCESS = "|    0   N/A  N/A   2695172      C   ./train.par                     {memory} |"
USAGE = "| N/A   34C    P0    55W / 300W |    480MiB / 32510MiB |      0%   E. Process |"


@pytest.mark.parametrize(("file", "card"), CARDS.items(), ids=list(CARDS))
def test_every_generation_of_the_table_gives_the_fullest_card(
    file: str, card: tuple[str, int, int, str, str]
) -> None:
    name, total, used, driver, cuda = card

    said = values(read_raw(nvidia_smi, "nvidia_smi", file))

    assert {
        "gpu.name": name,
        "gpu.total": total * MIB,
        "gpu.used": used * MIB,
        "gpu.free": (total - used) * MIB,
        "gpu.used_share": round(used / total, 4),
        "gpu.driver": driver,
        "gpu.cuda": cuda,
    } == {
        key: said[key]
        for key in (
            "gpu.name",
            "gpu.total",
            "gpu.used",
            "gpu.free",
            "gpu.used_share",
            "gpu.driver",
            "gpu.cuda",
        )
    }


def test_small_rows_of_the_same_program_on_card_0_are_contexts_of_other_ranks() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "driver_470_rank_contexts.txt"))

    assert (
        said["gpu.same_program_rows"],
        said["gpu.small_rows"],
        said["gpu.small_rows_bytes"],
        said["gpu.small_rows_only_gpu0"],
        said["gpu.process_rows"],
        said["gpu.largest_row"],
    ) == (3, 2, (905 + 907) * MIB, True, 3, 38289 * MIB)


def test_small_rows_elsewhere_are_not_only_on_card_0() -> None:
    row = "|    {gpu}   N/A  N/A   {pid}      C   python                  871MiB |\n"
    text = row.format(gpu=0, pid=11) + row.format(gpu=0, pid=12) + row.format(gpu=1, pid=13)

    said = values(read_text(nvidia_smi, text))

    assert (said["gpu.small_rows"], said["gpu.small_rows_only_gpu0"]) == (2, False)


def test_graphics_programs_are_no_contexts() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "driver_418_two_cards.txt"))

    assert (said["gpu.small_rows"], said["gpu.same_program_rows"]) == (0, 1)


def test_an_empty_process_table_is_stated_and_closes_the_table() -> None:
    reading = read_raw(nvidia_smi, "nvidia_smi", "driver_535_empty.txt")

    said = values(reading)
    assert (
        said["gpu.process_table_empty"],
        said["gpu.process_rows"],
        reading.closes,
    ) == (True, 0, ("process-table",))
    assert (
        "No running processes found" in fact_of(reading, "gpu.process_table_empty").quotes[0].text
    )


def test_a_process_section_without_rows_and_words_is_empty() -> None:
    table = (
        "|   0  GeForce RTX ...  Off  | 00000000:3B:00.0 Off |                  N/A |\n"
        "| 30%   41C    P8    21W / 250W |   9120MiB / 11019MiB |      0%      Default |\n"
        "| Processes:                                                       GPU Memory |\n"
        "|  GPU       PID   Type   Process name                             Usage      |\n"
        "|=============================================================================|\n"
    )
    bottom = f"+{'-' * 77}+\n"

    assert values(read_text(nvidia_smi, table + bottom)).get("gpu.process_table_empty") is True
    row = "|    0     14220      C   python                                      9001MiB |\n"
    full = values(read_text(nvidia_smi, table + row + bottom))
    assert full.get("gpu.process_table_empty") is False


def test_rows_make_the_table_not_empty() -> None:
    text = PROCESS.format(memory="26167MiB")

    assert values(read_text(nvidia_smi, text))["gpu.process_table_empty"] is False


def test_with_mig_the_fullest_slice_is_the_device() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "driver_550_mig.txt"))

    assert (
        said["gpu.mig"],
        said["gpu.mig_slice"],
        said["gpu.used"],
        said["gpu.total"],
        said["gpu.used_share"],
    ) == (True, 19968 * MIB, 19402 * MIB, 40960 * MIB, 0.9717)


def test_a_mig_row_alone_gives_the_slice_and_no_total() -> None:
    text = "|   0    1   0   0  |              45MiB / 19968MiB    | 42      0 |  3   0    2 |"

    said = values(read_text(nvidia_smi, text))

    assert (
        said["gpu.mig"],
        said["gpu.mig_slice"],
        said["gpu.used"],
    ) == (True, 19968 * MIB, 45 * MIB)
    assert "gpu.total" not in said


def test_a_disabled_mig_mode_is_told() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "driver_580_exclusive.txt"))

    assert said["gpu.mig"] is False


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        ("   Default", "default"),
        ("E. Process", "exclusive-process"),
        ("E. Thread", "exclusive-process"),
        ("Prohibited", "prohibited"),
    ],
)
def test_one_usage_row_gives_memory_and_compute_mode(word: str, mode: str) -> None:
    said = values(read_text(nvidia_smi, USAGE.replace("E. Process", word)))

    assert {
        "gpu.total": 32510 * MIB,
        "gpu.used": 480 * MIB,
        "gpu.free": 32030 * MIB,
        "gpu.used_share": 0.0148,
        "gpu.compute_mode": mode,
    } == said


def test_rows_quoted_in_a_message_are_read_with_their_lost_process() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "quoted_row.txt"))

    assert (
        said["gpu.name"],
        said["gpu.used"],
        said["gpu.not_found_rows"],
        said["gpu.process_rows"],
        said["gpu.compute_mode"],
    ) == ("Tesla V100-SXM2...", 14913 * MIB, 1, 1, "exclusive-process")


def test_of_repeated_snapshots_the_last_before_the_failure_counts() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "watch_in_log.txt"))

    assert said["gpu.used"] == 15002 * MIB


def test_a_snapshot_after_the_failure_counts_where_none_stands_before() -> None:
    text = "RuntimeError: CUDA out of memory.\n" + USAGE

    assert values(read_text(nvidia_smi, text))["gpu.used"] == 480 * MIB


def test_wddm_hides_the_memory_of_processes() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "windows_551_wddm.txt"))

    assert (said["gpu.wddm"], said["gpu.process_rows"]) == (True, 2)
    assert not {"gpu.largest_row", "gpu.small_rows"} & set(said)


def test_tool_and_driver_versions_that_differ_are_a_sign_of_wsl() -> None:
    assert values(read_raw(nvidia_smi, "nvidia_smi", "wsl_535.txt"))["gpu.wddm"] is True
    assert "gpu.wddm" not in values(read_raw(nvidia_smi, "nvidia_smi", "driver_535_empty.txt"))


def test_two_cards_are_counted_and_compared() -> None:
    said = values(read_raw(nvidia_smi, "nvidia_smi", "driver_418_two_cards.txt"))

    assert (
        said["gpu.count"],
        said["gpu.imbalance"],
        said["gpu.process_rows"],
        said["gpu.largest_row"],
    ) == (2, 0.9611, 1, 10863 * MIB)


def test_a_piece_of_a_table_does_not_count_the_cards() -> None:
    assert "gpu.count" not in values(read_raw(nvidia_smi, "nvidia_smi", "quoted_row.txt"))


def test_a_spoken_line_about_the_device_is_read() -> None:
    said = values(read_text(nvidia_smi, "nvidia-smi: 12756MiB / 16276MiB"))

    assert (said["gpu.used"], said["gpu.total"]) == (12756 * MIB, 16276 * MIB)


@pytest.mark.parametrize(
    "text",
    [
        "Downloading model: 123MiB / 456MiB",
        "|                  |      2MiB / 32767MiB  |           |               |",
        "| N/A   34C    P0    55W / 300W |  40000MiB / 32510MiB |      0%      Default |",
        "|    0            Not Supported                                             |",
    ],
    ids=["download", "bar1", "more-used-than-there-is", "not-supported"],
)
def test_other_figures_are_no_card(text: str) -> None:
    assert values(read_text(nvidia_smi, text), "gpu.u") == {}


def test_the_quote_shows_the_figures_where_they_stand() -> None:
    quote = fact_of(read_text(nvidia_smi, "epoch 3\n" + USAGE), "gpu.used").quotes[0]

    assert ("480MiB / 32510MiB", 2, USAGE.index("480") + 1) == (
        quote.text,
        quote.line,
        quote.column,
    )


def test_rounding_is_half_a_mebibyte() -> None:
    reading = read_text(nvidia_smi, USAGE)

    assert (
        fact_of(reading, "gpu.used").slack,
        fact_of(reading, "gpu.free").slack,
    ) == (MIB // 2, MIB)


def test_thousands_of_rows_without_a_head_are_no_one_snapshot() -> None:
    found = nvidia_smi.tables(document_of("| 1MiB / 2MiB |\n" * 2000))

    assert [len(table.cards) for table in found[:3]] == [nvidia_smi.MOST_CARDS] * 3
