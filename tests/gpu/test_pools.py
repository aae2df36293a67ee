"""PyTorch's other allocator, which leaves memory to CUDA's own pools."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

PROGRAM = """
import torch
first = torch.ones(10 << 20, dtype=torch.uint8, device="cuda")
second = torch.ones(30 << 20, dtype=torch.uint8, device="cuda")
del first
print(torch.cuda.memory_allocated() >> 20, torch.cuda.max_memory_allocated() >> 20)
held = torch.cuda.memory_reserved()
del second
torch.cuda.empty_cache()
print(held >= 40 << 20, torch.cuda.memory_reserved() < held)
"""


def test_a_pool_counts_what_is_allocated_and_keeps_what_is_freed(torch: Any) -> None:
    del torch
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["30", "40", "True", "True"]
