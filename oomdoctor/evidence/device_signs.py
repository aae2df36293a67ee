"""Failures of devices and of the libraries on them that are no shortage: numbers, versions, faults.

    RuntimeError: CUDA error: invalid device ordinal
    RuntimeError: Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count()
        is 1.
    NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000
    RuntimeError: No CUDA GPUs are available
    RuntimeError: CUDA error: no kernel image is available for execution on the device
    RuntimeError: The NVIDIA driver on your system is too old (found version 11040).
    Loaded runtime CuDNN library: 7.4.2 but source was compiled with: 7.6.0.
    NVRM: Xid (PCI:0000:3b:00): 79, pid=2101, GPU has fallen off the bus.
    RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, ...

The table is read by `torch_lookalikes`.
"""

from __future__ import annotations

from oomdoctor.evidence.signs import Sign

FAR = 1_000_000_000
"""The reach of what is told once for the whole input."""


def other(literals: tuple[str, ...], pattern: str, key: str, family: str) -> Sign:
    """Return the sign of a failure that is not about memory, once for the whole input."""
    return Sign(literals, pattern, "other", ((key, True),), family, FAR)


DEVICES = (
    other(
        ("duplicate gpu detected",),
        r"Duplicate GPU detected ?: rank \d+ and rank \d+ both on",
        "fault.duplicate_device",
        "duplicate",
    ),
    other(
        ("invalid device ordinal", "hiperrorinvaliddevice"),
        r"(?i)invalid device ordinal|hipErrorInvalidDevice\b",
        "fault.device_index",
        "device",
    ),
    other(
        (
            "device >= 0 && device < num_gpus",
            "invalid device id",
            "on cuda device",
            "invalid cuda id",
            "invalid cuda 'device=",
            "your machine only has",
            "requested gpu index",
        ),
        r"device >= 0 && device < num_gpus.{0,40}ASSERT FAILED|\bInvalid device id\b"
        r"|deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is \d+"
        r"|Invalid CUDA '?(?:device|id)|[Yy]ou requested gpu: \S+.{0,20}your machine only has"
        r"|Requested GPU index \d+ but only \d+",
        "fault.device_index",
        "device",
    ),
    other(
        (
            "no cuda gpus are available",
            "no hip gpus are available",
            "no gpus found",
            "no cuda-capable device is detected",
            "deserialize object on a cuda device",
            "cuda_error_no_device",
        ),
        r"(?i)No (?:CUDA|HIP) GPUs are available|with GPUs, no GPUs found"
        r"|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE"
        r"|deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False",
        "fault.no_device",
        "no-device",
    ),
)
VERSIONS = (
    other(
        (
            "no kernel image is available",
            "kernel image is invalid",
            "ptx was compiled with",
            "cudaerrornokernelimagefordevice",
            "hiperrornobinaryforgpu",
            "invalid device function",
            "is not compatible with the current pytorch",
            "cudnn_status_arch_mismatch",
            "cublas_status_arch_mismatch",
            "no binary for gpu",
        ),
        r"(?i)no kernel image is available|kernel image is invalid|unsupported toolchain"
        r"|cudaErrorNoKernelImageForDevice|hipErrorNoBinaryForGpu|no binary for gpu"
        r"|\binvalid device function\b|is not compatible with the current PyTorch"
        r"|CU(?:DNN|BLAS)_STATUS_ARCH_MISMATCH",
        "fault.versions",
        "versions",
    ),
    other(
        (
            "nvidia driver on your system is too old",
            "driver version is insufficient",
            "cudaerrorinsufficientdriver",
            "insufficient driver version",
            "driver/library version mismatch",
            "unsupported display driver",
            "cudaerrorsystemdrivermismatch",
            "system not yet initialized",
            "cudaerrorsystemnotready",
            "cudnn_status_version_mismatch",
            "cudnn_status_sublibrary_version_mismatch",
        ),
        r"(?i)NVIDIA driver on your system is too old|driver version is insufficient"
        r"|cudaErrorInsufficientDriver|insufficient driver version"
        r"|Driver/library version mismatch|unsupported display driver"
        r"|cudaErrorSystem(?:DriverMismatch|NotReady)|system not yet initialized"
        r"|CUDNN_STATUS_(?:SUBLIBRARY_)?VERSION_MISMATCH",
        "fault.versions",
        "versions",
    ),
    other(
        (
            "cudnn version incompatibility",
            "cannot open shared object file",
            "detected cuda version",
            "driver initialization failed",
            "cudnn version mismatch",
            "loaded runtime cudnn library",
            "cudnn library major and minor",
            "different cuda major versions",
            "undefined symbol",
        ),
        r"(?i)cuDNN version (?:incompatibility|mismatch)|Loaded runtime CuDNN library: [\d.]+ but"
        r"|compiled with different CUDA major versions|cuDNN library major and minor version needs"
        r"|\blib(?:cudnn|cublas|cudart|nccl|nvrtc|cusparse|nvJitLink)\S*: undefined symbol"
        r"|\blib(?:cudnn|cublas|cudart|nvrtc|cusparse)\S*: cannot open shared object file"
        r"|detected CUDA version \(?[\d.]+\)? mismatches|CUDA driver initialization failed",
        "fault.versions",
        "versions",
    ),
    other(
        (
            "named symbol not found",
            "ptx jit compilation failed",
            "invalid_ptx",
            "not defined for option",
            "invalid value for --gpu-architecture",
            "failed to open libnvrtc",
            "failed to open nvrtc",
            "forward compatibility was attempted",
            "cuda setup failed despite",
            "not compiled with cuda",
            "undefined symbol",
            "tensilelibrary",
            "shared object initialization failed",
            "unable to load any of {libcu",
            "error loading",
        ),
        r"(?i)\bnamed symbol not found|PTX JIT compilation failed|CUDA_ERROR_INVALID_PTX"
        r"|ptxas fatal *: Value '\w+' is not defined for option 'gpu-name'"
        r"|invalid value for --gpu-architecture|failed to open (?:lib)?nvrtc-builtins"
        r"|forward compatibility was attempted on non supported HW"
        r"|CUDA Setup failed despite (?:GPU|CUDA) being available|not compiled with CUDA enabled"
        r"|undefined symbol: (?:_ZNK?(?:3c10|2at|5torch)|cget_|cquantize|nccl[A-Z])"
        r"|Cannot read \S*TensileLibrary|HIP error: shared object initialization failed"
        r"|Unable to load any of \{libcu"
        r"|WinError (?:126|127|1114)\].{0,120}Error loading \"[^\"]*(?:cud|cublas|c10|torch)",
        "fault.versions",
        "versions",
    ),
)
HARDWARE = (
    Sign(
        (
            "fallen off the bus",
            "gpu is lost",
            "ecc error",
            "nvlink error",
            "unable to determine the device handle",
            "cudaerrorecc",
            "row remap",
            "nvrm: xid",
        ),
        r"(?i)fallen off the bus|\bGPU is lost\b|uncorrectable (?:NVLink error|ECC error)"
        r"|double.bit ECC error|ECC error encountered|cudaErrorECCUncorrectable"
        r"|Unable to determine the device handle for gpu|row remap\w* (?:failed|failure)"
        r"|Xid \(PCI:[0-9a-f:.]+\): (?:48|62|63|64|74|79|92|94|95|110|119|120|140)\b",
        "device-lost",
        (("fault.device_lost", True),),
        "lost",
        FAR,
    ),
    other(
        ("cuda unknown error", "cuda error: unknown error", "cudaerrorunknown", ": unknown error"),
        r"CUDA unknown error|CUDA error: unknown error|cudaErrorUnknown"
        r"|cuda runtime error \((?:30|999)\) ?: unknown error",
        "fault.cuda_unknown",
        "unknown",
    ),
)
CALLS = (
    other(
        (
            "cublas_status_execution_failed",
            "cublas_status_internal_error",
            "cublas_status_invalid_value",
            "cublas_status_not_supported",
            "cufft_internal_error",
            "cuda failure",
            "cudnn_status_execution_failed",
            "cudnn_status_mapping_error",
            "cudnn_status_bad_param",
        ),
        r"CUBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|INVALID_VALUE|NOT_SUPPORTED)"
        r"|CUDNN_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR|BAD_PARAM)|CUFFT_INTERNAL_ERROR"
        r"|Cuda failure (?:\d+ )?'(?!out of memory|an illegal|misaligned|unspecified|device-side)",
        "fault.library_call",
        "library-call",
    ),
)
SIGNS: tuple[Sign, ...] = (*DEVICES, *VERSIONS, *HARDWARE, *CALLS)
