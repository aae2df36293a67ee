"""Registry rows of PyTorch's allocator: the balance it states, its options, its counters."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size, text

SUMMARY_S = 60.0

ROWS = (
    size("torch.allocated", "Bytes of live blocks (with what lies in private pools)."),
    size("torch.reserved", "Bytes the allocator holds from the driver (allocated + cached)."),
    size("torch.reserved_unallocated", "Reserved but not in any live tensor: the cache."),
    size("torch.private_pools", "Allocated bytes in private pools (CUDA graphs, an own mempool)."),
    size(
        "torch.active",
        "Active memory of memory_summary: allocated plus blocks that wait for another stream.",
        obtain="Print torch.cuda.memory_summary() when it fails (except torch.OutOfMemoryError:"
        " print(torch.cuda.memory_summary()); raise) and compare Active with Allocated memory.",
        cost_s=SUMMARY_S,
    ),
    size("torch.awaiting_free", "Active minus allocated: freed, but held by another stream."),
    size("torch.requested_live", "Bytes as asked for, before rounding ('Requested memory')."),
    size(
        "torch.non_releasable",
        "Holes inside partly used segments: what true fragmentation is made of.",
        obtain="Print torch.cuda.memory_summary() when it fails and read 'Non-releasable memory'.",
        cost_s=SUMMARY_S,
    ),
    size("torch.peak_allocated", "Highest allocated bytes since the start or the last reset."),
    size("torch.peak_reserved", "Highest reserved bytes since the start or the last reset."),
    count("torch.alloc_retries", "cudaMalloc retries: times the cache was flushed to go on."),
    count("torch.oom_count", "CUDA OOMs counted by the allocator."),
    size("torch.largest_block", "Size of the largest live block, from a snapshot or a list."),
    boolean(
        "alloc.expandable_segments",
        "expandable_segments:True is in force.",
        obtain="echo $PYTORCH_CUDA_ALLOC_CONF $PYTORCH_ALLOC_CONF",
        cost_s=2,
    ),
    size("alloc.max_split_size", "max_split_size_mb in force."),
    ratio("alloc.gc_threshold", "garbage_collection_threshold in force."),
    text("alloc.roundup", "roundup_power2_divisions in force."),
    enum("alloc.backend", "Allocator back end.", ("native", "cudaMallocAsync")),
    text("alloc.conf", "The whole PYTORCH_CUDA_ALLOC_CONF / PYTORCH_ALLOC_CONF value."),
    ratio("alloc.fraction", "set_per_process_memory_fraction / per_process_memory_fraction."),
    boolean("alloc.cache_disabled", "PYTORCH_NO_CUDA_MEMORY_CACHING is set."),
    boolean("xla.preallocate", "XLA_PYTHON_CLIENT_PREALLOCATE in force."),
    ratio("xla.memory_fraction", "XLA_PYTHON_CLIENT_MEM_FRACTION in force."),
    text("xla.allocator", "XLA_PYTHON_CLIENT_ALLOCATOR in force."),
    boolean("xla.set_after_import", "Such a variable is set after jax was imported: too late."),
    boolean("tf.allow_growth", "TF_FORCE_GPU_ALLOW_GROWTH in force."),
    size(
        "growth.per_step",
        "Slope of memory over steps where the input holds a series (allocated or device use).",
        obtain="Log torch.cuda.memory_allocated() at the same place of 20 consecutive steps; "
        "a steady rise is growth, a flat line with peaks is not.",
        cost_s=60,
    ),
    count("growth.points", "How many points that series has."),
    boolean("growth.monotone", "It rises at every point."),
    boolean(
        "growth.steady",
        "It rises at each of ten points or more by nearly the same amount, and does not level off; "
        "of a running maximum that is growth, too.",
    ),
    ratio("growth.leaked_share", "Rise of what recorded steps leave allocated / card."),
    size("growth.first", "First value of the series."),
    size("growth.last", "Last value of the series."),
    count("growth.span", "Steps between the first and the last point of the series."),
    enum(
        "growth.quantity",
        "What the series counts; a running maximum can only rise and proves no leak.",
        ("allocated", "reserved", "device", "driver", "running-max", "host"),
    ),
)
