"""Made-up training runs with planted faults, recorded by the allocator model as PyTorch records.

Every line of the made-up script is a frame, so that a test can name the line of the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.allocator_snapshot import snapshot
from oomdoctor.memory.allocator_trace import Trace
from tests.unit.snapshot.runs import dice_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.allocator_block import Block

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SCRIPT, MODEL = "/home/me/train.py", "/home/me/model.py"
TORCH = "/venv/lib/python3.12/site-packages/torch/"
MAIN = ((SCRIPT, 90, "<module>"),)
SETUP = ((SCRIPT, 10, "main"), *MAIN)
FORWARD = ((SCRIPT, 20, "main"), *MAIN)
LEAK = ((SCRIPT, 22, "main"), *MAIN)
BACKWARD = ((TORCH + "_tensor.py", 626, "backward"), (SCRIPT, 24, "main"), *MAIN)
OPTIMIZER = (
    (TORCH + "optim/adamw.py", 170, "_init_group"),
    (TORCH + "optim/optimizer.py", 533, "wrapper"),
    (SCRIPT, 26, "main"),
    *MAIN,
)
UPDATE = ((TORCH + "optim/adamw.py", 420, "_multi_tensor_adamw"), *OPTIMIZER[1:])
LAYERS = 8

Frames = tuple[tuple[str, int, str], ...]


def layer(line: int = 50) -> Frames:
    """Return the stack of a line in the model's forward pass."""
    called = (TORCH + "nn/modules/module.py", 1790, "_call_impl")
    return ((TORCH + "nn/functional.py", 100, "linear"), (MODEL, line, "forward"), called, *FORWARD)


class Recorded:
    """A run of the allocator model of which stacks and notes are kept."""

    def __init__(
        self,
        settings: str = "",
        *,
        capacity: int = 64 * GIB,
        kept: int = 1_000_000,
        device: int = 0,
    ) -> None:
        """Start on an empty card; the last `kept` events are recorded."""
        self.cache = Allocator(settings, driver=Card(capacity), trace=Trace(kept))
        self.device = device
        self.note = ""
        self._stacks: dict[int, list[dict[str, Any]]] = {}

    def alloc(self, size: int, frames: Frames = (), stream: int = 0) -> Block:
        """Ask for a block from a line of the script."""
        assert self.cache.trace is not None
        stack = [{"filename": file, "line": line, "name": name} for file, line, name in frames]
        try:
            block = self.cache.alloc(size, stream)
        except OutOfMemoryError:
            self.cache.trace.entries[-1]["frames"] = stack
            raise
        self._stacks[block.address] = stack
        entry = self.cache.trace.entries[-1]
        assert entry["action"] == "alloc"
        entry["frames"] = stack
        entry["user_metadata"] = self.note
        return block

    def free(self, *blocks: Block) -> None:
        """Let go of blocks."""
        for block in blocks:
            self.cache.free(block)

    def snapshot(self) -> dict[str, Any]:
        """Return what `torch.cuda.memory._snapshot` would."""
        plain = snapshot(self.cache, device=self.device)
        for segment in plain["segments"]:
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    block["frames"] = self._stacks.get(block["address"], [])
        return plain


def train(
    run: Recorded,
    *,
    steps: int = 40,
    extra: Callable[[Recorded, int], None] | None = None,
    length: Callable[[int], int] = lambda _: 512,
    setup: Frames = SETUP,
) -> Recorded:
    """Record weights, optimizer states at the first step, and steps that free what they took."""
    for _ in range(LAYERS):
        run.alloc(64 * MIB, setup)
    states: list[Block] = []
    try:
        for step in range(steps):
            _step(run, step, length(step), states, extra)
    except OutOfMemoryError:
        pass
    return run


def _step(
    run: Recorded,
    step: int,
    tokens: int,
    states: list[Block],
    extra: Callable[[Recorded, int], None] | None,
) -> None:
    batch = run.alloc(tokens * 8, FORWARD)
    kept = [run.alloc(tokens * 16 * KIB, layer(50 + at)) for at in range(LAYERS)]
    if extra is not None:
        extra(run, step)
    gradients = []
    while kept:
        gradients.append(run.alloc(64 * MIB, BACKWARD))
        run.free(kept.pop())
    if not states:
        states += [run.alloc(128 * MIB, OPTIMIZER) for _ in range(LAYERS)]
    scratch = run.alloc(96 * MIB, UPDATE)
    run.free(scratch, *gradients, batch)


def leak(size: int, every: int = 1) -> Callable[[Recorded, int], None]:
    """Keep a block of this size at line 22 of every so many steps."""

    def keep(run: Recorded, step: int) -> None:
        if step % every == 0:
            run.alloc(size, LEAK)

    return keep


def longer(step: int) -> int:
    """Return lengths that only grow."""
    return 128 + 32 * step


def shuffled(step: int) -> int:
    """Return lengths in no order."""
    return dice_of(step).randrange(64, 2048)
