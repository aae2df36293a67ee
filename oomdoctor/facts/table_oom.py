"""Registry rows of the failure event itself: what was asked for, what the message states."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, size, text

ROWS = (
    boolean("oom.seen", "A text that announces exhausted accelerator memory was recognised."),
    enum(
        "oom.backend",
        "Accelerator back end that the message comes from.",
        ("cuda", "hip", "xpu", "mps", "npu", "musa", "other"),
        obtain="Paste the whole error message, from the first line of the traceback to its last.",
    ),
    enum(
        "oom.form",
        "Which text announced it: the framework allocator's message, a bare runtime error, a "
        "library handle that could not be created, a failed assertion inside the allocator, a "
        "driver call outside the allocator, an absurd size, or a pre-emptive refusal by a cap.",
        (
            "allocator",
            "runtime",
            "cublas-handle",
            "cudnn-handle",
            "nvml-assert",
            "driver-call",
            "nccl-alloc",
            "exabyte",
            "preempted",
            "invalid-buffer",
            "engine",
        ),
    ),
    enum(
        "oom.library",
        "Library whose words announced it (torch where it is PyTorch's own message).",
        (
            "torch",
            "tensorflow",
            "xla",
            "cupy",
            "paddle",
            "rmm",
            "numba",
            "mxnet",
            "arrayfire",
            "opencv",
            "directml",
            "tenstorrent",
            "cann",
            "cuda-jl",
            "other",
        ),
    ),
    boolean(
        "oom.second_pool",
        "PyTorch's allocator fails, the job names a library with a pool of its own (XLA, JAX, "
        "TensorFlow), and the message does not tell this process from others.",
    ),
    text("oom.tensor_shape", "Shape of the tensor that could not be allocated, `64x512x28x28`."),
    boolean("oom.scores_shape", "Its last two dimensions are equal, as attention scores' are."),
    boolean("oom.vocab_shape", "Its last dimension is as large as a vocabulary."),
    boolean("oom.layer_shape", "It has rows, places and channels, as what a layer makes."),
    boolean("oom.batch_shape", "Its first dimension is the number of rows of a batch."),
    boolean("oom.table_shape", "It has the shape of a large table: very many rows of one vector."),
    size(
        "oom.requested",
        "Bytes that the failing call asked for, as the message states them (without expandable "
        "segments this is the segment: 2 MiB, 20 MiB, or the request up to the next 2 MiB).",
        obtain="Paste the complete error message (the line with 'Tried to allocate').",
        cost_s=5,
    ),
    size("oom.capacity", "Total bytes of the device (or MIG slice) as the message states them."),
    size("oom.free", "Bytes free on the whole device when the message was composed."),
    size("oom.allowed", "Cap on this process stated in the message ('X allowed;', MPS limit)."),
    size("oom.this_process", "Bytes of this process on the device: 'this process has X'."),
    size("oom.largest_process", "The largest 'Process N has X memory in use' figure."),
    size("oom.listed_processes_bytes", "Sum of all 'Process N has X memory in use' figures."),
    count("oom.listed_processes", "How many 'Process N has X memory in use' clauses it holds."),
    count(
        "oom.small_twins",
        "How many listed processes of 0.2 to 2 GiB are equal within a few per cent, beside one "
        "that holds three times as much (0 where fewer than three are).",
    ),
    size("oom.small_twins_bytes", "Their sum."),
    count(
        "oom.listed_siblings",
        "How many listed processes have numbers in a row, as a launcher's have (from three on).",
    ),
    size("oom.other_allocations", "MPS: Metal buffers of this process outside the allocator."),
    count("oom.gpu_index", "In-process ordinal of the failing device."),
    text(
        "oom.generation",
        "Generation of the message: cuda-1 (<= 0.4) to cuda-7 (newest), cuda-async for "
        "cudaMallocAsync, the same numbers for hip and musa, xpu-old, xpu-new, mps, npu.",
    ),
    count("oom.events", "How many failure messages the input holds."),
    count("oom.failed_ranks", "How many different ranks report a failure."),
    count(
        "oom.crowded_ranks",
        "How many ranks report a failure on the device number that most of them name.",
    ),
    count(
        "oom.equal_cards",
        "On how many cards the same memory lies outside PyTorch's pool, where messages of two or "
        "more cards tell it (1: each differs).",
    ),
    boolean("oom.caught", "The text stands in a warning or was caught: the run went on."),
    boolean(
        "oom.repeats_same_allocated",
        "Two messages of one process state the same allocated bytes although work restarted.",
    ),
    boolean("oom.figures_given", "The message states at least the requested size."),
    boolean(
        "oom.hint_line",
        "PyTorch's fixed fragmentation hint follows (it is printed whatever the cause).",
    ),
    size("oom.shortfall", "Requested minus free (or minus what a cap left): a lower bound."),
    boolean(
        "oom.request_fits_free",
        "The request is smaller than the free memory beyond rounding and segment size: the card "
        "did not run out as a whole.",
    ),
    boolean("oom.absurd_size", "The requested size cannot be meant: near 2^34 GiB, 2^47 B or 1EB."),
    boolean("assert.device_side", "A device-side assertion was reported."),
    boolean("assert.index", "The assertion is about an index, label or token id."),
    boolean("assert.before_oom", "It stands before the memory message."),
    boolean("fault.illegal_access", "'an illegal memory access was encountered' was reported."),
    boolean("fault.device_busy", "The device refused a context: busy or unavailable."),
    boolean("fault.not_supported", "The driver or platform does not support the operation."),
    boolean("fault.kernel_shared_memory", "A kernel wants more on-chip shared memory than is."),
    size("fault.kernel_required", "On-chip shared memory that the kernel wants."),
    size("fault.kernel_limit", "On-chip shared memory that the device has."),
    boolean("collective.timeout", "A collective operation timed out (watchdog line)."),
    boolean("collective.before_oom", "It stands before the memory message."),
    boolean("host.killed", "A process was killed by the kernel or a job manager (SIGKILL, 137)."),
    boolean(
        "host.oom_kill",
        "A kernel or job manager line says it killed for memory.",
        obtain="dmesg -T | grep -i -E 'killed process|oom'",
        cost_s=3,
    ),
    boolean(
        "host.shm_error",
        "The shared-memory mount was too small: bus error, ENOSPC, posix_fallocate.",
    ),
    boolean("host.worker_killed", "A DataLoader worker was killed by signal 9 or 7."),
    boolean("host.allocation_failed", "An allocation of host memory failed (CPU allocator, mmap)."),
    size("host.requested", "Bytes that a failed allocation of host memory asked for."),
    boolean("host.pinned_failed", "Page-locked (pinned) host memory could not be had."),
    boolean("host.pin_thread", "The DataLoader's pin-memory thread raised or ended."),
    boolean("host.paging_file", "Windows refused for want of commit space (error 1455)."),
    boolean("host.fd_limit", "Passing file descriptors between processes met their limit."),
    boolean("host.shm_race", "A shared-memory object was gone when it was opened (errno 2)."),
    boolean("host.map_worker_died", "A subprocess of a dataset's map died abruptly."),
    boolean("failure.other", "A failure that is not about memory was recognised (exception)."),
)
