"""What PYTORCH_CUDA_ALLOC_CONF sets, read with the checks of torch 2.13 and refused in its words.

    expandable_segments:True,max_split_size_mb:128
    roundup_power2_divisions:[256:1,512:2,1024:4,>:8]

Spaces do not count, booleans are exactly True and False, a later value replaces an earlier one.
The value stands in PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF or PYTORCH_ALLOC_CONF; the first
of them that is set is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.errors import InputError
from oomdoctor.facts.segments import LARGE_REQUEST, LARGE_SEGMENT
from oomdoctor.memory.allocator_tokens import Tokens
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MIB = 1 << 20
UNLIMITED = (1 << 64) - 1
INTERVALS = 16
MOST_REGISTER_THREADS = 128
VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
UNCACHED = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
TOO_SMALL = "CachingAllocator option {} too small, must be >= {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorSettings:
    """The options of the caching allocator, sizes in bytes.

    `divisions` are those of the 16 intervals from 1 MiB to 64 GiB, None where none is set.
    `fraction` is None where all memory is allowed. `pinned` are the options of pinned host memory.
    """

    text: str = ""
    max_split: int = UNLIMITED
    max_non_split_rounding: int = LARGE_SEGMENT
    large_segment: int = LARGE_SEGMENT
    gc_threshold: float = 0.0
    divisions: tuple[int, ...] | None = None
    expandable: bool = False
    backend: str = "native"
    release_lock: bool = False
    fraction: float | None = None
    throw_on_oom: bool = False
    reuse_in_capture: bool = False
    pinned: tuple[tuple[str, int | bool], ...] = ()
    caching: bool = True


def signed(size: int) -> int:
    """Return a size as PyTorch shows it in a signed number: no limit is -1."""
    return size - (1 << 64) if size >> 63 else size


def interval(size: int) -> int:
    """Return which of the 16 intervals of `roundup_power2_divisions` a request falls into."""
    return min(max(size.bit_length() - 21, 0), INTERVALS - 1)


def read_settings(text: str) -> AllocatorSettings:
    """Read the text of a setting; InputError in torch's words where it refuses it.

    torch reads the text twice, for options of all accelerators and for those of CUDA, so that an
    error in the former comes first.
    """
    tokens = Tokens(text)
    found = _Reader(tokens)
    later: InputError | None = None
    while tokens.at < len(tokens):
        key = tokens.next()
        if key in _COMMON:
            _COMMON[key](found)
        elif key in _CUDA:
            later = _deferred(found, key, later)
        else:
            raise InputError(f"Unrecognized key '{key}' in Accelerator allocator config.")
        if tokens.at < len(tokens):
            tokens.skip()
    found.check()
    if later is not None:
        raise later
    return replace(found.settings(), text=text)


def settings_of(environment: Mapping[str, str]) -> AllocatorSettings:
    """Read the settings of an environment, the variables in the order in which torch looks."""
    text = next((environment[one] for one in VARIABLES if one in environment), "")
    caching = not any(environment.get(name) == "1" for name in UNCACHED)
    return replace(read_settings(text), caching=caching)


class _Reader:
    """Collects the options that are read."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.values: dict[str, Any] = {}
        self.pinned: dict[str, int | bool] = {}
        self.max_split: int | None = None

    def settings(self) -> AllocatorSettings:
        pinned = tuple(sorted(self.pinned.items()))
        return replace(AllocatorSettings(), pinned=pinned, **self.values)

    @property
    def least(self) -> int:
        """Return the MiB below which `max_split_size_mb` is refused."""
        size: int = self.values.get("large_segment", LARGE_SEGMENT)
        return size // MIB

    def check(self) -> None:
        """Compare what must not be smaller than a segment with the segment that was set."""
        if self.max_split is not None and self.max_split < self.least:
            raise InputError(TOO_SMALL.format("max_split_size_mb", self.least))

    def max_split_size(self) -> None:
        self.max_split = self.tokens.size()
        self.values["max_split"] = min(self.max_split, UNLIMITED // MIB) * MIB

    def non_split_rounding(self) -> None:
        size = self.tokens.size()
        if size < LARGE_SEGMENT // MIB:
            least = LARGE_SEGMENT // MIB
            raise InputError(TOO_SMALL.format("max_non_split_rounding_mb", least))
        self.values["max_non_split_rounding"] = min(size, UNLIMITED // MIB) * MIB

    def large_segment(self) -> None:
        size = self.tokens.size()
        if size <= LARGE_REQUEST // MIB:
            raise InputError("CachingAllocator option large_segment_size_mb must be > 10 MB")
        self.values["large_segment"] = min(size, UNLIMITED // MIB) * MIB

    def threshold(self) -> None:
        share = self.tokens.share()
        if not 0 < share < 1:
            raise InputError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
        self.values["gc_threshold"] = share

    def divisions(self) -> None:
        self.values["divisions"] = _divisions(self.tokens)

    def expandable(self) -> None:
        self.values["expandable"] = self.tokens.truth()

    def background_threads(self) -> None:
        self.pinned["pinned_use_background_threads"] = self.tokens.truth()

    def backend(self) -> None:
        name = self.tokens.value()
        if name not in ("native", "cudaMallocAsync"):
            raise InputError(
                "Unknown allocator backend, options are native and cudaMallocAsync",
            )
        self.values["backend"] = name

    def release_lock(self) -> None:
        self.values["release_lock"] = self.tokens.truth()

    def fraction(self) -> None:
        share = self.tokens.share()
        if not 0 <= share <= 1:
            raise InputError("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
        self.values["fraction"] = share

    def throw_on_oom(self) -> None:
        self.values["throw_on_oom"] = self.tokens.truth()

    def reuse_in_capture(self) -> None:
        self.values["reuse_in_capture"] = self.tokens.truth()

    def host_register(self) -> None:
        self.pinned["pinned_use_cuda_host_register"] = self.tokens.truth()

    def register_threads(self) -> None:
        count = self.tokens.size()
        if not _is_power(count):
            raise InputError(f"Number of register threads has to be power of 2, got {count}")
        if count > MOST_REGISTER_THREADS:
            raise InputError(
                "Number of register threads should be less than or equal to"
                f" {MOST_REGISTER_THREADS}, got {count}"
            )
        self.pinned["pinned_num_register_threads"] = count

    def reserve_segment(self) -> None:
        size = self.tokens.size()
        if size == 0:
            raise InputError("Pinned reserve segment size has to be greater than 0")
        self.pinned["pinned_reserve_segment_size_mb"] = size

    def round_threshold(self) -> None:
        self.pinned["pinned_max_round_threshold_mb"] = self.tokens.size()

    def cached_size(self) -> None:
        self.pinned["pinned_max_cached_size_mb"] = self.tokens.size()

    def catch_all(self) -> None:
        self.pinned["pinned_free_catch_all"] = self.tokens.truth()


_COMMON: Mapping[str, Callable[[_Reader], None]] = {
    "max_split_size_mb": _Reader.max_split_size,
    "max_non_split_rounding_mb": _Reader.non_split_rounding,
    "large_segment_size_mb": _Reader.large_segment,
    "garbage_collection_threshold": _Reader.threshold,
    "roundup_power2_divisions": _Reader.divisions,
    "expandable_segments": _Reader.expandable,
    "pinned_use_background_threads": _Reader.background_threads,
    "pinned_max_round_threshold_mb": _Reader.round_threshold,
    "pinned_max_cached_size_mb": _Reader.cached_size,
}
_CUDA: Mapping[str, Callable[[_Reader], None]] = {
    "backend": _Reader.backend,
    "release_lock_on_cudamalloc": _Reader.release_lock,
    "release_lock_on_hipmalloc": _Reader.release_lock,
    "pinned_use_cuda_host_register": _Reader.host_register,
    "pinned_use_hip_host_register": _Reader.host_register,
    "pinned_num_register_threads": _Reader.register_threads,
    "pinned_reserve_segment_size_mb": _Reader.reserve_segment,
    "pinned_free_catch_all": _Reader.catch_all,
    "graph_capture_record_stream_reuse": _Reader.reuse_in_capture,
    "per_process_memory_fraction": _Reader.fraction,
    "throw_on_cudamalloc_oom": _Reader.throw_on_oom,
}


def _deferred(found: _Reader, key: str, earlier: InputError | None) -> InputError | None:
    """Read an option of CUDA; return the first error of that kind."""
    start = found.tokens.at
    try:
        _CUDA[key](found)
    except InputError as error:
        found.tokens.at = start
        found.tokens.value()
        return earlier or error
    return earlier


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _divisions(tokens: Tokens) -> tuple[int, ...]:
    """Read one count of divisions for all sizes, or a list by the size in MiB from which it holds.

    What the first entry says also holds below it; `>` stands for all intervals above the last one.
    """
    if tokens.value() != "[":
        tokens.at -= 1
        count = tokens.number()
        if not _is_power(count):
            raise InputError("For roundups, the divisions has to be power of 2")
        return (count,) * INTERVALS
    found = [0] * INTERVALS
    first, last = True, 0
    while (name := tokens.next()) != "]":
        count = tokens.size()
        if count and not _is_power(count):
            raise InputError(
                "For roundups, the divisions has to be power of 2 or 0 to disable roundup"
            )
        if name == ">":
            found[last + 1 :] = [count] * (INTERVALS - 1 - last)
        else:
            start = tokens.read_number(name)
            if not _is_power(start):
                raise InputError("For roundups, the intervals have to be power of 2")
            last = min(start.bit_length() - 1, INTERVALS - 1)
            if first:
                found[:last] = [count] * last
            first = False
            found[last] = count
        if tokens.peek() != "]":
            tokens.skip()
    return tuple(found)
