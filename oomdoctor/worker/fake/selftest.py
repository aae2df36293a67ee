"""Tries the fake card in a process of its own, because a wrong one ends the process.

The worker itself may start no process; `python -m oomdoctor.worker.fake.selftest` is what
a caller starts. In the worker, the versions for which it has passed are known (`PROVEN`); for any
other torch the worker forks, tries in the child, and reads the child's exit status.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from oomdoctor.worker.errors import ShimFailedError

PROVEN = ("2.13.0",)
PASSED = 0


@cache
def require_fake_card() -> None:
    """Raise ShimFailedError where this build of torch cannot have a fake card."""
    import torch

    from oomdoctor.worker.fake.shim import check_slots, header_slots

    check_slots(header_slots())
    version = str(torch.__version__)
    if version.split("+", maxsplit=1)[0] in PROVEN and torch.version.cuda is None:
        return
    status = _status_of_child()
    if status != PASSED:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        raise ShimFailedError(
            f"the self-test of the fake card ended with {how} under torch {version}",
            hint="the estimate then traces the job on fake tensors of the host",
        )


def _status_of_child() -> int:
    """Fork, try the card in the child, and return its exit status (a signal as -number)."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os._exit(attempt())
    _, waited = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(waited)


def attempt() -> int:
    """Train two steps of a small model on the card; 0 where all came out as it must."""
    try:
        return PASSED if _trained() else 3
    except Exception:  # noqa: BLE001 - whatever it is, the card cannot be relied on
        return 4


def _trained() -> bool:
    import torch

    from oomdoctor.model.job import CardSpec
    from oomdoctor.worker.fake.card import FakeCard
    from oomdoctor.worker.fake.shim import Shim

    card = CardSpec(name="self-test", capability=(8, 0), processors=108, total_bytes=80 << 30)
    with FakeCard(card, Shim()) as fake:
        layer = torch.nn.Linear(64, 64, device="cuda", dtype=torch.bfloat16)
        optimizer = torch.optim.AdamW(layer.parameters())
        peaks = []
        for _ in range(2):
            rows = torch.zeros(32, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            heads = layer(rows * 2).view(1, 32, 4, 16).transpose(1, 2)
            mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
            (mixed.float() + heads.float()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            peaks.append(fake.tracker.allocated)
            del rows, heads, mixed
        kept = fake.kernels.wrappers.works
        weights = 2 * (64 * 64 + 64)
        return kept and peaks[0] == peaks[1] and fake.tracker.allocated >= weights * 3


if __name__ == "__main__":
    sys.exit(attempt())
