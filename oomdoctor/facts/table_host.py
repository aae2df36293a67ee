"""Registry rows about the host: who was killed, whose limit ended it, what filled the memory."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, size, text

DMESG = "dmesg -T | grep -i -A40 'invoked oom-killer'"
LIMIT = "cat /sys/fs/cgroup/memory.max"
SLURM = "sacct -j $SLURM_JOB_ID -o JobID,State,ReqMem,MaxRSS,ExitCode"

ROWS = (
    enum(
        "host.kill_scope",
        "Whose memory ran out when a process was killed: the machine's, a memory group's (cgroup: "
        "job, container, service), that of some NUMA nodes, or none (a person asked for the kill).",
        ("machine", "group", "nodes", "manual"),
        obtain=DMESG,
        cost_s=5,
    ),
    enum(
        "host.killer",
        "Who killed for memory.",
        (
            *("kernel", "systemd-oomd", "earlyoom", "slurm", "batch-system"),
            *("kubernetes", "docker", "ray", "dask"),
        ),
    ),
    text("host.victim", "Name of the process that the kernel killed.", obtain=DMESG),
    count("host.victim_pid", "Its process id."),
    count("host.victim_adjustment", "Its oom_score_adj."),
    size("host.victim_total", "Its address space (total-vm)."),
    size("host.victim_anonymous", "Its resident heap (anon-rss).", obtain=DMESG, cost_s=5),
    size("host.victim_files", "Its resident mapped files, such as weights (file-rss)."),
    size("host.victim_shared", "Its resident shared memory: /dev/shm (shmem-rss)."),
    size("host.victim_resident", "All that was resident of it.", obtain=DMESG, cost_s=5),
    text("host.kill_caller", "Name of the process whose request started the killing."),
    count("host.kill_order", "Order of that request; -1 means that a person asked for it (sysrq)."),
    count("host.kills", "Processes that the kernel killed in this log."),
    text("host.group_path", "Path of the memory group that was full."),
    size("host.group_limit", "Limit of the job's or container's memory.", obtain=LIMIT, cost_s=2),
    size("host.group_used", "Use of that group at its peak or at the kill.", obtain=SLURM),
    count("host.group_failures", "How often the group met its limit (failcnt)."),
    size("host.group_anonymous", "Heap of the processes of the group."),
    size("host.group_files", "Page cache of the group."),
    size("host.group_shared", "Shared memory (/dev/shm) counted to the group."),
    size("host.swap_total", "Swap space of the machine.", obtain="free -h", cost_s=2),
    size("host.swap_free", "Free swap space.", obtain="free -h", cost_s=2),
    text("host.tasks_name", "Name that holds most resident memory in a table of processes."),
    count("host.tasks", "Processes of that name.", obtain="ps -eo rss,pid,comm --sort=-rss | head"),
    size("host.tasks_resident", "What they hold together.", obtain=DMESG, cost_s=5),
    size("host.tasks_largest", "What the largest of them holds."),
    size("host.all_resident", "What all processes of the table hold."),
    size("host.address_limit", "Limit of the address space.", obtain="ulimit -v", cost_s=2),
    size("host.address_used", "Most address space that a process of the run had mapped."),
    boolean("host.overcommit_strict", "The kernel refuses what it could not back (mode 2)."),
    boolean("host.fork_failed", "A new process could not be started for want of memory."),
    boolean(
        "host.ended_outside",
        "A time limit, a pre-emption, a cancel or a person ended the job, not a shortage.",
    ),
    boolean(
        "host.shm_open_failed",
        "A shared-memory object could not be opened, and the text gives no reason.",
    ),
    boolean("host.disk_full", "A file system other than /dev/shm had no space left."),
)
