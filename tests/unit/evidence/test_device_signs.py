"""Device numbers, versions, hardware, sizes and limits are told from a shortage of memory."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_lookalikes
from tests.unit.evidence.documents import document_of

TEXTS = [
    ("RuntimeError: CUDA error: invalid device ordinal", "other", "fault.device_index"),
    ("RuntimeError: cuda runtime error (10) : invalid device ordinal at Module.cpp:32", "other",
     "fault.device_index"),
    ("RuntimeError: HIP error: invalid device ordinal", "other", "fault.device_index"),
    ("AssertionError: Invalid device id", "other", "fault.device_index"),
    (("RuntimeError: Attempting to deserialize object on CUDA device 6 but "
      "torch.cuda.device_count() is 2."), "other", "fault.device_index"),
    (('RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "CUDAContext.cpp"'
      ":49"), "other", "fault.device_index"),
    ("init.cc:871 NCCL WARN Duplicate GPU detected : rank 5 and rank 1 both on CUDA device 3d000",
     "other", "fault.duplicate_device"),
    ("RuntimeError: No CUDA GPUs are available", "other", "fault.no_device"),
    ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", "other",
     "fault.no_device"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "other",
     "fault.versions"),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "other",
     "fault.versions"),
    ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "other",
     "fault.versions"),
    ("Loaded runtime CuDNN library: 8.1.0 but source was compiled with: 8.6.0.", "other",
     "fault.versions"),
    ("RuntimeError: CUDA error: system not yet initialized", "other", "fault.versions"),
    ("Cuda failure 802 'system not yet initialized'", "other", "fault.versions"),
    ("h:1:2 [0] init.cc:9 NCCL WARN Cuda failure 'initialization error'", "other",
     "fault.library_call"),
    ("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`", "other",
     "fault.library_call"),
    ("RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR", "other", "fault.library_call"),
    ("Failed to initialize NVML: Driver/library version mismatch", "other", "fault.versions"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_ARCH_MISMATCH", "other", "fault.versions"),
    ("ImportError: libcudnn_ops_infer.so.8: undefined symbol: cudnnX", "other", "fault.versions"),
    ("Error named symbol not found at line 116 in file /src/csrc/ops.cu", "other",
     "fault.versions"),
    ("CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed", "other", "fault.versions"),
    ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "other",
     "fault.versions"),
    ("nvrtc: error: invalid value for --gpu-architecture (-arch)", "other", "fault.versions"),
    ("forward compatibility was attempted on non supported HW", "other", "fault.versions"),
    ("CUDA Setup failed despite GPU being available.", "other", "fault.versions"),
    ("libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats", "other", "fault.versions"),
    ("flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "other",
     "fault.versions"),
    ("rocBLAS error: Cannot read /opt/TensileLibrary.dat: No such file or directory for GPU arch",
     "other", "fault.versions"),
    ("RuntimeError: HIP error: shared object initialization failed", "other", "fault.versions"),
    ("AssertionError: Torch not compiled with CUDA enabled", "other", "fault.versions"),
    ("Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}", "other",
     "fault.versions"),
    ("nvrtc: error: failed to open libnvrtc-builtins.so.12.1.", "other", "fault.versions"),
    ('[WinError 127] The procedure could not be found. Error loading "C:\\lib\\c10_cuda.dll"',
     "other", "fault.versions"),
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", "device-lost",
     "fault.device_lost"),
    ("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, Ch 0008", "illegal-access", "fault.illegal_access"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "device-lost",
     "fault.device_lost"),
    ("RuntimeError: CUDA error: unknown error", "other", "fault.cuda_unknown"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "other", "fault.library_call"),
    ("RuntimeError: CUDA error: misaligned address", "illegal-access", "fault.illegal_access"),
    ("RuntimeError: CUDA error: unspecified launch failure", "illegal-access",
     "fault.illegal_access"),
    ("RuntimeError: Trying to create tensor with negative dimension -7: [-7]", "size",
     "fault.size_overflow"),
    ("RuntimeError: Storage size calculation overflowed with sizes=[3, 4]", "size",
     "fault.size_overflow"),
    ("DefaultCPUAllocator: not enough memory: you tried to allocate 18446744065119617024 bytes.",
     "size", "fault.size_overflow"),
    ("alloc_cpu() seems to have been called with negative number: 7",
     "size", "fault.size_overflow"),
    ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611686018427387904 bytes.",
     "size", "fault.size_overflow"),
    ("MemoryError: Unable to allocate 8.00 EiB for an array with shape (1099511627776, 1048576)",
     "size", "fault.size_overflow"),
    ("pyarrow.lib.ArrowMemoryError: malloc of size 18446744073709551552 failed", "size",
     "fault.size_overflow"),
    ("ggml_aligned_malloc: insufficient memory (attempted to allocate 17592186044415.94 MB)",
     "size", "fault.size_overflow"),
    ("RuntimeError: std::bad_array_new_length", "size", "fault.size_overflow"),
    ("RuntimeError: input tensor must fit into 32-bit index math", "size", "fault.size_overflow"),
    ("RuntimeError: CUDA error: too many resources requested for launch", "other",
     "fault.launch_resources"),
    ("OutOfResources: out of resource: registers, Required: 81920, Hardware limit: 65536",
     "other", "fault.launch_resources"),
    ("ptxas error : Entry function 'k' uses too much shared data (0x14000 bytes, 0xc000 max)",
     "other", "fault.kernel_shared_memory"),
    ("IndexError: index out of range in self", "other", "assert.on_cpu"),
    ("IndexError: Target 7 is out of bounds.", "other", "assert.on_cpu"),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", "other", "fault.device_busy"),
    ("Error invalid device ordinal at line 359 in file /src/csrc/pythonInterface.c", "other",
     "fault.not_supported"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/torch_4_1'", "other",
     "host.shm_race"),
    ("watchdog got stuck for 600 seconds without making progress", "collective",
     "collective.hang"),
]  # fmt: skip
PLAIN = [
    '[WinError 1455] The paging file is too small. Error loading "C:\\lib\\cudnn_adv64_8.dll"',
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "torch.cuda.device_count() is 8, using devices 0-7",
    "cuDNN version: 90100, driver version 550.54",
    "memlock limit unlimited",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 34359738368 bytes.",
    "allocated 1048576 bytes of buffers for request 18446744072009756672",
    "index out of range is checked for in validate()",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
]


@pytest.mark.parametrize(("text", "kind", "key"), TEXTS)
def test_a_text_that_is_no_shortage_gives_its_kind_and_fact(text: str, kind: str, key: str) -> None:
    failures = torch_lookalikes.read(document_of(text)).failures

    stated = {fact.key for one in failures for fact in one.facts if fact.value is True}
    assert kind == failures[0].kind
    assert key in stated


@pytest.mark.parametrize("text", PLAIN)
def test_words_of_the_same_kind_alone_are_no_failure(text: str) -> None:
    reading = torch_lookalikes.read(document_of(text))

    assert reading.failures == ()
