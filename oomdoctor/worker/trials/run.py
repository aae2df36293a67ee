"""Runs a job for some steps on real tensors, and says how far it came and what it needed."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from oomdoctor.lab.protocol import RunResult
from oomdoctor.worker.run.job import run_job
from oomdoctor.worker.trials.failures import told
from oomdoctor.worker.trials.gauge import device_of, gauge_of
from oomdoctor.worker.trials.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.lab.protocol import RunRequest
    from oomdoctor.model.trial import PhasePeak

_LATER_STEP = "step 2"
_SEED = 7
_SCORE = "800"  # of 1,000


def run(request: RunRequest, say: Callable[[str, tuple[PhasePeak, ...]], None]) -> RunResult:
    """Run the phases of a job; what is not about memory leaves as the error it is.

    The weights are random, the tokens have the longest length that the job allows.
    """
    began = time.monotonic()
    _be_the_first_to_go()
    torch.manual_seed(_SEED)
    device = device_of(request.device)
    gauge = gauge_of(device, request.cap_bytes)
    watch = Watch(gauge, say)
    oom = None
    try:
        with gauge.counting():
            run_job(request.job, device, watch, steps=request.steps)
            watch.close()
    except Exception as error:
        oom = told(error, device)
        if oom is None:
            raise
        watch.failed()
    later = [one.seconds for one in watch.phases if one.name == _LATER_STEP and one.seconds]
    return RunResult(
        phases=tuple(watch.phases),
        oom=oom,
        seconds=time.monotonic() - began,
        step_seconds=None if oom or not later else later[-1],
        assumptions=tuple(dict.fromkeys(watch.assumptions)),
        rss_bytes=max((one.host_bytes or 0 for one in watch.phases), default=0),
    )


def _be_the_first_to_go() -> None:
    """Let the kernel end this trial before other work where the host runs out of memory."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_SCORE, encoding="ascii")
