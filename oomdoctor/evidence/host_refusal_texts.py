"""Texts that say main memory, /dev/shm, the paging file or a disk refused what was asked for.

RuntimeError: DataLoader worker (pid 325) is killed by signal: Bus error. It is ...
RuntimeError: unable to write to file </torch_18_1640_2>: No space left on device (28)
OSError: The paging file is too small for this operation to complete. (os error 1455)
DefaultCPUAllocator: can't allocate memory: you tried to allocate 34359738368 bytes. Error ...
numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.3 GiB for an array with shape
pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed
memory allocation of 21474836480 bytes failed                               (Rust libraries)
RuntimeError: One of the subprocesses has abruptly died during map operation.
OSError: [Errno 28] No space left on device: '/data/out/checkpoint-10/optimizer.pt'
"""

from __future__ import annotations

from oomdoctor.evidence.host_kill_texts import KILLED
from oomdoctor.evidence.signs import SIZED, Sign

_SHM = (("host.shm_error", True),)
_REFUSED = (("host.allocation_failed", True),)
_WINDOWS = (*_REFUSED, ("host.paging_file", True))


def _shm(literals: tuple[str, ...], pattern: str, *, worker: bool = False) -> Sign:
    states = (*_SHM, ("host.worker_killed", True)) if worker else _SHM
    return Sign(literals, pattern, "shm", states, "shm", 60)


def _refused(literals: tuple[str, ...], pattern: str) -> Sign:
    return Sign(literals, pattern, "host-oom", _REFUSED, "cpu-allocator")


WORKERS: tuple[Sign, ...] = (
    Sign(
        ("is killed by signal: killed",),
        r"DataLoader worker \(pid \d+\) is killed by signal: Killed",
        "host-oom",
        (("host.worker_killed", True), KILLED),
        "worker",
    ),
    _shm(
        ("is killed by signal: bus error",),
        r"DataLoader worker \(pid \d+\) is killed by signal: Bus error",
        worker=True,
    ),
    _shm(
        ("bus error encountered in worker", "insufficient shared memory"),
        r"Unexpected bus error encountered in worker|insufficient shared memory \(shm\)",
    ),
    Sign(
        ("exited unexpectedly", "is killed by signal: "),
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:exited unexpectedly|is killed by signal)",
        "other",
        (("launch.worker_lost", True),),
        "worker",
    ),
    _shm(
        ("posix_fallocate failed", "shared memory segment", "failed to extend /dev/shm"),
        r"posix_fallocate failed ?: No space|Error while creating shared memory segment"
        r"|failed to extend /dev/shm/\S+ to \d+ bytes",
    ),
    _shm(
        (
            *("no space left on device", "unable to allocate shared memory"),
            *("shared memory object", "to file </torch_", "resize file </torch_"),
        ),
        r"(?:shm|</?torch_).*No space left on device|unable to allocate shared memory ?\(shm\)"
        r"|unable to open shared memory object .*\((?:12|28)\)"
        r"|unable to (?:write to|resize) file </torch_",
    ),
    Sign(
        ("unable to open shared memory object",),
        r"unable to open shared memory object <[^>]*> in \S+ mode(?! ?:| ?\()",
        "other",
        (("host.shm_open_failed", True),),
        "open",
        60,
    ),
    _shm(
        ("sigbus", "bus error (core dumped)", "code: -7", "code=-7", "code = -7"),
        r"(?i)\bSIGBUS\b|^Bus error \(core dumped\)|(?:exit|return) ?code ?[:=] ?-7\b",
    ),
    Sign(
        ("no space left on device",),
        r"(?i:errno 28\]|os error 28\)|: )\s*No space left on device|^No space left on device"
        r"|No space left on device \(os error 28\)",
        "other",
        (("host.disk_full", True),),
        "disk",
        60,
    ),
)
REFUSALS: tuple[Sign, ...] = (
    Sign(
        ("os error 1455", "winerror 1455", "paging file is too small"),
        r"(?i)os ?error 1455|WinError 1455|paging file is too small",
        "host-oom",
        _WINDOWS,
        "paging",
    ),
    Sign(
        ("winerror 8]", "winerror 1450]", "os error 8)", "os error 1450)"),
        r"(?i)WinError (?:8|1450)\]|resources .{0,60}\(os error (?:8|1450)\)",
        "host-oom",
        _WINDOWS,
        "paging",
    ),
    Sign(
        ("cudahostalloc", "cudahostregister", "cumemhost", "cumemallochost"),
        r"\b(?:cudaHostAlloc|cudaHostRegister|cuMemHostAlloc|cuMemAllocHost|cuMemHostRegister)\w*"
        r"[^\n]{0,80}?(?i:out.?of.?memory)",
        "host-oom",
        (*_REFUSED, ("host.pinned_failed", True)),
        "pin",
    ),
    _refused(
        ("cpuallocator", "alloc_cpu", "not enough memory: you tried"),
        rf"(?:DefaultCPUAllocator|alloc_cpu\.cpp|CPUAllocator\.cpp|not enough memory: you tried)"
        rf"(?:.*?you tried to allocate (?P<host>{SIZED}))?",
    ),
    _refused(
        ("unable to mmap", "cannot allocate memory", "[errno 12]", "os error 12)", "enomem"),
        r"unable to mmap (?P<host>\d+ bytes) from file|(?:Errno 12\]|error:?|: |\.\.\.)"
        r"\s*Cannot allocate memory(?! in static)|\[Errno 12\]|\(os error 12\)"
        r"|\bCannot allocate memory \(12\)|^(?!.*(?:cuda|CUDA|GPU)).*\bENOMEM\b",
    ),
    _refused(
        ("unable to allocate", "failed to allocate cpu buffer", "memory allocation failed for"),
        rf"Unable to allocate (?P<host>{SIZED}) for an array with shape"
        r"|failed to allocate CPU buffer of size \d+|memory allocation failed for raw data"
        r"|unable to allocate memory for chunk",
    ),
    _refused(
        ("ggml_backend_cpu_buffer", "ggml_aligned_malloc"),
        r"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size "
        r"(?P<host>\d+)|ggml_aligned_malloc: insufficient memory"
        r"(?: \(attempted to allocate +(?P<host2>[\d.]+ ?[KMGT]B))?",
    ),
    _refused(
        ("memory for requested buffer of size",),
        # blocked layouts (nchwc) are made for the CPU alone
        r"Name:'\w*_nchwc'.*Failed to allocate memory for requested buffer of size (?P<host>\d+)",
    ),
    _refused(
        ("alloc of size", "commit_memory(", "for committing reserved memory"),
        r"\b(?:malloc|realloc|calloc) of size (?P<host>\d+) failed"
        r"|\bos::commit_memory\([^)]{0,80}\) failed"
        r"|\(mmap\) failed to map (?P<host2>\d+ bytes) for committing reserved memory",
    ),
    _refused(
        ("to alloc memory of", "allocate vector of size", "heap space", "heap out of memory"),
        r"Fail to alloc memory of (?P<host>\d+) size|cannot allocate vector of size \d"
        r"|OutOfMemoryError: Java heap space|JavaScript heap out of memory",
    ),
    _refused(
        ("insufficient memory)", "c error: out of memory"),
        r"-4:Insufficient memory\) Failed to allocate (?P<host>\d+ bytes)"
        r"|C error: out of memory",
    ),
    _refused(
        ("memory allocation of",),
        r"memory allocation of (?P<host>\d+ bytes) failed",
    ),
    _refused(
        ("memoryerror", "std::bad_alloc", "bad allocation"),
        # a notebook heads its traceback with the type; the message stands at its end
        r"^\s*(?:\w+\.)*_?(?:Array)?MemoryError(?!\w)(?!\s+Traceback \()"
        r"(?!.*(?:[Cc][Uu][Dd][Aa]|cuMem|hip|RMM|GPU|MEM_OBJECT_|OUT_OF_RESOURCES|device memory"
        r"|[NXHT]PU\b|METAL|\bfailed on [A-Z]))"
        r"|\bstd::bad_alloc\b(?!.*(?:CUDA|cuda|hip|out_of_memory|RMM))"
        r"|^(?:\w*Error: )?\s*bad allocation\s*$",
    ),
    _refused(
        (
            *("requires more system memory", "less than desired cpu memory"),
            *("not enough host memory available", "too large swap space"),
        ),
        r"model requires more system memory|less than desired CPU memory utilization"
        rf"|Not enough host memory available\.(?: Requesting (?P<host>{SIZED}))?"
        rf"|Too large swap space\.(?: (?P<host2>{SIZED}))?",
    ),
    Sign(
        ("in pin memory thread",),
        r"in pin memory thread for device \d+",
        "other",
        (("host.pin_thread", True),),
        "pin",
    ),
    Sign(
        ("pin memory thread exited",),
        r"Pin memory thread exited unexpectedly",
        "other",
        (("host.pin_thread", True), ("launch.worker_lost", True)),
        "pin",
    ),
    Sign(
        ("abruptly died during map",),
        r"One of the subprocesses has abruptly died during map operation",
        "host-oom",
        (("host.map_worker_died", True),),
        "map",
    ),
)
