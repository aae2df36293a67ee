"""What the allocator model does when memory is short."""

from __future__ import annotations

import pytest

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError, RejectedError, shown
from oomdoctor.memory.allocator_settings import settings_of

MIB, GIB = 1 << 20, 1 << 30


def allocator(settings: str = "", capacity: int = 1000 * MIB) -> Allocator:
    return Allocator(settings, driver=Card(capacity, first_address=0))


def test_oversize_blocks_are_kept_for_oversize_requests() -> None:
    cache = allocator("max_split_size_mb:64")
    cache.free(cache.alloc(100 * MIB))

    cache.alloc(30 * MIB)

    assert cache.reserved == 130 * MIB


@pytest.mark.parametrize(("asked", "reserved"), [(81, 100), (80, 180)])
def test_an_oversize_request_takes_no_much_larger_block(asked: int, reserved: int) -> None:
    cache = allocator("max_split_size_mb:64")
    cache.free(cache.alloc(100 * MIB))

    block = cache.alloc(asked * MIB)

    assert reserved * MIB == cache.reserved
    assert block.size == (100 if reserved == 100 else asked) * MIB


def test_how_much_larger_it_may_be_is_a_setting() -> None:
    cache = allocator("max_split_size_mb:64,max_non_split_rounding_mb:40")
    cache.free(cache.alloc(100 * MIB))

    assert cache.alloc(61 * MIB + 4 * MIB).size == 100 * MIB


def test_with_a_split_limit_only_as_much_is_given_back_as_is_needed() -> None:
    cache = allocator("max_split_size_mb:64", capacity=400 * MIB)
    blocks = [cache.alloc(size * MIB) for size in (70, 100, 150)]
    for block in blocks:
        cache.free(block)

    cache.alloc(200 * MIB)

    stats = cache.memory_stats()
    assert (stats["num_device_free"], stats["num_alloc_retries"]) == (2, 0)
    assert cache.reserved == (70 + 200) * MIB


def test_all_free_segments_go_back_before_memory_is_out() -> None:
    cache = allocator(capacity=100 * MIB)
    for block in [cache.alloc(20 * MIB) for _ in range(4)]:
        cache.free(block)

    cache.alloc(90 * MIB)

    stats = cache.memory_stats()
    assert tuple(stats[name] for name in ("num_alloc_retries", "num_ooms", "num_device_free")) == (
        1,
        0,
        4,
    )


def test_out_of_memory_tells_the_state_in_torchs_words() -> None:
    cache = allocator(capacity=100 * MIB)
    cache.alloc(3 * MIB)

    with pytest.raises(OutOfMemoryError) as caught:
        cache.alloc(90 * MIB)

    text = str(caught.value)
    assert text.startswith(
        "CUDA out of memory. Tried to allocate 90.00 MiB. GPU 0 has a total capacity of 100.00 MiB"
        " of which 80.00 MiB is free. Of the allocated memory 3.00 MiB is allocated by PyTorch, and"
        " 17.00 MiB is reserved by PyTorch but unallocated."
    )
    assert tuple(cache.memory_stats()[name] for name in ("num_ooms", "num_alloc_retries")) == (1, 1)


@pytest.mark.parametrize(
    ("size", "text"),
    [(512, "512 bytes"), (1536, "1.50 KiB"), (20 * MIB, "20.00 MiB"), (3 * GIB, "3.00 GiB")],
)
def test_sizes_are_printed_as_torch_prints_them(size: int, text: str) -> None:
    assert text == shown(size)


def test_a_fraction_is_compared_with_the_segment() -> None:
    cache = allocator("per_process_memory_fraction:0.05")

    cache.alloc(31 * MIB)
    with pytest.raises(OutOfMemoryError, match=r"50\.00 MiB allowed"):
        cache.alloc(2 * MIB)


def test_the_fraction_can_be_set_later() -> None:
    cache = allocator()
    cache.set_memory_fraction(0.01)

    with pytest.raises(OutOfMemoryError):
        cache.alloc(2 * MIB)
    with pytest.raises(ValueError, match="Allowed range"):
        cache.set_memory_fraction(1.5)


def test_a_fraction_of_one_is_no_limit_of_its_own() -> None:
    assert allocator("per_process_memory_fraction:1.0").allowed is None


def test_garbage_is_collected_the_oldest_first() -> None:
    cache = allocator("garbage_collection_threshold:0.1,per_process_memory_fraction:0.5")
    old, new = cache.alloc(30 * MIB), cache.alloc(40 * MIB)
    cache.free(old)
    for _ in range(6):
        cache.free(cache.alloc(1))
    cache.free(new)

    cache.alloc(50 * MIB)

    assert cache.reserved == (40 + 50 + 2) * MIB


def test_garbage_is_left_alone_below_the_threshold() -> None:
    cache = allocator("garbage_collection_threshold:0.9,per_process_memory_fraction:0.5")
    cache.free(cache.alloc(30 * MIB))

    cache.alloc(50 * MIB)

    assert cache.reserved == 80 * MIB


def test_garbage_is_not_collected_without_a_fraction() -> None:
    cache = allocator("garbage_collection_threshold:0.01")
    cache.free(cache.alloc(30 * MIB))

    cache.alloc(50 * MIB)

    assert cache.reserved == 80 * MIB


def test_a_request_above_the_card_can_be_rejected_at_once() -> None:
    cache = allocator("throw_on_cudamalloc_oom:True", capacity=100 * MIB)
    cache.free(cache.alloc(60 * MIB))

    with pytest.raises(RejectedError, match=r"Requested size: 80\.00 MiB"):
        cache.alloc(80 * MIB)

    stats = cache.memory_stats()
    assert (stats["num_oom_rejections"], stats["num_ooms"]) == (1, 0)
    assert cache.reserved == 60 * MIB


def test_more_than_an_exabyte_is_refused_before_all_else() -> None:
    with pytest.raises(OutOfMemoryError):
        allocator(capacity=1 << 62).alloc(1 << 60)


def test_callbacks_are_asked_before_the_card() -> None:
    cache = allocator()
    held = [cache.alloc(30 * MIB)]

    def give() -> bool:
        if not held:
            return False
        cache.free(held.pop())
        return True

    cache.callbacks.append(give)
    cache.alloc(30 * MIB)

    assert (cache.reserved, len(held)) == (30 * MIB, 0)


def test_without_caching_every_request_goes_to_the_card() -> None:
    card = Card(100 * MIB)
    cache = Allocator(settings_of({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}), driver=card)

    first = cache.alloc(3 * MIB)
    used = card.used
    cache.free(first)

    assert (used, card.used, cache.memory_stats()["allocation.all.allocated"]) == (4 * MIB, 0, 0)
    with pytest.raises(OutOfMemoryError):
        cache.alloc(200 * MIB)
