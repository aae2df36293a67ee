"""Texts that say a process was killed: by the kernel, a job manager, a container, or no one knows.

    Out of memory: Killed process 811 (python3) total-vm:48211000kB, anon-rss:11534336kB, ...
    systemd-oomd[812]: Killed /user.slice/.../app.scope due to memory pressure for /user.slice/...
    earlyoom[900]: sending SIGTERM to process 7123 uid 1000 "python": badness 1100, VmRSS 51234 MiB
    slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks
        have been OOM Killed.
    srun: error: node12: tasks 0-3: Out Of Memory
    8812.batch        batch OUT_OF_ME+    0:125              33403212K
      Reason:       OOMKilled
    The node was low on resource: memory. Threshold quantity: 100Mi, available: 80112Ki.
    [ERROR] [launch.py:434:sigkill_handler] ['python', 'train.py'] exits with return code = -9
    Memory on the node (IP: ...) where the task (...) was running was 60.1GB / 62.6GB (0.9601),
        which exceeds the memory usage threshold of 0.95. Ray killed this worker ...
    distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting
    mpirun noticed that process rank 3 with PID 811 on node node-a exited on signal 9 (Killed).
    =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES  /  =   EXIT CODE: 9
    job 311 exceeds job hard limit "h_vmem" of queue "gpu.q@node-a" (68731322368 > limit:687...)
    ./run.sh: line 28:     7 Killed                  python train.py

Exit status 137 and `Killed` say only that somebody sent signal 9.
"""

from __future__ import annotations

from oomdoctor.evidence.signs import Sign

KILLED = ("host.killed", True)
_REACH = 500
_OOM_KILL = (("host.oom_kill", True), KILLED)
_ENDS = r"(?:exit|return|status|termination|error)[ _-]?(?:code|status)|exitstatus|\brc"
_SAYS = r"['\"]?(?: (?:is|of|was))?[:= ]{1,12}[\"'(\[]{0,2}"
_CODE_BEFORE = r"\b(?:exited|returned|finished|failed|terminated|ended|stopped)\b.{0,50}"
_STEMS = (
    *("code: ", "code:", "code=", "code = ", 'code": ', 'code":', "code ", "code is "),
    *("status: ", "status=", 'status": ', "status ", "status of ", "with "),
)
_CODES = (
    *(f"{stem}{code}" for stem in _STEMS for code in ("137", "-9")),
    *("exit code: ", "exit: 137", "rc=137", "rc: 137", "(137)", "error 137", "exited 137"),
)


def _by(killer: str, literals: tuple[str, ...], pattern: str, scope: str = "") -> Sign:
    """Return the sign of a kill for memory by `killer`, of whose memory the text itself may say."""
    states: tuple[tuple[str, bool | str], ...] = (*_OOM_KILL, ("host.killer", killer))
    if scope:
        states = (*states, ("host.kill_scope", scope))
    return Sign(literals, pattern, "host-oom", states, "oom-kill", _REACH)


def _sigkill(literals: tuple[str, ...], pattern: str) -> Sign:
    return Sign(literals, pattern, "host-oom", (KILLED,), "sigkill")


KERNEL = _by(
    "kernel",
    ("out of memory: kill", "invoked oom-killer", "oom-kill:constraint", "oom_reaper: "),
    r"(?i)out of memory: kill(?:ed)? process \d+|invoked oom-killer|oom-kill:constraint="
    r"|oom_reaper: reaped",
)
KILLS: tuple[Sign, ...] = (
    KERNEL,
    _by(
        "systemd-oomd",
        ("due to memory pressure", "due to memory used", "systemd-oomd killed"),
        r"Killed /\S+ due to memory (?:pressure|used)|systemd-oomd killed (?:some|\d+) process",
    ),
    _by(
        "earlyoom",
        ("low memory! at or below", "vmrss"),
        r"low memory! at or below SIG(?:TERM|KILL) limits"
        r"|sending SIG(?:TERM|KILL) to process \d+.{0,200}VmRSS",
        "machine",
    ),
    _by(
        "slurm",
        (
            *("oom-kill event", "oom_kill event", "oom killed", "oom-killed"),
            *("out_of_me", "reason=outofmemory"),
        ),
        r"Detected \d+ oom.kill event|\bOOM Killed\b|\bwas OOM[- ]killed\b|\bOUT_OF_ME\+"
        r"|[Ss]tate: OUT_OF_MEMORY"
        r"|(?:^|[\s|])OUT_OF_MEMORY(?:\s+\d+:\d+|\s*\||\s*$)|JobState=OUT_OF_MEMORY"
        r"|Reason=OutOfMemory",
        "group",
    ),
    _by(
        "slurm",
        (": out of memory", "memory limit"),
        r"srun: error: (?:\S+: )?tasks? [\d,\-\[\] ]+: Out Of Memory"
        r"|(?i:exceeded (?:job |step |virtual )?memory limit)",
        "group",
    ),
    _by(
        "batch-system",
        (
            *("job killed: ", "cgroup mem limit exceeded", "term_memlimit", "gone over memory"),
            *("for exceeding memory limits", 'hard limit "h_', "cgroup memory limit"),
            *("killed due to memory usage", "replicas low on memory", "replica low on memory"),
            *("memory limit of ", 'hard limit "s_', 'soft limit "h_', 'soft limit "s_'),
        ),
        r"PBS: job killed: v?p?mem \d+\w* exceeded limit|Cgroup mem limit exceeded|TERM_MEMLIMIT"
        r"|gone over (?:cgroup )?memory limit|killed by YARN for exceeding memory limits"
        r"|exceeds job (?:hard|soft) limit \"[hs]_(?:vmem|rss)\""
        r"|exceeded hard limit \"h_(?:vmem|rss|data)\"|exceeded (?:its )?cgroup memory limit"
        r"|[Cc]ontainer killed due to memory usage|[Rr]eplicas? low on memory"
        r"|[Mm]emory limit of \d+ ?[KMG]i?B? (?:was )?exceeded",
        "group",
    ),
    _by("docker", ('"oomkilled": true',), r"\"OOMKilled\": true", "group"),
    _by(
        "kubernetes",
        ("oomkilled", "oomkilling"),
        r"\bOOMKilled\b(?!\W{1,4}[Ff]alse)|\bOOMKilling\b",
        "group",
    ),
    _by(
        "kubernetes",
        ("low on resource: memory", "system oom encountered", "[memorypressure]"),
        r"low on resource: memory\b|System OOM encountered"
        r"|node had condition: \[MemoryPressure\]",
        "machine",
    ),
    _by(
        "kernel",
        ("oom killer", "'oom-kill'"),
        r"killed by the OOM killer|result 'oom-kill'",
    ),
    _by(
        "ray",
        (
            *("low on memory", "memory pressure (oom)", "exceeds the memory usage threshold"),
            "ray-oom-prevention",
        ),
        r"node running low on memory|\bexceeds the memory usage threshold of [\d.]+"
        r"|[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure"
        r"|Refer to the documentation on how to address the out of memory issue: \S*ray-oom-",
        "machine",
    ),
    _by(
        "dask",
        ("memory budget. restarting", "memory budget. killing"),
        r"\b[Ww]orker\b.{0,80}\bexceeded \d+% memory budget\. (?:Restarting|Killing)",
        "group",
    ),
    Sign(
        ("using all available ram", "allocate more memory than is available"),
        r"crashed after using all available RAM|tried to allocate more memory than is available",
        "host-oom",
        _OOM_KILL,
        "oom-kill",
        _REACH,
    ),
    _sigkill(
        ("sigkill", "signal 9", "signal: killed"),
        r"Signal 9 \(SIGKILL\)|Signals\.SIGKILL|\bSIGKILLed\b|was sent SIGKILL|\bSIGKILL\(-9\)"
        r"|(?:killed|terminated) (?:by|with) (?:signal )?(?:9 )?\(?SIGKILL|signal: SIGKILL"
        r"|(?i:(?:killed|terminated) by signal:? 9\b|signal 9[ ,:(]{1,3}sigkill)"
        r"|signaled to shutdown with signal 9\b"
        r"|(?:has terminated|no longer running|exited|terminated\").{0,40}\bsignal: killed",
    ),
    _sigkill(
        _CODES,
        rf"(?i)(?:{_ENDS}){_SAYS}(?:137|-9)\b(?!\.?\d)"
        rf"|{_CODE_BEFORE}\b(?:(?:code|status){_SAYS})(?:137|-9)\b(?!\.?\d)"
        rf"|{_CODE_BEFORE}\bwith (?:137|-9)[.,;)]?\s*$"
        r"|\b(?:exit|non-zero code) ?[:=] ?137\b(?!\.?\d)|\bexited \(137\)"
        r"|\*\*\* \[.{1,200}\] Error 137\b|\bcommand exited(?: with)? 137\b",
    ),
    _sigkill(
        ("sigkill", "status=9", "signal 9", "signal: 9"),
        r"\bNegsignal\.SIGKILL\b|(?i:\bsignal[ :]{1,2}\[?SIGKILL\b)|\bstatus=9/KILL\b"
        r"|(?i:(?:terminated|exited|ended|died|stopped)(?: \w+)? on signal 9\b)"
        r"|(?i:\buncaught signal: 9\b)",
    ),
    _sigkill(
        (
            *("exited on signal 9", "signal kill (9)", "exit code: ", "srun: error:"),
            "killed by signal: 9",
        ),
        r"exited on signal 9 \(Killed\)|died through signal KILL \(9\)"
        r"|^=\s+(?:EXIT CODE|KILLED BY SIGNAL): 9\b.{0,20}$|^\s*Exit code: {1,20}137\s*$"
        r"|srun: error: \S+: tasks? [\d,-]+: Killed\b",
    ),
    _sigkill(
        ("killed", "已杀死", "getötet", "убито"),
        r"(?:^|(?:it/s|s/it)\])[\s*_`]*(?:Killed|已杀死|Getötet|Убито)(?:: 9)?[\s*_`!.]*$"
        r"|: line \d+:\s+\d+ Killed\b|^\[\d+\][+-]?\s+(?:\d+ )?[Kk]illed\b"
        r"|^\S*sh: (?:\d+ )?[Kk]illed\b|\*\*\* \[.*\] Killed$",
    ),
)
