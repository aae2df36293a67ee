"""Registry rows of the device: what nvidia-smi and its kin show, and the balance derived."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size, text, version

APPS = "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv"
SHM = "df -h /dev/shm"
CARDS = "nvidia-smi --query-gpu=index,name,memory.total,memory.used,memory.free --format=csv"

ROWS = (
    text("gpu.name", "Name of the failing card.", obtain=CARDS, cost_s=2),
    size("gpu.total", "Total memory of the card as a device tool or the user states it."),
    size("gpu.most", "Capacity, or the most memory that a card of that name comes with (derived)."),
    size("gpu.used", "Used memory of the failing card by a device tool.", obtain=CARDS, cost_s=2),
    size("gpu.free", "Free memory of the failing card by a device tool."),
    count("gpu.count", "Number of cards visible to the job.", obtain=CARDS, cost_s=2),
    ratio("gpu.used_share", "Used share of the failing (or fullest) card by a device tool."),
    ratio("gpu.imbalance", "Used share of the fullest card minus that of the emptiest."),
    version("gpu.compute_capability", "Compute capability, such as 8.0."),
    text("gpu.architecture", "Architecture name, such as Ampere."),
    version("gpu.driver", "Driver version.", obtain="nvidia-smi | head -4", cost_s=2),
    version("gpu.cuda", "CUDA version of the driver or of the build."),
    enum(
        "gpu.compute_mode",
        "Compute mode of the card.",
        ("default", "exclusive-process", "prohibited"),
        obtain="nvidia-smi --query-gpu=index,compute_mode --format=csv",
        cost_s=2,
    ),
    boolean("gpu.mig", "The device is a MIG slice.", obtain="nvidia-smi -L", cost_s=2),
    size("gpu.mig_slice", "Memory of that slice."),
    boolean("gpu.wddm", "The driver runs in WDDM mode (Windows) or under WSL."),
    count("gpu.process_rows", "Rows in the process table of the failing card."),
    boolean(
        "gpu.process_table_empty",
        "The process table says that nothing runs (does not prove it: containers, zombies).",
        obtain=APPS,
        cost_s=2,
        closed_by=("process-table",),
    ),
    size("gpu.largest_row", "Largest process row of the failing card."),
    count("gpu.same_program_rows", "Rows of the most frequent program on one card."),
    count("gpu.small_rows", "Rows of 0.2 to 1 GiB of the same program on one card (contexts)."),
    size("gpu.small_rows_bytes", "Their sum."),
    boolean("gpu.small_rows_only_gpu0", "Such rows stand on GPU 0 and on no other card."),
    count("gpu.not_found_rows", "Process rows without a living process ('[Not Found]')."),
    text("gpu.cards", "All cards of a table with used and total bytes, one per line."),
    count("gpu.device_holders", "Processes that hold the device files open (fuser, lsof)."),
    text("gpu.holder_programs", "Their program names, one per line."),
    text("gpu.programs", "Program names of the process rows, one per line."),
    size(
        "gpu.foreign",
        "Bytes of the card that belong to other processes (stated by a process table or derived).",
        obtain=APPS,
        cost_s=2,
    ),
    ratio("gpu.foreign_share", "gpu.foreign as a share of the capacity."),
    size(
        "balance.outside",
        "Capacity - free - reserved: contexts, libraries and other processes together.",
    ),
    size("balance.context", "This process outside the allocator: contexts, cuBLAS, NCCL."),
    size(
        "balance.foreign_low",
        "Lower bound of other processes' bytes: named, or outside minus 1.5 GiB for a context.",
    ),
    text("balance.foreign_made", "What that lower bound is made of, in figures (derived)."),
    ratio("balance.foreign_low_share", "balance.foreign_low as a share of the capacity."),
    boolean("balance.listed_is_self", "The single 'Process N' clause is this process (by size)."),
    boolean("balance.listed_twins", "Every listed process holds about as much as this one."),
    ratio("balance.allocated_share", "Allocated as a share of the capacity."),
    ratio("balance.cache_share", "Reserved-but-unallocated as a share of the capacity."),
    ratio("balance.request_share", "Requested as a share of the capacity."),
    boolean("mps.client_limit", "An MPS server set a pinned-memory limit per client."),
    size("mps.client_limit_bytes", "That limit."),
    size("host.ram_total", "Main memory of the machine.", obtain="free -h", cost_s=2),
    size("host.ram_available", "Main memory that is available.", obtain="free -h", cost_s=2),
    ratio("host.used_share", "Share of main memory in use.", obtain="free -h", cost_s=2),
    size("host.shm_total", "Size of the shared-memory mount.", obtain=SHM, cost_s=2),
    size("host.shm_available", "Free part of it.", obtain=SHM, cost_s=2),
    size("host.memlock_limit", "Limit of locked (pinned) memory.", obtain="ulimit -l", cost_s=2),
    boolean("host.memlock_unlimited", "Locked memory is not limited.", obtain="ulimit -l"),
    count("host.open_files_limit", "Limit of open files.", obtain="ulimit -n", cost_s=2),
)
