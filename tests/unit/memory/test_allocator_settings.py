"""Settings are read, and refused, as torch 2.13 does; each text was tried on it."""

from __future__ import annotations

import pytest

from oomdoctor.errors import InputError
from oomdoctor.memory.allocator_settings import UNLIMITED, read_settings, settings_of

MIB = 1 << 20
ENDS = "Index out of bounds in ConfigTokenizer"
DIVISIONS = "For roundups, the divisions has to be power of 2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_split_size_mb:10", "option max_split_size_mb too small, must be >= 20"),
        (
            "max_split_size_mb:40,large_segment_size_mb:64",
            "option max_split_size_mb too small, must be >= 64",
        ),
        ("max_split_size_mb:abc", "stoull"),
        ("max_split_size_mb:99999999999999999999", "stoull"),
        ("max_split_size_mb", ENDS),
        ("max_split_size_mb:", ENDS),
        ("max_split_size_mb=64", "Unrecognized key 'max_split_size_mb=64' in Accelerator"),
        ("max_split_size_mb:0x40", "too small"),
        ("max_non_split_rounding_mb:10", "max_non_split_rounding_mb too small, must be >= 20"),
        ("large_segment_size_mb:10", "option large_segment_size_mb must be > 10 MB"),
        ("garbage_collection_threshold:0", "garbage_collect_threshold is invalid"),
        ("garbage_collection_threshold:1", "garbage_collect_threshold is invalid"),
        ("garbage_collection_threshold:x", "stod"),
        ("roundup_power2_divisions:3", DIVISIONS),
        ("roundup_power2_divisions:0", DIVISIONS),
        ("roundup_power2_divisions:[256:3]", f"{DIVISIONS} or 0 to disable roundup"),
        ("roundup_power2_divisions:[300:4]", "the intervals have to be power of 2"),
        ("roundup_power2_divisions:[256:1", ENDS),
        ("expandable_segments:true", "Expected 'True' or 'False' at index 2 in ConfigTokenizer"),
        ("expandable_segments:True;max_split_size_mb:64", "got 'True;max_split_size_mb'"),
        ("backend:other", "options are native and cudaMallocAsync"),
        ("release_lock_on_cudamalloc:yes", "but got 'yes'"),
        ("per_process_memory_fraction:1.5", "set it in [0.0, 1.0]"),
        ("throw_on_cudamalloc_oom:x", "but got 'x'"),
        ("pinned_num_register_threads:3", "has to be power of 2, got 3"),
        ("pinned_num_register_threads:256", "less than or equal to 128, got 256"),
        ("pinned_reserve_segment_size_mb:0", "has to be greater than 0"),
        ("unknown:1", "Unrecognized key 'unknown' in Accelerator allocator config."),
        (",expandable_segments:True", "Unrecognized key ','"),
        ("per_process_memory_fraction:9,unknown:1", "Unrecognized key 'unknown'"),
    ],
)
def test_what_torch_refuses_is_refused_in_its_words(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(text)

    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("", "max_split", UNLIMITED),
        ("max_split_size_mb:64", "max_split", 64 * MIB),
        ("max_split_size_mb:64abc", "max_split", 64 * MIB),
        ("max_split_size_mb:-1", "max_split", UNLIMITED - MIB + 1),
        ("max_split_size_mb:64,max_split_size_mb:128", "max_split", 128 * MIB),
        ("max_non_split_rounding_mb:64", "max_non_split_rounding", 64 * MIB),
        ("large_segment_size_mb:21", "large_segment", 21 * MIB),
        ("garbage_collection_threshold:1e-1", "gc_threshold", 0.1),
        (" expandable_segments : True , max_split_size_mb : 128 ", "expandable", True),
        ("expandable_segments:True,", "expandable", True),
        ("roundup_power2_divisions:8", "divisions", (8,) * 16),
        ("roundup_power2_divisions:[]", "divisions", (0,) * 16),
        ("roundup_power2_divisions:[16:2,>:8]", "divisions", (2,) * 5 + (8,) * 11),
        ("roundup_power2_divisions:[4:1,16:0]", "divisions", (1, 1, 1) + (0,) * 13),
        ("roundup_power2_divisions:[>:4]", "divisions", (0,) + (4,) * 15),
        ("backend:cudaMallocAsync", "backend", "cudaMallocAsync"),
        ("release_lock_on_hipmalloc:True", "release_lock", True),
        ("per_process_memory_fraction:0.5", "fraction", 0.5),
        ("throw_on_cudamalloc_oom:True", "throw_on_oom", True),
        ("graph_capture_record_stream_reuse:True", "reuse_in_capture", True),
        (
            "pinned_use_cuda_host_register:True",
            "pinned",
            (("pinned_use_cuda_host_register", True),),
        ),
        ("pinned_max_cached_size_mb:64", "pinned", (("pinned_max_cached_size_mb", 64),)),
    ],
)
def test_what_torch_takes_is_taken(text: str, name: str, value: object) -> None:
    assert value == getattr(read_settings(text), name)


def test_the_older_variable_is_read_first() -> None:
    environment = {
        "PYTORCH_ALLOC_CONF": "max_split_size_mb:64",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }

    settings = settings_of(environment)

    assert (settings.expandable, settings.max_split) == (True, UNLIMITED)


@pytest.mark.parametrize(("value", "caching"), [("1", False), ("0", True)])
def test_caching_can_be_switched_off(value: str, caching: bool) -> None:
    assert caching == settings_of({"PYTORCH_NO_CUDA_MEMORY_CACHING": value}).caching
