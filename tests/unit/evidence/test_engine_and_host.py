from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import host_tables, vllm_log
from tests.unit.evidence.tables_documents import GIB, MIB, fact_of, read_raw, read_text, values

if TYPE_CHECKING:
    from oomdoctor.model.core import Value


def gib(figure: float) -> int:
    return round(figure * GIB)


SERVING: dict[str, dict[str, Value]] = {
    "vllm_v0.txt": {
        "serve.weights": gib(14.99),
        "serve.budget": gib(21.31),
        "gpu.total": gib(23.68),
        "serve.utilization": 0.9,
        "serve.non_torch": gib(0.07),
        "serve.activation_peak": gib(8.06),
        "serve.kv_cache": -gib(1.81),
        "serve.kv_blocks": 0,
        "serve.max_len": 131072,
    },
    "vllm_v1.txt": {
        "serve.weights": gib(7.6065),
        "serve.kv_cache": gib(12.5),
        "serve.kv_tokens": 91024,
        "serve.max_len": 40960,
        "serve.graphs": gib(0.52),
        "serve.max_seqs": 1024,
    },
    "sglang.txt": {
        "serve.weights": gib(15.05),
        "serve.kv_cache": gib(49.18),
        "serve.kv_tokens": 402814,
        "gpu.free": gib(63.1),
    },
    "vllm_startup_check.txt": {
        "serve.budget": gib(71.2),
        "gpu.total": gib(79.11),
        "gpu.free": gib(60.14),
        "serve.utilization": 0.9,
    },
}


@pytest.mark.parametrize(("file", "expected"), SERVING.items(), ids=list(SERVING))
def test_an_engine_s_figures_are_read(file: str, expected: dict[str, Value]) -> None:
    assert expected == values(read_raw(vllm_log, "serving", file))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            (
                "Memory profiling results: total_gpu_memory=79.10GiB initial_memory_usage=1.00GiB"
                " peak_torch_memory=20.00GiB memory_usage_post_profile=16.00GiB"
                " non_torch_memory=0.50GiB kv_cache_size=51.00GiB gpu_memory_utilization=0.90"
            ),
            {
                "gpu.total": gib(79.10),
                "serve.initial_usage": gib(1),
                "serve.non_torch": gib(0.5),
                "serve.kv_cache": gib(51),
                "serve.utilization": 0.9,
            },
        ),
        ("# cuda blocks: 39874, # CPU blocks: 2240", {"serve.kv_blocks": 39874}),
        (
            (
                "To serve at least one request with the models's max seq len (32768), (4.00 GiB KV"
                " cache is needed, which is larger than the available KV cache memory (1.50 GiB)."
            ),
            {
                "serve.kv_needed": gib(4),
                "serve.kv_cache": gib(1.5),
                "serve.max_len": 32768,
            },
        ),
    ],
)
def test_single_lines_of_engines_are_read(line: str, expected: dict[str, Value]) -> None:
    assert expected == values(read_text(vllm_log, line))


def test_a_profile_that_a_neighbour_disturbed_gives_both_figures() -> None:
    text = "Error in memory profiling. Initial free memory 30.5 GiB, current free memory 38.25 GiB."

    said = values(read_text(vllm_log, text))

    assert said == {"serve.free_before": gib(30.5), "serve.free_after": gib(38.25)}


def test_room_for_tokens_and_the_length_asked_for_are_told_apart() -> None:
    text = (
        "ValueError: The model's max seq len (6144) is larger than the maximum number of tokens "
        "that can be stored in KV cache (5408)."
    )

    said = values(read_text(vllm_log, text))

    assert said == {"serve.max_len": 6144, "serve.kv_tokens": 5408}


def test_the_room_before_a_component_that_was_not_created_is_read() -> None:
    text = (
        "Total GPU memory (GiB): 79.25\n"
        "Free GPU memory before component creation attempt (GiB): 4.5\n"
    )

    said = values(read_text(vllm_log, text))

    assert said == {"gpu.total": gib(79.25), "serve.room": gib(4.5)}


def test_the_last_start_before_the_failure_counts() -> None:
    line = "Available KV cache memory: {} GiB\n"
    text = line.format("1.0") + line.format("2.0") + "CUDA out of memory\n" + line.format("3.0")

    assert values(read_text(vllm_log, text))["serve.kv_cache"] == 2 * GIB


HOST: dict[str, dict[str, Value]] = {
    "free_h.txt": {
        "host.ram_total": 125 * GIB,
        "host.ram_available": gib(3.9),
        "host.swap_total": 2 * GIB,
        "host.swap_free": 0,
        "host.shm_total": 64 * MIB,
        "host.shm_available": 4 * MIB,
    },
    "free_m.txt": {"host.ram_total": 257838 * MIB, "host.ram_available": 243900 * MIB},
    "meminfo.txt": {
        "host.ram_total": 263825152 << 10,
        "host.ram_available": 4120000 << 10,
        "host.memlock_limit": 64 * MIB,
        "host.open_files_limit": 1024,
    },
    "ulimit_strict.txt": {
        "host.overcommit_strict": True,
        "host.memlock_unlimited": True,
        "host.open_files_limit": 4096,
        "host.address_limit": 32 * GIB,
        "host.ram_total": 131072000 << 10,
        "host.swap_total": 8388604 << 10,
        "host.swap_free": 8388604 << 10,
    },
}


@pytest.mark.parametrize(("file", "expected"), HOST.items(), ids=list(HOST))
def test_a_table_about_the_host_is_read(file: str, expected: dict[str, Value]) -> None:
    assert expected == values(read_raw(host_tables, "host", file))


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("$ free -g\nMem:  1007  50  900  1  57  950", 1007 * GIB),
        ("Mem:  1007  50  900  1  57  950", 1007 * GIB),
        ("Mem:  263825152  50  900  1  57  950", 263825152 << 10),
        ("Mem:  2.0Ti  325Gi  922Gi  13Gi  780Gi  1.7Ti", 2048 * GIB),
        ("Mem:   62G  60G  1G  1G  1G  2G", 62 * GIB),
    ],
)
def test_free_counts_in_the_unit_of_its_command_or_its_size(text: str, total: int) -> None:
    assert total == values(read_text(host_tables, text))["host.ram_total"]


def test_the_mount_in_blocks_is_known_to_a_block() -> None:
    text = "Filesystem 1K-blocks Used Available Use% Mounted on\ntmpfs 65536 0 65536 0% /dev/shm"

    total = fact_of(read_text(host_tables, text), "host.shm_total")

    assert (total.value, total.slack) == (64 * MIB, 1 << 10)


def test_unlimited_locked_memory_is_told() -> None:
    text = "max locked memory           (kbytes, -l) unlimited"

    assert values(read_text(host_tables, text)) == {"host.memlock_unlimited": True}


@pytest.mark.parametrize("quote", ["'", "`", '"'])
def test_an_advice_on_graphs_is_no_setting(quote: str) -> None:
    text = f"To run in eager mode, set {quote}enforce_eager=True{quote} in the CLI."

    assert "serve.eager" not in values(read_text(vllm_log, text))
    assert values(read_text(vllm_log, "config: enforce_eager=True, seed=0"))["serve.eager"] is True
