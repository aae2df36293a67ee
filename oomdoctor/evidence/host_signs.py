"""The plain signs that main memory, /dev/shm or the paging file ran out, not the GPU.

    RuntimeError: DataLoader worker (pid 14647) is killed by signal: Killed.
    RuntimeError: DataLoader worker (pid 325) is killed by signal: Bus error. It is ...
    Out of memory: Killed process 811 (python3) total-vm:48211000kB, anon-rss:11534336kB, ...
    slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks
        have been OOM Killed.
    [ERROR] [launch.py:434:sigkill_handler] ['python', 'train.py'] exits with return code = -9
    DefaultCPUAllocator: can't allocate memory: you tried to allocate 34359738368 bytes. Error ...
    OSError: The paging file is too small for this operation to complete. (os error 1455)
    RuntimeError: One of the subprocesses has abruptly died during map operation.

Kernel dumps, job managers and containers are read in detail elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.events import merged
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.signs import SIZED, Sign, event_of, hits
from oomdoctor.model.core import Reading
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.evidence.events import Event
    from oomdoctor.model.core import Document

_KILLED = ("host.killed", True)
_OOM_KILL = (("host.oom_kill", True), _KILLED)
_SHM = (("host.shm_error", True),)
_REFUSED = (("host.allocation_failed", True),)
_BEFORE_137 = ("code ", "code: ", "code=", "status ", "status: ")
_GPU_FIRST = ("cuda out of memory", "hip out of memory", "tried to allocate", "outofmemoryerror")

SIGNS: tuple[Sign, ...] = (
    Sign(
        ("is killed by signal: killed",),
        r"DataLoader worker \(pid \d+\) is killed by signal: Killed",
        "host-oom",
        (("host.worker_killed", True), _KILLED),
        "worker",
    ),
    Sign(
        ("is killed by signal: bus error",),
        r"DataLoader worker \(pid \d+\) is killed by signal: Bus error",
        "shm",
        (*_SHM, ("host.worker_killed", True)),
        "shm",
        60,
    ),
    Sign(
        ("bus error encountered in worker", "insufficient shared memory"),
        r"Unexpected bus error encountered in worker|insufficient shared memory \(shm\)",
        "shm",
        _SHM,
        "shm",
        60,
    ),
    Sign(
        ("exited unexpectedly", "is killed by signal: "),
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:exited unexpectedly|is killed by signal)",
        "other",
        (("host.worker_killed", True),),
        "worker",
    ),
    Sign(
        ("posix_fallocate failed", "shared memory segment", "failed to extend /dev/shm"),
        r"posix_fallocate failed ?: No space|Error while creating shared memory segment"
        r"|failed to extend /dev/shm/\S+ to \d+ bytes",
        "shm",
        _SHM,
        "shm",
        60,
    ),
    Sign(
        ("no space left on device", "unable to allocate shared memory", "shared memory object"),
        r"(?:shm|</?torch_).*No space left on device|unable to allocate shared memory ?\(shm\)"
        r"|unable to open shared memory object .*\((?:12|28)\)",
        "shm",
        _SHM,
        "shm",
        60,
    ),
    Sign(
        ("sigbus", "bus error (core dumped)", "code: -7", "code=-7", "code = -7"),
        r"(?i)\bSIGBUS\b|^Bus error \(core dumped\)|(?:exit|return) ?code ?[:=] ?-7\b",
        "shm",
        _SHM,
        "shm",
        60,
    ),
    Sign(
        ("out of memory: kill", "invoked oom-killer", "oom-kill:constraint", "oom_reaper: "),
        r"(?i)out of memory: kill(?:ed)? process \d+|invoked oom-killer|oom-kill:constraint="
        r"|oom_reaper: reaped",
        "host-oom",
        _OOM_KILL,
        "oom-kill",
        500,
    ),
    Sign(
        ("oom-kill event", "oom_kill event", "oom killed", "oomkilled", "oom killer", "'oom-kill'"),
        r"Detected \d+ oom.kill event|\bOOM Killed\b|\bOOMKilled\b(?!\"?: ?[Ff]alse)"
        r"|killed by the OOM killer|result 'oom-kill'",
        "host-oom",
        _OOM_KILL,
        "oom-kill",
        500,
    ),
    Sign(
        (": out of memory", "memory limit", "low on memory", "memory pressure (oom)"),
        r"srun: error: .*: task \d+: Out Of Memory|exceeded (?:job |step |virtual )?memory limit"
        r"|Exceeded (?:job|step) memory limit|node running low on memory"
        r"|[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure",
        "host-oom",
        _OOM_KILL,
        "oom-kill",
        500,
    ),
    Sign(
        ("sigkill", "signals.sigkill", "perhaps out of memory"),
        r"Signal 9 \(SIGKILL\)|Signals\.SIGKILL|\bSIGKILLed\b|was sent SIGKILL"
        r"|(?:killed|terminated) by (?:signal )?(?:9 )?\(?SIGKILL|signal: SIGKILL",
        "host-oom",
        (_KILLED,),
        "sigkill",
    ),
    Sign(
        ("code: -9", "code = -9", "code=-9", "code -9", *(f"{one}137" for one in _BEFORE_137)),
        r"(?i)\b(?:exit|return) ?code ?[:= ] ?-9\b|\bexit(?:ed)?(?: with)? ?(?:code|status)"
        r"[:= ]{1,3}137\b|\bexit code: 137\b|\b(?:exit|return)code ?[:=] ?137\b",
        "host-oom",
        (_KILLED,),
        "sigkill",
    ),
    Sign(
        ("killed",),
        r"^\s*Killed(?:: 9)?\s*$|: line \d+:\s+\d+ Killed\b|^\[\d+\][+-]?\s+(?:\d+ )?Killed\b"
        r"|^\S*sh: \d+ Killed\b",
        "host-oom",
        (_KILLED,),
        "sigkill",
    ),
    Sign(
        ("os error 1455", "winerror 1455", "paging file is too small"),
        r"(?i)os ?error 1455|WinError 1455|paging file is too small",
        "host-oom",
        (*_REFUSED, ("host.paging_file", True)),
        "paging",
    ),
    Sign(
        ("cpuallocator", "alloc_cpu", "not enough memory: you tried"),
        rf"(?:DefaultCPUAllocator|alloc_cpu\.cpp|CPUAllocator\.cpp|not enough memory: you tried)"
        rf"(?:.*?you tried to allocate (?P<host>{SIZED}))?",
        "host-oom",
        _REFUSED,
        "cpu-allocator",
    ),
    Sign(
        ("unable to mmap", "cannot allocate memory"),
        r"unable to mmap (?P<host>\d+ bytes) from file|(?:Errno 12\]|error:?|: )"
        r"\s*Cannot allocate memory",
        "host-oom",
        _REFUSED,
        "cpu-allocator",
    ),
    Sign(
        ("unable to allocate", "failed to allocate cpu buffer"),
        rf"Unable to allocate (?P<host>{SIZED}) for an array with shape"
        r"|failed to allocate CPU buffer of size \d+",
        "host-oom",
        _REFUSED,
        "cpu-allocator",
    ),
    Sign(
        ("memoryerror", "std::bad_alloc"),
        r"^\s*(?:\w+\.)*_?(?:Array)?MemoryError(?!\w)"
        r"(?!.*(?:[Cc][Uu][Dd][Aa]|cuMem|hip|RMM|GPU|MEM_OBJECT_|OUT_OF_RESOURCES))"
        r"|\bstd::bad_alloc\b(?!.*(?:CUDA|cuda|hip|out_of_memory|RMM))",
        "host-oom",
        _REFUSED,
        "cpu-allocator",
    ),
    Sign(
        ("requires more system memory",),
        r"model requires more system memory",
        "host-oom",
        _REFUSED,
        "cpu-allocator",
    ),
    Sign(
        ("in pin memory thread", "pin memory thread exited"),
        r"in pin memory thread for device \d+|Pin memory thread exited unexpectedly",
        "other",
        (("host.pin_thread", True),),
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

ANCHORS = tuple(dict.fromkeys(one for sign in SIGNS for one in sign.literals))


def read(document: Document) -> Reading:
    """Return one failure for each sign that stands apart, and the facts for the whole input.

    What follows from a GPU failure says nothing about the host, so it gives no such facts.
    """
    haystack = haystack_of(document)
    events = merged(event_of(document, hit) for hit in hits(haystack, SIGNS))
    gpu_lines = haystack.lines_with(_GPU_FIRST) if events else []
    gpu_first = gpu_lines[0] if gpu_lines else None
    failures = tuple(_after_gpu(event, gpu_first).failure for event in events)
    own = [failure for failure in failures if not failure.consequence]
    whole = {one.key: one for failure in reversed(own) for one in failure.facts}
    return Reading(facts=tuple(whole.values()), failures=failures)


def _after_gpu(event: Event, gpu_first: int | None) -> Event:
    """Mark a SIGKILL behind a GPU failure as its consequence: launchers kill the other ranks."""
    if event.family != "sigkill" or gpu_first is None or gpu_first > event.first:
        return event
    return event._replace(failure=replace(event.failure, consequence=True))
