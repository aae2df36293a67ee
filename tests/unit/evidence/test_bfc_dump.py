from __future__ import annotations

from oomdoctor.evidence import bfc_dump
from tests.unit.evidence.tables_documents import GIB, read_raw, read_text, values


def test_a_dump_gives_limit_use_and_the_commonest_chunks() -> None:
    said = values(read_raw(bfc_dump, "tensorflow", "bfc_1_13.txt"))

    assert said == {
        "bfc.in_use": 6421000192,
        "bfc.limit": 6604357632,
        "bfc.max_in_use": 6421000192,
        "bfc.max_alloc": 822083584,
        "bfc.chunks": "9 x 411041792\n2 x 822083584",
        "bfc.largest_group": 9 * 411041792,
        "bfc.largest_group_chunks": 9,
    }


def test_a_newer_dump_also_gives_the_largest_free_block() -> None:
    said = values(read_raw(bfc_dump, "tensorflow", "bfc_2_17.txt"))

    assert said["bfc.largest_free"] == GIB
    assert said["bfc.limit"] == 20 * GIB
    assert said["bfc.in_use"] == 18253611008


def test_the_newest_dump_prints_sizes_with_units() -> None:
    said = values(read_raw(bfc_dump, "jax", "request_on_device.txt"))

    assert said["bfc.limit"] == round(17.55 * GIB)
    assert said["bfc.largest_free"] == 0


def test_the_last_dump_counts() -> None:
    first = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0GiB\nInUse:    100\n"
    second = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0GiB\nInUse:    200\n"

    assert values(read_text(bfc_dump, "Limit:   900\n" + first + second))["bfc.in_use"] == 200


def test_a_dump_of_pinned_main_memory_is_left_out() -> None:
    text = (
        "Allocator (cuda_host_bfc) ran out of memory trying to allocate 1.0GiB\n"
        "Limit:   68719476736"
    )

    assert values(read_text(bfc_dump, text)) == {}


def test_other_limits_are_no_pool() -> None:
    assert values(read_text(bfc_dump, "rate limit: 100 requests\nLimits: 12")) == {}


def test_a_pool_without_a_limit_of_its_own_has_none() -> None:
    said = values(read_text(bfc_dump, "Limit:                               0\nInUse:      1024\n"))

    assert said == {"bfc.in_use": 1024}
