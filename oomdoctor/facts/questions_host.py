"""Questions about the machine: offload, loader workers, shared memory, the system."""

from __future__ import annotations

from oomdoctor.facts.question import TRAINS, Choice, Question, yes_no

ROWS = (
    Question(
        id="offload",
        text="Are optimizer states or weights offloaded to main memory (CPU)?",
        kind="choice",
        choices=yes_no(yes=("optimizer.offload=cpu",), no=("optimizer.offload=none",), share=0.2),
        seconds=6,
        settled=("optimizer.offload",),
        only_if=TRAINS,
    ),
    Question(
        id="workers",
        text="How many DataLoader workers run (num_workers)?",
        kind="number",
        choices=(
            Choice("none", ("data.workers=0",), 0.3),
            Choice("a few", ("data.workers=2",), 0.2),
            Choice("eight", ("data.workers=8",), 0.5),
        ),
        seconds=6,
        fact="data.workers",
        settled=("data.workers",),
    ),
    Question(
        id="shm",
        text="How large is the shared memory? (df -h /dev/shm)",
        kind="number",
        choices=(
            Choice("the default of containers", ("host.shm_total=64 MiB",), 0.5),
            Choice("large", ("host.shm_total=32 GiB",), 0.5),
        ),
        seconds=8,
        fact="host.shm_total",
        settled=("host.shm_total", "host.shm_available"),
        only_if=("host.shm_error=true",),
        hint="a size such as 64M",
    ),
    Question(
        id="container",
        text="Does it run in a container (Docker, Kubernetes)?",
        kind="choice",
        choices=yes_no(yes=("env.container=true",), no=("env.container=false",), share=0.4),
        seconds=6,
        settled=("env.container",),
    ),
    Question(
        id="platform",
        text="Which operating system?",
        kind="choice",
        choices=(
            Choice("Linux", ("env.platform=linux",), 0.72),
            Choice("Windows", ("env.platform=windows",), 0.16),
            Choice("WSL2 on Windows", ("env.platform=wsl",), 0.08),
            Choice("macOS", ("env.platform=macos",), 0.04),
        ),
        seconds=5,
        settled=("env.platform",),
        answered=0.98,
    ),
)
