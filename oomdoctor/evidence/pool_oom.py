"""Memory texts of TensorFlow, JAX and XLA: their BFC pools, their compiler, and TPUs.

    Allocator (GPU_0_bfc) ran out of memory trying to allocate 56.25MiB (rounded to 58982400)...
    Resource exhausted: OOM when allocating tensor with shape[64,512,28,28] and type float on
        /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc
    failed to allocate 5.95G (6390482944 bytes) from device: hipError_t(1002)
    failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY; total memory reported: 11...
    XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.
    gpu_async_1 cuMemAllocAsync failed to allocate 1073741824 bytes: RESOURCE_EXHAUSTED: : CUDA_...
     Reported by CUDA: Free memory/Total memory: 412090368/25393692672       (read by `tf_device`)
    INTERNAL: Failed to allocate 8589934592 bytes for new constant
    RESOURCE_EXHAUSTED: Failed to allocate request for 6.27GiB (6727663616B) on device ordinal 0
    XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G
        hbm. Exceeded hbm capacity by 6.47G.
    Error allocating device buffer: Attempting to allocate 4.39G. That was not possible. There are
        2.30G free.; (0x0x0_HBM0)
    RESOURCE_EXHAUSTED: Attempting to reserve 7.25G at the bottom of memory. That was not possible.
        There are 5.50G free, 0B reserved, and 5.50G reservable.
    Could not allocate 10485760 bytes in memory 0x0x0_HBM0; 4374528 bytes allocatable, 14942208 ...
    Allocator (cuda_host_bfc) ran out of memory ...             pinned main memory
    failed to alloc 1073741824 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory
    OOM when allocating tensor with shape[...] ... device:CPU:0 by allocator cpu     main memory

The allocator also warns of what it could do without ("The caller indicates that this is not a
failure"): no failure. Figures of the dump belong to `bfc_dump`, those of a program to `xla_report`.
"""

from __future__ import annotations

from oomdoctor.evidence.signs import Sign, gpu

DUMP_LINES = 6000
"""An allocator's line stands so far at most before the error that its dump leads up to."""

WARNING = "bfc-warning"
"""Family of lines that only warn: they are spoken for, and no failure."""

_HOST = (("host.allocation_failed", True),)
_PINNED = (*_HOST, ("host.pinned_failed", True))
_UNIT = r"\d[\d,]*(?:\.\d+)?\s*[KMGT](?:i?B)?"
_ALLOCATOR = r"Allocator \(\w+\) ran out of memory trying to allocate"
_OF_JAX = r"(?:org_tensorflow|external/(?:xla|tsl)/|(?:^|\s)(?:xla/|tsl/))\S*"
_ASKED = rf"(?P<requested>{_UNIT}|\d+ ?B)(?: \(rounded to (?P<exact>\d+)\))?"
_WARNED = (("oom.seen", True), ("oom.backend", "other"), ("oom.form", "engine"))
_SHAPE = (
    r"OOM when allocating tensor (?:with|of) shape ?\[(?P<shape>[\d, ]*)\]"
    r"(?:.{0,12}?\btype (?P<dtype>b?float\d*|DT_FLOAT|double|half|q?u?int\d+|bool|complex\d+))?"
)

HANDLES = (
    *("cudnn handle", "cublas handle", "cusolver handle", "convolution algorithm"),
    *("dnn library is not found", "dnn library initialization failed", "gemm launch failed"),
)
HANDLE = (
    r"(?i:(?:could not|failed to) create cu\w+ handle|failed to get convolution algorithm"
    r"|failed to determine best cudnn convolution|Blas \w*GEMM\w* launch failed"
    r"|DNN library (?:is not found|initialization failed))"
)
"""What is printed where cuDNN, cuBLAS or cuSOLVER cannot start in a process."""

SIGNS: tuple[Sign, ...] = (
    Sign(
        ("on host:", "pinned host memory", "cuda_host_bfc", "gpu_host_bfc"),
        r"failed to alloc(?:ate)? (?P<host>\d+ bytes) on host: "
        r"|could not allocate pinned host memory of size: (?P<host2>\d+)"
        r"|Allocator \(\w*host_bfc\) ran out of memory trying to allocate \S+",
        "host-oom",
        _PINNED,
        "pinned-host",
    ),
    Sign(
        ("oom when allocating tensor", "memory for the batch of component"),
        r"OOM when allocating tensor.*(?:device:CPU|by allocator (?:cpu|mklcpu|\w*host_bfc))"
        r"|Failed to allocate memory for the batch of component",
        "host-oom",
        _HOST,
        "tf-host",
    ),
    Sign(
        ("ran out of memory trying to allocate",),
        rf"{_ALLOCATOR} (?P<requested>{_UNIT}).*this is not a failure",
        "gpu-oom",
        (*_WARNED, ("oom.caught", True)),
        WARNING,
    ),
    Sign(
        ("ran out of memory trying to allocate",),
        rf"{_OF_JAX}.{{0,80}}?{_ALLOCATOR} {_ASKED}",
        "gpu-oom",
        (*_WARNED, ("oom.library", "xla")),
        "bfc",
        DUMP_LINES,
    ),
    Sign(
        ("ran out of memory trying to allocate",),
        rf"{_ALLOCATOR} {_ASKED}",
        "gpu-oom",
        (*_WARNED, ("oom.library", "tensorflow")),
        "bfc",
        DUMP_LINES,
    ),
    Sign(
        (*HANDLES, "no supported devices found for platform"),
        rf"{HANDLE}|(?i:no supported devices found for platform CUDA)",
        "other",
        (("oom.backend", "cuda"), ("oom.form", "cudnn-handle")),
        "cudnn-handle",
        400,
    ),
    gpu(
        ("oom when allocating tensor",),
        _SHAPE,
        "other",
        "engine",
        family="tf",
        library="tensorflow",
    ),
    gpu(
        ("dst tensor is not initialized",),
        r"Dst tensor is not initialized",
        "other",
        "engine",
        family="tf",
        library="tensorflow",
    ),
    gpu(
        ("from device: hip",),
        rf"failed to allocate {_UNIT} \((?P<requested>\d+ bytes)\) from device: [hH][iI][pP]",
        "hip",
        "engine",
        family="tf-reserve",
        library="tensorflow",
    ),
    gpu(
        ("from device: ",),
        rf"failed to allocate {_UNIT} \((?P<requested>\d+ bytes)\) from device: ",
        "cuda",
        "engine",
        family="tf-reserve",
        library="tensorflow",
    ),
    gpu(
        ("cudeviceprimaryctxretain", "cuctxcreate"),
        r"(?:failed call to )?cu(?:DevicePrimaryCtxRetain|CtxCreate): CUDA_ERROR_OUT_OF_MEMORY",
        "cuda",
        "engine",
        family="tf-context",
        library="tensorflow",
    ),
    Sign(
        ("in memory space vmem", "in memory space smem", "shared memory size limit exceeded"),
        r"Ran out of memory in memory space [vs]mem(?:\. Used (?P<wanted>[\d.]+[KM]?) of "
        r"(?P<limit>[\d.]+[KM]?))?"
        r"|[Ss]hared memory size limit exceeded(?:: requested (?P<wanted2>\d+), "
        r"available: (?P<limit2>\d+))?",
        "other",
        (("fault.kernel_shared_memory", True),),
        "kernel",
        1_000_000_000,
    ),
    gpu(
        ("in memory space hbm",),
        r"Ran out of memory in memory space hbm"
        r"(?:\. Used (?P<needed>[\d.]+[KMGT]) of (?P<capacity>[\d.]+[KMGT]))?",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("attempting to allocate", "attempting to reserve"),
        r"Attempting to (?:allocate|reserve) (?P<requested>[\d.]+[KMGT]?)\b.{0,60}?"
        r"That was not possible\.(?: There are (?P<free>[\d.]+[KMGT]?)\b)?",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("bytes allocatable",),
        r"Could not allocate (?P<requested>\d+ bytes) in memory \S+; \d+ bytes allocatable, "
        r"(?P<free>\d+ bytes) available",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("cumemallocasync failed to allocate",),
        r"cuMemAllocAsync failed to allocate (?P<requested>\d+ bytes)",
        "cuda",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("for new constant", "resource_exhausted: out of memory allocating"),
        r"Failed to allocate (?P<requested>\d+ bytes) for new constant"
        r"|RESOURCE_EXHAUSTED: Out of memory allocating (?P<requested2>[\d,]+ bytes)",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("out of memory while trying to allocate",),
        r"Out of memory while trying to allocate (?P<requested>[\d,]+ bytes|[\d.]+ ?[KMGT]i?B)",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("failed to allocate request for",),
        r"Failed to allocate request for \S+ ?\((?P<requested>\d+)B\)"
        r"(?: on device ordinal (?P<index>\d+))?",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
    gpu(
        ("resource_exhausted", "resource exhausted", "resourceexhaustederror"),
        r"RESOURCE_EXHAUSTED.*(?i:out of memory|allocat|ran out)"
        r"|Resource exhausted: .*(?i:out of memory|allocat|ran out)"
        r"|ResourceExhaustedError: .{0,40}(?i:failed to allocate|SameWorkerRecvDone|ran out of)",
        "other",
        "engine",
        family="xla",
        library="xla",
    ),
)
