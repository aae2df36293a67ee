"""Ordinary lines of training and serving logs, as many as wanted, with a failure among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FAILURE = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 61, in <module>\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total"
    " capacity of 31.50 GiB of which 1.00 GiB is free."
)
FAILING = FAILURE.rpartition("\n")[2]

ORDINARY: dict[str, Callable[[int], str]] = {
    "trainer": lambda at: (
        f"{{'loss': {at % 97 / 31:.4f}, 'grad_norm': 0.71, 'epoch': {at / 9e3:.2f}}}"
    ),
    "bars": lambda at: (
        f"{at % 101:3d}%|###  | {at}/900000 [{at // 60:02d}:{at % 60:02d}<9:59, 1.3it/s]"
    ),
    "deepspeed": lambda at: (
        f"[2026-03-04 05:06:{at % 60:02d},123] [INFO] [utils.py:781:see_memory_usage]"
        f" MA {at % 19}.31 GB         Max_MA 21.5 GB         CA 22.25 GB         Max_CA 23 GB"
    ),
    "torchtune": lambda at: (
        f"Step {at} | loss:{at % 7 / 3:.3f} lr:2e-05 memory/max_mem_active:17.{at % 90:02d}"
        " memory/max_mem_reserved:19.5 memory_allocated:12.25GiB"
    ),
    "json": lambda at: (
        f'{{"time":"2026-03-04T05:06:{at % 60:02d}Z","level":"INFO",'
        f'"msg":"step {at}","mem_gib":40.1}}'
    ),
    "serving": lambda at: (
        f"INFO 03-04 05:06:{at % 60:02d} [loggers.py:118] Engine 000: Avg prompt throughput:"
        f" {at % 999}.5 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.5%"
    ),
    "metrics": lambda at: f"step={at} mean_error=0.{at % 997} val_error=0.25 failures=0",
    "workers": lambda at: f"heartbeat {at}: killed workers: 0, exit code: 0, out of 8 alive: 8",
}


def lines_of(kind: str, count: int) -> list[str]:
    """Return `count` lines of one kind, each with its own figures."""
    make = ORDINARY[kind]
    return [make(at) for at in range(count)]
