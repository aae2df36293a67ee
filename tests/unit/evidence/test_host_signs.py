"""Signs of exhausted main memory, shared memory and paging files never count as GPU failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import host_signs, torch_oom
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

SIGNS = [
    ("RuntimeError: DataLoader worker (pid 5) is killed by signal: Killed.", "host-oom",
     {"host.worker_killed": True, "host.killed": True}),
    ("RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error. It is", "shm",
     {"host.worker_killed": True, "host.shm_error": True}),
    ("RuntimeError: DataLoader worker (pid(s) 5, 6) exited unexpectedly", "other",
     {"launch.worker_lost": True}),
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
    ("**Killed**", "host-oom", {"host.killed": True}),
    ("| 3/9 [00:14<00:28, 14.3s/it]Killed", "host-oom", {"host.killed": True}),
    ("          exitCode: 137", "host-oom", {"host.killed": True}),
    ('  "exit_code":-9, "stopped": true', "host-oom", {"host.killed": True}),
    ("The worker returned a non-zero code: 137", "host-oom", {"host.killed": True}),
    ("0a1b  trainer:2  Exited (137) 3 minutes ago", "host-oom", {"host.killed": True}),
    ("a.service: Main process exited, code=killed, status=9/KILL", "host-oom",
     {"host.killed": True}),
    ("Task exited with return code Negsignal.SIGKILL", "host-oom", {"host.killed": True}),
    ("Memory limit of 512 MiB exceeded with 530 MiB used.", "host-oom", {"host.oom_kill": True,
     "host.killed": True, "host.killer": "batch-system", "host.kill_scope": "group"}),
    (("Memory on the node (IP: 10.0.0.2, ID: 1a) where the task (actor ID: 2b, name=W, pid=7) was "
     "running was 60.10GB / 62.60GB (0.960063), which exceeds the memory usage threshold of 0.95."),
     "host-oom", {"host.oom_kill": True, "host.killed": True, "host.killer": "ray",
     "host.kill_scope": "machine"}),
    ("distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting", "host-oom",
     {"host.oom_kill": True, "host.killed": True, "host.killer": "dask",
     "host.kill_scope": "group"}),
    ("The Pod was evicted: node had condition: [MemoryPressure].", "host-oom",
     {"host.oom_kill": True, "host.killed": True, "host.killer": "kubernetes",
     "host.kill_scope": "machine"}),
    (("# Native memory allocation (mmap) failed to map 4096 bytes for committing reserved "
     "memory."), "host-oom", {"host.allocation_failed": True, "host.requested": 4096}),
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
    (("ValueError: Available memory on node 1 (9.1/30.0 GiB) on startup is less than desired CPU "
     "memory utilization (0.9, 27.0 GiB)."), "host-oom", {"host.allocation_failed": True}),
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
        "exit: 137.5 s",
        "finished with 137 tensors, exit code 0",
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


KILL: dict[str, Value] = {"host.oom_kill": True, "host.killed": True}
KILLERS: list[tuple[str, str, str | None]] = [
    ("systemd-oomd[9]: Killed /user.slice/a.scope due to memory pressure for /user.slice being",
     "systemd-oomd", None),
    ("systemd-oomd[9]: Killed /user.slice/a.scope due to memory used (9) / total (9) and swap",
     "systemd-oomd", None),
    ("systemd[1]: a.scope: systemd-oomd killed 41 process(es) in this unit.", "systemd-oomd", None),
    ("systemd[1]: trainer.service: Failed with result 'oom-kill'.", "kernel", None),
    ("earlyoom[9]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%",
     "earlyoom", "machine"),
    ('earlyoom[9]: sending SIGKILL to process 7 uid 1 "python": badness 900, VmRSS 51234 MiB',
     "earlyoom", "machine"),
    ("slurmstepd: error: Exceeded step memory limit at some point.", "slurm", "group"),
    ("slurmstepd: error: Detected 2 oom-kill event(s) in step 8.batch cgroup. Some of your",
     "slurm", "group"),
    ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=8.0. Some of your", "slurm",
     "group"),
    ("slurmstepd: error: Job 8 exceeded virtual memory limit (9 > 8), being killed", "slurm",
     "group"),
    ("has not produced any output (state: OUT_OF_MEMORY)", "slurm", "group"),
    ("OutOfMemoryError: Container killed due to memory usage", "batch-system", "group"),
    ("Replicas low on memory: workerpool0", "batch-system", "group"),
    ("srun: error: node12: task 3: Out Of Memory", "slurm", "group"),
    ("srun: error: node12: tasks 0-3,7: Out Of Memory", "slurm", "group"),
    ("8812.batch        batch OUT_OF_ME+    0:125              33403212K", "slurm", "group"),
    ("State: OUT_OF_MEMORY (exit code 0)", "slurm", "group"),
    ("8812|train|OUT_OF_MEMORY|32Gn|", "slurm", "group"),
    ("=>> PBS: job killed: mem 68157440kb exceeded limit 67108864kb", "batch-system", "group"),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "batch-system", "group"),
    ("Error from slot1: Job has gone over memory limit of 16384 megabytes.", "batch-system",
     "group"),
    ("Warning  OOMKilling  34s  kernel-monitor  details", "kubernetes", "group"),
    ("The node was low on resource: memory. Threshold quantity: 100Mi", "kubernetes", "machine"),
    ("System OOM encountered, victim process: python, pid: 99111", "kubernetes", "machine"),
    ('            "OOMKilled": true,', "docker", "group"),
    ("Task was killed due to the node running low on memory.", "ray", "machine"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "killer", "scope"), KILLERS)
def test_who_killed_for_memory_is_named(text: str, killer: str, scope: str | None) -> None:
    reading = host_signs.read(document_of(text))

    told = {**KILL, "host.killer": killer}
    assert [failure.kind for failure in reading.failures] == ["host-oom"]
    assert ({**told, "host.kill_scope": scope} if scope else told) == {
        one.key: one.value for one in reading.facts
    }


@pytest.mark.parametrize(
    "text",
    [
        "zsh: killed     python train.py",
        'level=ERROR msg="runner terminated" error="signal: killed"',
        "[1]    4711 killed     python train.py",
        "make: *** [Makefile:7: train] Killed",
        "Loading checkpoint shards:   0%|          | 0/2 [00:00<?, ?it/s]Killed",
        "已杀死",
        "Container killed on request. Exit code is 137",
        "      Exit Code:    137",
        '            "ExitCode": 137,',
        "command terminated with exit code 137",
        "DAMN ! worker 2 (pid: 411) died, killed by signal 9 :( trying respawn ...",
        "WorkerLostError: Worker exited prematurely: signal 9 (SIGKILL) Job: 3.",
        "The exit codes of the workers are {SIGKILL(-9)}",
        "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
        "ProcessExitedException: process 0 terminated with signal SIGKILL",
    ],
)
def test_a_bare_kill_is_known_in_many_words(text: str) -> None:
    facts = {one.key: one.value for one in host_signs.read(document_of(text)).facts}
    assert facts == {"host.killed": True}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed", 4294967296),
        ("memory allocation of 8589934592 bytes failed", 8589934592),
        ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 96", 96),
        ("OSError: [Errno 12] Cannot allocate memory", None),
        ("OSError: Can't read data (unable to allocate memory for chunk)", None),
        ("RuntimeError: bad allocation", None),
        ("ParserError: Error tokenizing data. C error: out of memory", None),
        (
            "cv2.error: a.cpp:7: (-4:Insufficient memory) Failed to allocate 149299200 bytes",
            149299200,
        ),
    ],
)
def test_a_refused_allocation_of_a_library_is_known(text: str, size: int | None) -> None:
    facts = {one.key: one.value for one in host_signs.read(document_of(text)).facts}
    assert facts.get("host.allocation_failed") is True
    assert facts.get("host.requested") == size


@pytest.mark.parametrize("code", [8, 1450, 1455])
def test_windows_refusals_are_one_kind(code: int) -> None:
    text = f"OSError: [WinError {code}] The request could not be met"
    facts = {one.key: one.value for one in host_signs.read(document_of(text)).facts}
    assert facts == {"host.allocation_failed": True, "host.paging_file": True}


@pytest.mark.parametrize(
    ("before", "fact"),
    [
        ('  File "/usr/lib/python3.10/multiprocessing/shared_memory.py", line 9, in __init__',
         "host.shm_error"),
        ('  File "/env/torch/serialization.py", line 9, in save', "host.disk_full"),
    ],
)  # fmt: skip
def test_the_lines_before_tell_a_full_disk_from_full_shared_memory(before: str, fact: str) -> None:
    text = f"{before}\nOSError: [Errno 28] No space left on device"
    assert [fact] == [one.key for one in host_signs.read(document_of(text)).facts]


def test_a_refused_fork_is_told_from_a_refused_array() -> None:
    text = "    self.pid = os.fork()\nOSError: [Errno 12] Cannot allocate memory"
    facts = {one.key: one.value for one in host_signs.read(document_of(text)).facts}
    assert facts == {"host.allocation_failed": True, "host.fork_failed": True}


def test_a_kill_behind_a_time_limit_says_nothing_about_memory() -> None:
    reading = host_signs.read(document_of(raw_text("host", "slurm_time_limit.txt")))
    facts = {one.key: one.value for one in reading.facts}
    assert facts == {"host.ended_outside": True, "launch.ended_by": "time-limit"}


def test_a_cancel_behind_a_kill_for_memory_is_its_consequence() -> None:
    reading = host_signs.read(document_of(raw_text("host", "slurm_exceeded.txt")))
    told = {failure.kind: failure.consequence for failure in reading.failures}
    assert told == {"host-oom": False, "other": True}
    assert "host.ended_outside" not in {one.key for one in reading.facts}


def test_a_kill_that_a_person_asked_for_is_no_shortage() -> None:
    reading = host_signs.read(document_of(raw_text("host", "kernel_manual.txt")))
    assert {"host.ended_outside"} == {one.key for one in reading.facts}


@pytest.mark.parametrize(
    ("reason", "fact"),
    [
        (": No space left on device (28)", "host.shm_error"),
        (": Cannot allocate memory (12)", "host.shm_error"),
        ("", "host.shm_open_failed"),
    ],
)
def test_a_shared_object_fails_for_the_reason_that_is_given(reason: str, fact: str) -> None:
    text = (
        f"RuntimeError: unable to open shared memory object </torch_3_9> in read-write mode{reason}"
    )
    assert [fact] == [one.key for one in host_signs.read(document_of(text)).facts]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Job deleted at request of ada@login1", "host.ended_outside"),
        ("Received 1 death signal, shutting down workers", "host.ended_outside"),
        ("ncclRemoteError: A call failed, possibly for a network error", "launch.nccl_failed"),
        ("ABORTED: Task /job:worker/task:1 heartbeat timeout", "launch.peer_lost"),
        ("locked memory of 64 KiB is too small", "fault.memlock"),
        ('job 9 exceeds job soft limit "s_rss" of queue "a@b" (9 > limit:8)', "host.oom_kill"),
    ],
)
def test_every_text_of_the_launchers_is_reached(text: str, fact: str) -> None:
    (failure,) = host_signs.read(document_of(text)).failures
    assert fact in {one.key for one in failure.facts}


@pytest.mark.parametrize("tag", ["", "1: ", "[rank12]: "])
def test_a_comment_of_a_batch_script_is_no_kill(tag: str) -> None:
    text = (
        f"{tag}#SBATCH --mem=64G   # half was not enough: the job got killed by the OOM killer\n"
        "epoch 1: loss 2.10\n"
    )
    assert host_signs.read(document_of(text)).failures == ()
