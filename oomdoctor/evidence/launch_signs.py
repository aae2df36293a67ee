"""What launchers and job managers print when a process ends: cancelled, out of time, lost.

    NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory
    slurmstepd: error: *** JOB 2201 ON node-b CANCELLED AT 2025-02-01T04:00:10 DUE TO TIME LIMIT ***
    torch...SignalException: Process 7 got signal: 15
    Normal   Killing    Container web failed liveness probe, will be restarted
    Worker exit type: SYSTEM_ERROR ... connection error code 2. End of file.
    nbclient.exceptions.DeadKernelError: Kernel died
    RuntimeError: One or more background workers are no longer alive. Exiting. Please check ...
    distributed.scheduler.KilledWorker: Attempted to run task 'f-1' on 4 different workers, but ...
    [..] Connection closed by peer [10.0.0.2]:33211

The table is read by `host_signs`. Kills are in `host_kill_texts`.
"""

from __future__ import annotations

from oomdoctor.evidence.signs import Sign

_FAR = 1_000_000_000


def _ended(literals: tuple[str, ...], pattern: str, by: str) -> Sign:
    """Return the sign of an end that somebody or something other than memory brought about."""
    states = (("launch.ended_by", by), ("host.ended_outside", True))
    return Sign(literals, pattern, "other", states, "ended", 10_000)


MEMLOCK = Sign(
    ("ibv_", "locked memory", "memlock", "register memory"),
    r"(?i)ibv_(?:create_cq|create_qp|reg_(?:dmabuf_)?mr\w*|alloc_pd|create_srq)\b"
    r".{0,120}?(?:failed|: Cannot allocate memory)"
    r"|set max locked memory|(?:memlock|locked memory)\b.{0,60}(?:too (?:low|small)|exceeded)"
    r"|Failed to register memory.{0,80}Cannot allocate memory",
    "other",
    (("fault.memlock", True),),
    "memlock",
    _FAR,
)
ENDED = (
    _ended(
        ("due to time limit", "term_runlimit", "pbs: job killed: walltime", '"h_rt"', '"s_rt"'),
        r"DUE TO TIME LIMIT|TERM_RUNLIMIT|PBS: job killed: walltime"
        r"|exceeds job (?:hard|soft) limit \"[hs]_rt\"",
        "time-limit",
    ),
    _ended(
        (
            "due to preemption",
            "term_preempt",
            "preemption",
            "preempted",
            "interruption",
            "reclaimed",
            "maintenance event",
        ),
        r"DUE TO PREEMPTION|TERM_PREEMPT|\bspot (?:instance )?interruption\b"
        r"|\bPreempted (?:by|in)\b|[Pp]od was preempted"
        r"|instance (?:was|is being|will be) (?:preempted|reclaimed)|\bhost maintenance event\b"
        r"|JobState=PREEMPTED|State=PREEMPTED",
        "preempted",
    ),
    _ended(
        ("due to node failure", "node_fail", "node failure on"),
        r"DUE TO NODE FAILURE|State=NODE_FAIL|[Nn]ode failure on \S+",
        "node-failure",
    ),
    _ended(
        ("liveness probe", "health check", "startup probe", "ephemeral-storage"),
        r"failed (?:liveness|startup) probe, will be (?:restarted|killed)"
        r"|low on resource: ephemeral-storage|killed? .{0,40}failed health checks?",
        "health-check",
    ),
    _ended(
        ("got signal: 1", "sighup", "death signal"),
        r"SignalException: Process \d+ got signal: 1\b|got signal: Signals\.SIGHUP"
        r"|Received (?:Signals\.SIGHUP|1) death signal",
        "hang-up",
    ),
    _ended(
        ("got signal: 15", "got signal: 2", "death signal", "received sigterm", "term_owner"),
        r"SignalException: Process \d+ got signal: (?:2|15)\b|[Rr]eceived SIGTERM\b|TERM_OWNER"
        r"|Received (?:Signals\.SIG(?:TERM|INT)|2|15) death signal",
        "operator",
    ),
    _ended(
        ("cancelled at", "cancelled by", "job deleted ", "state=cancelled"),
        r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT|State=CANCELLED|CANCELLED by \d+"
        r"|[Jj]ob deleted (?:at request|by)",
        "operator",
    ),
)
LOST = (
    Sign(
        (
            *("connection error code 2", "unexpectedly terminated", "worker died"),
            *("terminated abruptly", "kernel died", "kernel appears to have died", "deadkernel"),
            *("are no longer alive", "6 feet under", "killedworker", "died while running it"),
        ),
        r"unexpectedly exits with a connection error code 2"
        r"|managed by the executor was unexpectedly terminated"
        r"|worker died or was killed while executing a task|WorkerCrashedError: The worker died"
        r"|process in the process pool was terminated abruptly|\bkernel appears to have died"
        r"|DeadKernelError|^\W{0,4}[Kk]ernel died\b"
        r"|[Ww]orkers? (?:processes )?(?:is|are) (?:no longer alive|6 feet under)"
        r"|\bKilledWorker: |workers,? (?:but )?all those workers died while running it",
        "lost",
        (("launch.worker_lost", True),),
        "lost",
        500,
    ),
    Sign(
        (
            "connection closed by peer",
            "connection reset by peer",
            "broken pipe",
            "remote process exited",
        ),
        r"(?:gloo|tcp/pair\.cc|TCPStore|c10d|DistNetworkError|DistBackendError|SocketImpl|NCCL"
        r"|net_socket|socket\.cc|ncclRemoteError).*?"
        r"(?:[Cc]onnection (?:closed|reset) by peer|Broken pipe|remote process exited)"
        r"|remote process exited or there was a network error",
        "peer",
        (("launch.peer_lost", True),),
        "peer",
        _FAR,
        consequence=True,
    ),
    Sign(
        (
            *("nccl error", "ncclsystemerror", "ncclunhandledcudaerror"),
            *("ncclinternalerror", "ncclremoteerror"),
        ),
        r"ncclSystemError: |ncclUnhandledCudaError: |ncclInternalError: |ncclRemoteError: "
        r"|NCCL error\b.{0,120}?unhandled (?:system|cuda) error",
        "peer",
        (("launch.nccl_failed", True),),
        "nccl",
        _FAR,
        consequence=True,
    ),
    Sign(
        (
            *("unhealthy tasks", "disconnected tasks", "tasks are unhealthy"),
            *("heartbeat timeout", "task heartbeat error"),
        ),
        r"(?i)unhealthy (?:or disconnected )?tasks|tasks are unhealthy|heartbeat timeout"
        r"|task heartbeat error",
        "peer",
        (("launch.peer_lost", True),),
        "peer",
        _FAR,
        consequence=True,
    ),
)
SIGNS: tuple[Sign, ...] = (MEMLOCK, *ENDED, *LOST)
