"""Questions about what happened: which memory, when, how it grew, what was tried."""

from __future__ import annotations

from oomdoctor.facts.question import Choice, Question, yes_no

GROWS = ("growth.monotone=true", "growth.points=3")
FLAT = ("growth.monotone=false", "growth.points=3", "growth.quantity=device")

ROWS = (
    Question(
        id="memory",
        text="What did the failing program say last?",
        kind="choice",
        choices=(
            Choice(
                "CUDA out of memory (PyTorch, GPU)",
                (
                    "oom.seen=true",
                    "oom.backend=cuda",
                    "oom.form=allocator",
                    "oom.absurd_size=false",
                ),
                0.62,
            ),
            Choice(
                "CUDA error: out of memory, without any size",
                ("oom.seen=true", "oom.backend=cuda", "oom.form=runtime", "oom.absurd_size=false"),
                0.06,
            ),
            Choice(
                "Killed (exit code 137 or -9, SIGKILL), no other message",
                ("host.killed=true",),
                0.09,
            ),
            Choice(
                "a kernel, Slurm or Kubernetes line about the kill (OOMKilled)",
                ("host.oom_kill=true",),
                0.03,
            ),
            Choice(
                "bus error, or no space in shared memory (/dev/shm)", ("host.shm_error=true",), 0.04
            ),
            Choice("a DataLoader worker was killed or exited", ("host.worker_killed=true",), 0.03),
            Choice(
                "MemoryError, cannot allocate memory (main memory)",
                ("host.allocation_failed=true",),
                0.03,
            ),
            Choice(
                "Windows: the paging file is too small (error 1455)",
                ("host.paging_file=true",),
                0.01,
            ),
            Choice(
                "an engine (vLLM, SGLang) refused to start for want of memory",
                (
                    "oom.seen=true",
                    "oom.form=engine",
                    "run.phase=serve-start",
                    "oom.absurd_size=false",
                ),
                0.03,
            ),
            Choice(
                "out of memory on another accelerator or framework",
                ("oom.seen=true", "oom.backend=other", "oom.absurd_size=false"),
                0.03,
            ),
            Choice(
                "a device-side assertion (often 'index out of bounds')",
                ("assert.device_side=true",),
                0.02,
            ),
            Choice("an illegal memory access", ("fault.illegal_access=true",), 0.01),
        ),
        seconds=4,
        settled=(
            "oom.seen",
            "host.killed",
            "host.oom_kill",
            "host.shm_error",
            "host.worker_killed",
            "host.allocation_failed",
            "host.paging_file",
            "host.pinned_failed",
            "assert.device_side",
            "fault.illegal_access",
            "failure.other",
        ),
        answered=0.97,
        hint="paste the message if you have it",
    ),
    Question(
        id="when",
        text="When did it fail?",
        kind="choice",
        choices=(
            Choice("while loading the model, before any step", ("run.phase=load",), 0.14),
            Choice(
                "in the first training step",
                ("run.phase=forward", "run.first_step=true", "run.late_step=false"),
                0.25,
            ),
            Choice(
                "in a later training step, after many good ones",
                ("run.phase=forward", "run.first_step=false", "run.late_step=true"),
                0.20,
            ),
            Choice("in the backward pass", ("run.phase=backward",), 0.07),
            Choice("in the optimizer's step", ("run.phase=optimizer",), 0.04),
            Choice("in evaluation, validation or testing", ("run.phase=eval",), 0.10),
            Choice("while saving a checkpoint", ("run.phase=save",), 0.03),
            Choice("on resuming from a checkpoint", ("run.phase=resume", "resume.on=true"), 0.03),
            Choice(
                "while generating, or in a plain inference script",
                ("run.phase=generate", "train.inference=true"),
                0.08,
            ),
            Choice("while a serving engine starts", ("run.phase=serve-start",), 0.02),
            Choice("while a serving engine answers requests", ("run.phase=serve",), 0.02),
            Choice("while merging or converting weights", ("run.phase=merge",), 0.01),
        ),
        seconds=8,
        settled=("run.phase",),
        answered=0.93,
        hint="the number, or your own words: 'in validation, after about 300 samples'",
    ),
    Question(
        id="story",
        text="What happened, in your own words? What ran, when it failed, what you saw and tried.",
        kind="words",
        choices=(
            Choice("the first step fails", ("run.phase=forward", "run.first_step=true"), 0.25),
            Choice("others are on the card", ("balance.foreign_low_share=0.2",), 0.10),
            Choice(
                "it grows in training", ("run.phase=forward", *GROWS, "run.late_step=true"), 0.12
            ),
            Choice("it grows in evaluation", ("run.phase=eval", *GROWS), 0.08),
            Choice("loading fails", ("run.phase=load",), 0.15),
            Choice("resuming fails", ("run.phase=resume", "resume.on=true"), 0.05),
            Choice("saving fails", ("run.phase=save",), 0.04),
            Choice("a library was updated", ("history.changed=library",), 0.06),
            Choice("a smaller batch runs", ("trial.smaller_batch=runs",), 0.15),
        ),
        seconds=20,
        settled=("run.phase", "growth.monotone", "trial.smaller_batch", "history.changed"),
        only_if=("oom.seen=true",),
        answered=0.8,
        hint="for example: training is fine, validation fails after some batches, one 24 GB card",
    ),
    Question(
        id="step",
        text="How far had it got?",
        kind="choice",
        choices=(
            Choice(
                "the very first step or batch", ("run.first_step=true", "run.late_step=false"), 0.4
            ),
            Choice(
                "many good steps came before", ("run.first_step=false", "run.late_step=true"), 0.4
            ),
            Choice(
                "the end of an epoch, or a saving point",
                ("run.first_step=false", "run.late_step=true", "run.epoch_boundary=true"),
                0.2,
            ),
        ),
        seconds=7,
        settled=("run.first_step", "run.late_step", "run.step"),
        only_if=(
            "run.phase!=load",
            "run.phase!=import",
            "run.phase!=resume",
            "run.phase!=serve-start",
        ),
    ),
    Question(
        id="grows",
        text="Does memory use grow while it runs?",
        kind="choice",
        choices=(
            Choice("no, it stays flat or fails at once", FLAT, 0.45),
            Choice(
                "GPU memory rises a little with every training step",
                (*GROWS, "growth.quantity=device", "run.late_step=true", "run.first_step=false"),
                0.15,
            ),
            Choice(
                "it rises during evaluation or prediction only",
                (*GROWS, "growth.quantity=device", "run.phase=eval"),
                0.08,
            ),
            Choice(
                "it rises from epoch to epoch",
                (*GROWS, "growth.quantity=device", "run.late_step=true", "run.epoch_boundary=true"),
                0.07,
            ),
            Choice(
                "each new run, trial or notebook cell starts higher",
                ("oom.repeats_same_allocated=true", "growth.quantity=device"),
                0.08,
            ),
            Choice(
                "main memory (RAM) rises, not the GPU's", (*GROWS, "growth.quantity=host"), 0.07
            ),
            Choice(
                "mostly flat, with single batches far above the others",
                (*FLAT, "run.late_step=true", "run.first_step=false"),
                0.10,
            ),
        ),
        seconds=7,
        settled=("growth.monotone", "growth.per_step"),
        only_if=("run.phase!=load", "run.phase!=import", "run.phase!=serve-start"),
        answered=0.75,
        hint="watch nvidia-smi (or free -h) over some steps",
    ),
    Question(
        id="smaller",
        text="What happens with half the batch, or half the length?",
        kind="choice",
        choices=(
            Choice("it runs", ("trial.smaller_batch=runs",), 0.5),
            Choice("it fails later", ("trial.smaller_batch=later",), 0.2),
            Choice("it fails at the same point", ("trial.smaller_batch=same",), 0.3),
        ),
        seconds=8,
        settled=("trial.smaller_batch",),
        answered=0.6,
    ),
    Question(
        id="changed",
        text="Did the same job run before, and what has changed since?",
        kind="choice",
        choices=(
            Choice("it never ran, or nothing changed", ("history.changed=nothing",), 0.60),
            Choice("the GPU driver", ("history.changed=driver",), 0.03),
            Choice(
                "a library was updated (or the tool itself)", ("history.changed=library",), 0.12
            ),
            Choice("the code", ("history.changed=code",), 0.08),
            Choice("the data", ("history.changed=data",), 0.05),
            Choice("settings: batch, length, model", ("history.changed=settings",), 0.07),
            Choice("the machine or the card", ("history.changed=machine",), 0.05),
        ),
        seconds=12,
        settled=("history.changed",),
        answered=0.8,
    ),
    Question(
        id="resume",
        text="Does the run continue from a checkpoint (while a fresh start runs)?",
        kind="choice",
        choices=yes_no(yes=("resume.on=true",), no=("resume.on=false",), share=0.12),
        seconds=6,
        settled=("resume.on",),
        only_if=("train.inference!=true",),
    ),
)
