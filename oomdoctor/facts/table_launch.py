"""Registry rows of launchers, collectives and faults that look like a shortage of memory."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, text

KERNEL = "dmesg -T | grep -i -E 'killed process|oom'"
SCHEDULER = "sacct -j JOB -o JobID,State,ExitCode,Elapsed,Timelimit,ReqMem,MaxRSS"
DRIVER = "nvidia-smi | head -4; python -m torch.utils.collect_env"

ROWS = (
    enum(
        "launch.ended_by",
        "A line says who ended the run, other than memory: a person or scheduler, its time limit, "
        "a preemption, a failed node, a health check, a hang-up of the terminal.",
        ("operator", "time-limit", "preempted", "node-failure", "health-check", "hang-up"),
        obtain=SCHEDULER,
        cost_s=5,
    ),
    count("launch.signal", "Signal that ended the first failing process, as its launcher says."),
    count("launch.exit_status", "Positive exit status of the first failing process."),
    count("launch.root_rank", "Rank of the first observed failure in a launcher's report."),
    text("launch.root_host", "Host of that rank."),
    text("launch.root_time", "Time of that failure, as printed."),
    count("launch.failed_ranks", "Ranks that a launcher's report names as failed."),
    boolean(
        "launch.worker_lost",
        "A worker process was gone and the program that tells it does not know why.",
        obtain=KERNEL,
        cost_s=3,
    ),
    boolean("launch.peer_lost", "A connection to another rank broke: that rank ended first."),
    boolean("launch.nccl_failed", "NCCL gave up, and PyTorch does not say on what."),
    count("dist.partitions", "Data-parallel partitions that ZeRO names at the start."),
    count("dist.partition_numel", "Parameters in this rank's partitions together."),
    boolean("collective.mismatch", "Ranks ran different collectives, as PyTorch's check found."),
    boolean("collective.hang", "A watchdog or heartbeat gave up on a collective that hung."),
    boolean("fault.device_index", "A device number beyond the visible devices was used."),
    boolean("fault.no_device", "No device is visible to the process.", obtain="nvidia-smi -L"),
    boolean("fault.duplicate_device", "Two ranks use the same device."),
    boolean(
        "fault.versions",
        "Driver, CUDA, cuDNN or the build for this card do not belong together.",
        obtain=DRIVER,
        cost_s=15,
    ),
    boolean(
        "fault.library_call", "A call of cuBLAS or cuDNN failed, and not for want of a handle."
    ),
    boolean("fault.device_lost", "The card failed: an Xid, an ECC error, off the bus."),
    boolean("fault.cuda_unknown", "CUDA reported an unknown error."),
    boolean("fault.launch_resources", "A kernel wants more registers or threads than there are."),
    boolean(
        "fault.memlock",
        "An RDMA library could not lock (register) memory.",
        obtain="Run once with NCCL_DEBUG=INFO and paste the lines with 'NCCL WARN'.",
        cost_s=60,
    ),
    boolean(
        "fault.negative_reserve",
        "What a program wanted to take of the free part of a card in advance came out negative.",
    ),
    boolean("fault.size_overflow", "A size is negative or beyond what an index can count."),
    boolean("assert.on_cpu", "An index out of range was reported on the CPU."),
)
