from __future__ import annotations

from oomdoctor.evidence import (
    nvidia_smi_full,
    nvidia_smi_list,
    nvidia_smi_query,
    nvidia_smi_xml,
)
from tests.unit.evidence.documents import raw_text
from tests.unit.evidence.tables_documents import GIB, MIB, read_raw, read_text, values


def test_a_query_of_cards_names_its_columns() -> None:
    said = values(read_raw(nvidia_smi_query, "nvidia_smi", "query_gpu.csv"))

    assert {key: value for key, value in said.items() if key != "gpu.cards"} == {
        "gpu.driver": "550.54.15",
        "gpu.name": "NVIDIA A100-SXM4-80GB",
        "gpu.total": 81920 * MIB,
        "gpu.used": 79854 * MIB,
        "gpu.free": 1417 * MIB,
        "gpu.used_share": 0.9748,
        "gpu.compute_mode": "default",
        "gpu.mig": False,
        "gpu.count": 2,
        "gpu.imbalance": 0.9747,
    }


def test_without_header_the_command_names_the_columns() -> None:
    said = values(read_raw(nvidia_smi_query, "nvidia_smi", "query_nounits.txt"))

    assert (
        said["gpu.used"],
        said["gpu.total"],
        said["gpu.count"],
    ) == (23901 * MIB, 24564 * MIB, 2)


def test_a_query_of_processes_is_a_process_table() -> None:
    reading = read_raw(nvidia_smi_query, "nvidia_smi", "query_apps.csv")

    said = values(reading)
    assert (
        said["gpu.process_rows"],
        said["gpu.largest_row"],
        said["gpu.not_found_rows"],
        reading.closes,
    ) == (3, 21044 * MIB, 1, ("process-table",))


def test_values_that_are_not_available_are_absent() -> None:
    text = "index, memory.used [MiB], memory.total [MiB]\n0, [N/A], 40960 MiB\n"

    said = values(read_text(nvidia_smi_query, text))

    assert said["gpu.total"] == 40960 * MIB
    assert "gpu.used" not in said


def test_used_is_derived_where_only_free_is_asked() -> None:
    text = "index, memory.free [MiB], memory.total [MiB]\n0, 960 MiB, 40960 MiB\n"

    assert values(read_text(nvidia_smi_query, text))["gpu.used"] == 40000 * MIB


def test_the_full_report_reads_the_frame_buffer_and_not_bar1() -> None:
    said = values(read_raw(nvidia_smi_full, "nvidia_smi", "full_memory.txt"))

    assert {
        "gpu.total": 81920 * MIB,
        "gpu.used": 79854 * MIB,
        "gpu.free": 1417 * MIB,
        "gpu.compute_mode": "exclusive-process",
        "gpu.architecture": "Ampere",
        "gpu.count": 2,
        "gpu.process_rows": 1,
        "gpu.largest_row": 79826 * MIB,
        "gpu.process_table_empty": False,
        "gpu.mig": False,
        "gpu.driver": "550.54.15",
        "gpu.cuda": "12.4",
    }.items() <= said.items()


def test_the_full_report_of_an_idle_card_says_so() -> None:
    text = "Attached GPUs    : 1\nGPU 00000000:07:00.0\n    Processes        : None\n"

    reading = read_text(nvidia_smi_full, text)

    assert values(reading)["gpu.process_table_empty"] is True


def test_the_full_report_of_wddm_has_processes_without_memory() -> None:
    text = (
        "Attached GPUs        : 1\nGPU 00000000:01:00.0\n"
        "    Processes\n        Process ID          : 9\n            Type    : C+G\n"
        "            Name     : python.exe\n"
        "            Used GPU Memory  : Not available in WDDM driver model\n"
    )

    said = values(read_text(nvidia_smi_full, text))

    assert (
        said["gpu.wddm"],
        said["gpu.process_rows"],
        said["gpu.programs"],
    ) == (True, 1, "python.exe")
    assert "gpu.largest_row" not in said


def test_the_full_report_gives_a_mig_device_memory_of_its_own() -> None:
    text = (
        "GPU 00000000:07:00.0\n    MIG Device\n        FB Memory Usage\n"
        "            Total       : 19968 MiB\n            Used        : 19402 MiB\n"
    )

    said = values(read_text(nvidia_smi_full, text))

    assert (said["gpu.mig_slice"], said["gpu.used"]) == (19968 * MIB, 19402 * MIB)


def test_xml_gives_card_slice_and_process() -> None:
    said = values(read_raw(nvidia_smi_xml, "nvidia_smi", "log_v12.xml"))

    assert {
        "gpu.name": "NVIDIA A100-SXM4-40GB",
        "gpu.total": 40960 * MIB,
        "gpu.mig": True,
        "gpu.mig_slice": 19968 * MIB,
        "gpu.used": 19402 * MIB,
        "gpu.free": 566 * MIB,
        "gpu.count": 1,
        "gpu.programs": 'python3 -c "a<b"',
        "gpu.largest_row": 19364 * MIB,
        "gpu.driver": "550.54.15",
        "gpu.architecture": "Ampere",
    }.items() <= said.items()


def test_xml_on_one_line_is_the_same() -> None:
    text = raw_text("nvidia_smi", "log_v12.xml")

    joined = values(read_text(nvidia_smi_xml, text.replace("\n", "")))

    assert joined == values(read_text(nvidia_smi_xml, text))


def test_xml_that_is_cut_keeps_what_is_there() -> None:
    text = raw_text("nvidia_smi", "log_v12.xml")

    said = values(read_text(nvidia_smi_xml, text[: text.index("<compute_mode>")]))

    assert (said["gpu.used"], said["gpu.total"]) == (19402 * MIB, 40960 * MIB)
    assert "gpu.process_rows" not in said


def test_xml_entities_are_never_expanded() -> None:
    bomb = (
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">'
        '<!ENTITY f SYSTEM "file:///etc/passwd">]>\n'
    )
    text = bomb + (
        "<nvidia_smi_log><gpu><product_name>&b;&f;</product_name><fb_memory_usage>"
        "<total>100 MiB</total><used>50 MiB</used></fb_memory_usage></gpu></nvidia_smi_log>"
    )

    said = values(read_text(nvidia_smi_xml, text))

    assert (said["gpu.name"], said["gpu.used"]) == ("&b;&f;", 50 * MIB)


def test_the_list_of_devices_gives_names_and_a_nominal_slice() -> None:
    said = values(read_raw(nvidia_smi_list, "nvidia_smi", "list.txt"))

    assert said == {
        "gpu.name": "NVIDIA A100-SXM4-40GB",
        "gpu.count": 2,
        "gpu.mig": True,
        "gpu.mig_slice": 20 * GIB,
    }


def test_a_monitor_of_processes_counts_the_last_round_only() -> None:
    said = values(read_raw(nvidia_smi_list, "nvidia_smi", "pmon.txt"))

    assert (
        said["gpu.process_rows"],
        said["gpu.same_program_rows"],
        said["gpu.largest_row"],
    ) == (2, 2, 15001 * MIB)


def test_a_monitor_of_devices_gives_the_used_memory() -> None:
    text = "# gpu     fb  bar1\n# Idx     MB    MB\n    0  14913     5\n    1     12     5\n"

    assert values(read_text(nvidia_smi_list, text))["gpu.used"] == 14913 * MIB
