"""What launchers and job managers print when a process ends: killed, cancelled, out of time, lost.

    Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.
    mpirun noticed that process rank 3 with PID 811 on node node-a exited on signal 9 (Killed).
    =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES  /  =   EXIT CODE: 9
    NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory
    job 311 exceeds job hard limit "h_vmem" of queue "gpu.q@node-a" (68731322368 > limit:687...)
    slurmstepd: error: *** JOB 2201 ON node-b CANCELLED AT 2025-02-01T04:00:10 DUE TO TIME LIMIT ***
    torch...SignalException: Process 7 got signal: 15
    Normal   Killing    Container web failed liveness probe, will be restarted
    Worker exit type: SYSTEM_ERROR ... connection error code 2. End of file.
    [..] Connection closed by peer [10.0.0.2]:33211

The table is read by `host_signs`.
"""

from __future__ import annotations

from oomdoctor.evidence.signs import Sign

_KILLED = (("host.killed", True),)
_LIMIT = (
    ("host.oom_kill", True),
    ("host.killed", True),
    ("host.killer", "batch-system"),
    ("host.kill_scope", "group"),
)


def _ended(literals: tuple[str, ...], pattern: str, by: str) -> Sign:
    """Return the sign of an end that somebody or something other than memory brought about."""
    states = (("launch.ended_by", by), ("host.ended_outside", True))
    return Sign(literals, pattern, "other", states, "ended", 10_000)


MANAGERS = (
    Sign(
        ("h_vmem", "h_rss", "s_vmem"),
        r"exceeds job (?:hard|soft) limit \"[hs]_(?:vmem|rss)\"",
        "host-oom",
        _LIMIT,
        "oom-kill",
        500,
    ),
    Sign(
        ("ibv_", "max locked memory", "memlock", "register memory"),
        r"(?i)ibv_(?:create_cq|create_qp|reg_(?:dmabuf_)?mr\w*|alloc_pd|create_srq)\b"
        r".{0,120}?(?:failed|: Cannot allocate memory)"
        r"|set max locked memory|(?:memlock|locked memory)\b.{0,60}(?:too (?:low|small)|exceeded)"
        r"|Failed to register memory.{0,80}Cannot allocate memory",
        "other",
        (("fault.memlock", True),),
        "memlock",
        1_000_000_000,
    ),
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
        ("got signal: 1", "sighup"),
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
        ("cancelled at", "cancelled by", "pbs: job killed: deleted", "qdel", "state=cancelled"),
        r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT|State=CANCELLED|CANCELLED by \d+"
        r"|job deleted (?:at request|by)",
        "operator",
    ),
)
KILLS = (
    Sign(
        (
            "exited on signal 9",
            "signal kill (9)",
            "exit code: ",
            "srun: error:",
            "killed by signal: 9",
        ),
        r"exited on signal 9 \(Killed\)|died through signal KILL \(9\)"
        r"|^=\s+(?:EXIT CODE|KILLED BY SIGNAL): 9\b.{0,20}$|^\s*Exit code: {1,20}137\s*$"
        r"|srun: error: \S+: tasks? [\d,-]+: Killed\b",
        "host-oom",
        _KILLED,
        "sigkill",
    ),
)
LOST = (
    Sign(
        (
            "connection error code 2",
            "unexpectedly terminated",
            "worker died",
            "unexpected eof",
        ),
        r"unexpectedly exits with a connection error code 2"
        r"|managed by the executor was unexpectedly terminated"
        r"|worker died or was killed while executing a task|WorkerCrashedError: The worker died",
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
            "socket timeout",
            "could have exited or crashed",
            "might be unresponsive",
            "could be crashed",
            "remote process exited",
        ),
        r"(?:gloo|tcp/pair\.cc|TCPStore|c10d|DistNetworkError|DistBackendError|SocketImpl|NCCL"
        r"|net_socket|socket\.cc|ncclRemoteError).*?"
        r"(?:[Cc]onnection (?:closed|reset) by peer|Broken pipe|remote process exited)"
        r"|remote process exited or there was a network error",
        "peer",
        (("launch.peer_lost", True),),
        "peer",
        1_000_000_000,
        consequence=True,
    ),
    Sign(
        ("ncclsystemerror", "nccl error", "ncclunhandledcudaerror", "ncclinternalerror"),
        r"ncclSystemError: |ncclUnhandledCudaError: |ncclInternalError: |ncclRemoteError: "
        r"|NCCL error\b.{0,120}?unhandled (?:system|cuda) error",
        "peer",
        (("launch.nccl_failed", True),),
        "nccl",
        1_000_000_000,
        consequence=True,
    ),
    Sign(
        ("unhealthy_tasks", "task disconnected", "tasks are unhealthy", "task heartbeat error"),
        r"(?i)unhealthy (?:or disconnected )?tasks|tasks are unhealthy|heartbeat timeout"
        r"|task heartbeat error",
        "peer",
        (("launch.peer_lost", True),),
        "peer",
        1_000_000_000,
        consequence=True,
    ),
)
SIGNS: tuple[Sign, ...] = (*MANAGERS, *ENDED, *KILLS, *LOST)
