"""Memory messages of XPU, MPS and HIP runtimes, and of layers that share a card by quotas.

RuntimeError: Invalid buffer size: 36.00 GiB
RuntimeError: UR error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)
RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)
level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)
[malloc_or_wait] Unable to allocate 34359738368 bytes.                       (MLX)
MIOpen(HIP): Warning [...] Memory not available to allocate buffer: 8589934592
[W] CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 0 while trying to
    allocate 2147483648 bytes (free: 419430400, total: 25393692672).
[HAMI-core ERROR (pid:9 thread=1396 allocator.c:53)]: Device 0 OOM 4362076160 / 4294967296
[4pdvGPU ERROR (pid:9 ...)]: device OOM encountered: usage=6442450944 limit=5368709120
"""

from __future__ import annotations

from oomdoctor.evidence.signs import SIZED, Sign, gpu

QUOTA = "quota"
"""Family of refusals by a container's quota: an allocator may give back its cache, and go on."""

_FIGURE = rf"(?:{SIZED}|\d+)"

SIGNS: tuple[Sign, ...] = (
    gpu(
        ("memory allocation failed with oom on device",),
        r"memory allocation failed with OOM on device (?P<index>\d+)"
        rf"(?: while trying to allocate (?P<requested>\d+ bytes))?"
        rf"(?: \(free: (?P<free>{_FIGURE}), total: (?P<capacity>{_FIGURE})\))?",
        "cuda",
        "allocator",
        family="allocator-warning",
    ),
    gpu(
        # what the process would hold, and the quota of its container
        ("]: device ",),
        r"\[[\w .-]{2,40} ERROR\b[^\]]{0,160}\]: [Dd]evice (?:(?P<index>\d+) )?OOM\b"
        r"(?: encountered)?:?(?: \d+ / (?P<allowed>\d+)"
        r"(?: \(trying to allocate (?P<requested>\d+ bytes))?"
        r"|(?: usage=\d+| usage \d+ \+ alloc (?P<requested2>\d+) = \d+ >)"
        r" limit[ =](?P<allowed2>\d+))?",
        "cuda",
        "preempted",
        family=QUOTA,
    ),
    gpu(
        ("invalid buffer size",),
        rf"Invalid buffer size: (?P<requested>{SIZED})",
        "mps",
        "invalid-buffer",
    ),
    gpu(
        ("the maximum allowed buffer size",),
        r"to allocate (?P<requested>\d+ bytes) which is (?:greater|larger) than the maximum allowed"
        r" buffer size",
        "mps",
        "invalid-buffer",
        family="metal",
    ),
    gpu(
        ("malloc_or_wait]", "malloc] unable to allocate"),
        r"\[(?:malloc_or_wait|(?:metal::)?malloc)\] Unable to allocate (?P<requested>\d+ bytes)",
        "mps",
        "engine",
        family="metal",
    ),
    gpu(
        ("kiogpucommandbuffercallbackerroroutofmemory",),
        r"kIOGPUCommandBufferCallbackErrorOutOfMemory",
        "mps",
        "runtime",
        family="metal",
    ),
    gpu(
        ("out_of_device_memory", "out_of_resources", "pi_error_mem_object_allocation_failure"),
        r"(?:UR|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)"
        r"|PI_ERROR_(?:OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE)",
        "xpu",
        "runtime",
        family="level-zero",
    ),
    gpu(
        ("memory not available to allocate buffer",),
        r"Memory not available to allocate buffer: (?P<requested>\d+)",
        "hip",
        "driver-call",
    ),
    Sign(
        ("out_of_host_memory",),
        r"(?:UR|ZE|PI)_(?:RESULT_)?ERROR_OUT_OF_HOST_MEMORY",
        "host-oom",
        (("host.allocation_failed", True),),
        "level-zero-host",
    ),
)
