"""Signs of exhausted main memory, shared memory and paging files never count as GPU failures."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import host_signs, torch_oom
from tests.unit.evidence.documents import document_of

SIGNS = [
    ("RuntimeError: DataLoader worker (pid 5) is killed by signal: Killed.", "host-oom",
     {"host.worker_killed": True, "host.killed": True}),
    ("RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error. It is", "shm",
     {"host.worker_killed": True, "host.shm_error": True}),
    ("RuntimeError: DataLoader worker (pid(s) 5, 6) exited unexpectedly", "other",
     {"host.worker_killed": True}),
    (("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
     "shared memory (shm)."), "shm", {"host.shm_error": True}),
    ("NCCL WARN Call to posix_fallocate failed : No space left on device", "shm",
     {"host.shm_error": True}),
    ("Out of memory: Killed process 12 (python3) total-vm:1kB, anon-rss:1kB", "host-oom",
     {"host.oom_kill": True, "host.killed": True, "host.killer": "kernel"}),
    (("slurmstepd: error: Detected 2 oom_kill events in StepId=5.0. Some of the step tasks have "
     "been OOM Killed."), "host-oom", {"host.oom_kill": True, "host.killed": True,
     "host.killer": "slurm", "host.kill_scope": "group"}),
    ("    Reason:       OOMKilled", "host-oom", {"host.oom_kill": True, "host.killed": True,
     "host.killer": "kubernetes", "host.kill_scope": "group"}),
    ("[ERROR] [launch.py:1:sigkill_handler] ['python'] exits with return code = -9", "host-oom",
     {"host.killed": True}),
    ("failed (exitcode: -9) local_rank: 1 (pid: 7) of binary: /usr/bin/python", "host-oom",
     {"host.killed": True}),
    ("worker exited with code 137", "host-oom", {"host.killed": True}),
    ("make: *** [train] exit status 137", "host-oom", {"host.killed": True}),
    ("Killed", "host-oom", {"host.killed": True}),
    ("./run.sh: line 28:     7 Killed                  python train.py", "host-oom",
     {"host.killed": True}),
    ("failed (exitcode: -7) local_rank: 1 (pid: 7) of binary: /usr/bin/python", "shm",
     {"host.shm_error": True}),
    (("RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
     "allocate memory: you tried to allocate 1048576 bytes. Error code 12"), "host-oom",
     {"host.allocation_failed": True, "host.requested": 1048576}),
    ("RuntimeError: unable to mmap 4096 bytes from file </x>: Cannot allocate memory (12)",
     "host-oom", {"host.allocation_failed": True, "host.requested": 4096}),
    (("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 2.00 KiB for an array with "
     "shape (1,)"), "host-oom", {"host.allocation_failed": True, "host.requested": 2048}),
    ("OSError: The paging file is too small for this operation to complete. (os error 1455)",
     "host-oom", {"host.allocation_failed": True, "host.paging_file": True}),
    ("RuntimeError: One of the subprocesses has abruptly died during map operation.To debug",
     "host-oom", {"host.map_worker_died": True}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "stated"), SIGNS)
def test_a_sign_gives_its_kind_and_its_facts(
    text: str, kind: str, stated: dict[str, object]
) -> None:
    document = document_of(text)

    reading = host_signs.read(document)

    assert [kind] == [failure.kind for failure in reading.failures]
    assert stated == {one.key: one.value for one in reading.facts}
    assert torch_oom.read(document).failures == ()


@pytest.mark.parametrize(
    "text",
    [
        "step 137 loss 2.5",
        "[INFO] [launch.py:318:sigkill_handler] Killing subprocess 80",
        '"OOMKilled": false,',
        "Killed 3 stale jobs before the start",
        "Process exited with code 1",
        "0 Workers (tasks / actors) killed due to memory pressure (OOM)",
    ],
)
def test_healthy_lines_give_no_sign(text: str) -> None:
    assert host_signs.read(document_of(text)).failures == ()


def test_a_kill_behind_a_gpu_failure_is_a_consequence_without_facts() -> None:
    text = "RuntimeError: CUDA out of memory.\nexits with return code = -9"

    reading = host_signs.read(document_of(text))

    assert [failure.consequence for failure in reading.failures] == [True]
    assert reading.facts == ()
