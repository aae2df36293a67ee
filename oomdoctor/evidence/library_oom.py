"""Device memory texts of array, vision and training libraries, with the figures they state.

cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so
    far: 6,442,450,944 bytes, limit set to: 7,516,192,768 bytes).
cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 536870912 bytes (total 812... bytes)
ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 2.2GB memory on GPU 0, 9...
Out of memory error on GPU 0. Cannot allocate 145.468994MB GPU memory, available memory is 72.3MB
enforce allocating <= available failed, 10513462067 > 1369702144         (PaddlePaddle, 2018)
MemoryError: std::bad_alloc: out_of_memory: RMM failure at: ...: Maximum pool size exceeded
MemoryError: std::bad_alloc: CUDA error at: ...: cudaErrorMemoryAllocation out of memory
Could not allocate tensor with 671088640 bytes. There is not enough GPU video memory available!
cv2.error: ... (-217:Gpu API call) out of memory in function 'allocate'
Failed to allocate memory of size 1.50 GiB (Device: 0, Capacity: 11.91 GiB, Allocated: 9.5 GiB ...
Out of Memory: Not enough space to allocate 204800000 B DRAM buffer across 12 banks, ...
numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY
mxnet.base.MXNetError: ... cudaMalloc retry failed: out of memory
Call rtMalloc fail, purpose: page caching, type = 2, size:3221291008, device_id:0
EL0004: [PID: 411] ... Failed to allocate memory.  /  aclrtMalloc failed, error code is 207001
Memory not enough: current free memory size[12582912] is smaller than required size[33554432]
HSA_STATUS_ERROR_OUT_OF_RESOURCES: ... Code: 0x1008 Available Free mem : 92 MB
MemoryError: Allocation of 8.00 GB failed on METAL. Used: 13.20 GB           (tinygrad)
ERROR: Out of GPU memory trying to allocate 1.500 GiB                       (CUDA.jl)
FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::2147483648 (2048)MB      (Gaudi)
TDRV:log_dev_mem   Failed to allocate 512.000MB (usage: tensors) on ND 0:NC 1      (Neuron)
"""

from __future__ import annotations

from oomdoctor.evidence.signs import SIZED, Sign, gpu

SIGNS: tuple[Sign, ...] = (
    gpu(
        ("out of memory allocating",),
        r"Out of memory allocating (?P<requested>[\d,]+ bytes)"
        r"(?: \(allocated so far: (?P<allocated>[\d,]+ bytes)"
        r"(?:, limit set to: (?P<allowed>[\d,]+ bytes))?)?",
        "other",
        "engine",
        family="cupy",
        library="cupy",
    ),
    gpu(
        ("out of memory to allocate",),
        r"out of memory to allocate (?P<requested>[\d,]+ bytes)",
        "other",
        "engine",
        family="cupy",
        library="cupy",
    ),
    gpu(
        ("out of memory error on gpu",),
        rf"(?i)Out of memory error on GPU (?P<index>\d+)\. Cannot allocate (?P<requested>{SIZED})"
        rf".{{0,80}}?(?:, (?P<allocated>{SIZED}) memory has been allocated)?"
        rf"(?:,? and|,)? available memory is (?:only )?(?P<free>{SIZED})",
        "cuda",
        "engine",
        family="paddle",
        library="paddle",
    ),
    gpu(
        ("out of memory error on gpu",),
        rf"(?i)Out of memory error on GPU (?P<index>\d+)"
        rf"(?:\. Cannot allocate (?P<requested>{SIZED}))?",
        "cuda",
        "engine",
        family="paddle",
        library="paddle",
    ),
    gpu(
        ("allocating <= available failed",),
        r"enforce allocating <= available failed, (?P<requested>\d+) > (?P<free>\d+)",
        "cuda",
        "engine",
        family="paddle",
        library="paddle",
    ),
    gpu(
        ("maximum pool size exceeded",),
        r"[Mm]aximum pool size exceeded"
        r"(?:.{0,40}?(?:size|allocate) (?P<requested>\d[\d.]* ?\w*B))?",
        "cuda",
        "engine",
        family="rmm",
        library="rmm",
    ),
    gpu(
        ("bad_alloc: cuda error", "bad_alloc: out_of_memory", "rmm_error_out_of_memory"),
        r"std::bad_alloc: (?:out_of_memory: )?CUDA error|bad_alloc: out_of_memory"
        r"|RMM_ERROR_OUT_OF_MEMORY",
        "cuda",
        "engine",
        family="rmm",
        library="rmm",
    ),
    gpu(
        ("not enough gpu video memory",),
        r"(?:Could not allocate tensor with (?P<requested>\d+ bytes)\. )?"
        r"There is not enough GPU video memory",
        "other",
        "engine",
        library="directml",
    ),
    gpu(
        ("-217:gpu api call",),
        r"\(-217:Gpu API call\) out of memory",
        "cuda",
        "engine",
        library="opencv",
    ),
    gpu(
        ("device out of memory:101",),
        rf"Failed to allocate memory of size (?P<requested>{SIZED}) \(Device: (?P<index>\d+), "
        rf"Capacity: (?P<capacity>{SIZED}), Allocated: (?P<allocated>{SIZED})",
        "other",
        "engine",
        library="arrayfire",
    ),
    gpu(
        ("not enough space to allocate",),
        r"Out of Memory: Not enough space to allocate (?P<requested>\d+ B)\b",
        "other",
        "engine",
        library="tenstorrent",
    ),
    gpu(
        ("call to cumemalloc results in",),
        r"Call to cuMemAlloc\w* results in (?:CUDA_ERROR_)?OUT_OF_MEMORY",
        "cuda",
        "engine",
        family="numba",
        library="numba",
    ),
    gpu(
        ("malloc retry failed",),
        r"(?:cuda|hip)Malloc retry failed: out of memory",
        "cuda",
        "engine",
        library="mxnet",
    ),
    gpu(
        ("malloc fail", "memalloc", "failed to allocate memory requested by ge", "[devicememory]"),
        r"[Cc]all (?:rt|drv|halM)\w*(?:Malloc|Alloc)\w* fail.{0,80}?size ?[:=] ?(?P<requested>\d+)"
        r"|Failed to allocate memory requested by GE"
        r"|allocate resource\[DeviceMemory\](?: with info \[size: ?(?P<requested2>\d+)\])?",
        "npu",
        "engine",
        family="ascend",
        library="cann",
    ),
    gpu(
        ("el0004", " 207001"),
        r"\bEL0004: |(?i:\b(?:error code(?: is)?|result|ret|errno)\W{1,4}207001\b)",
        "npu",
        "engine",
        family="ascend",
        library="cann",
    ),
    gpu(
        ("memory isn't enough and alloc", "current free memory size["),
        r"current free memory size ?\[(?P<free>\d+)\] is smaller than required size ?"
        r"\[(?P<requested>\d+)\]"
        r"|Device\(id:(?P<index>\d+)\) memory isn't enough and alloc failed"
        r"(?:.{0,200}?alloc size: ?(?P<requested2>\d+ ?B))?",
        "other",
        "engine",
        family="mindspore",
    ),
    gpu(
        ("hsa_status_error_out_of_resources",),
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES(?:.{0,400}?Available Free mem ?: ?(?P<free>\d+ ?MB))?",
        "hip",
        "runtime",
        family="hsa",
    ),
    gpu(
        (" failed. used: ", " failed on "),
        rf"\bAllocation of (?P<requested>{SIZED}) failed(?: on [\w:]+)?\. Used: "
        rf"(?P<allocated>{SIZED})",
        "other",
        "engine",
        family="tinygrad",
    ),
    gpu(
        ("out of gpu memory trying to allocate",),
        rf"Out of GPU memory trying to allocate (?P<requested>{SIZED})",
        "cuda",
        "engine",
        family="julia",
        library="cuda-jl",
    ),
    gpu(
        ("pt_devmem",),
        r"PT_DEVMEM.{0,40}[Aa]llocation failed for size:{1,2} ?(?P<requested>\d+)",
        "other",
        "engine",
        family="gaudi",
    ),
    gpu(
        ("log_dev_mem",),
        rf"log_dev_mem\W+Failed to allocate (?P<requested>{SIZED})",
        "other",
        "engine",
        family="neuron",
    ),
)
