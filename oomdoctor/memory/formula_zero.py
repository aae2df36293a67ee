"""ZeRO's gradients on the tape: buckets that are filled and reduced, and this rank's part of them.

| stage | gradients in backward | what stays until the step |
|---|---|---|
| 1 | whole until the last micro-step ends | of weights that lie, even in part, in rank 0's |
| 2 | in a bucket; a full one is copied once more to be reduced | the same |
| 3 | in a bucket that is there from the start, reduced as in 2 | a part of each, from the start |

Read off `deepspeed/runtime/zero` of 0.19. The step copies the part in 16 bits and again in fp32;
the norm before it turns one weight's part after the other into fp64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_gather import TRAINERS
from oomdoctor.memory.tape import COMMUNICATION, GRADIENT, Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.tape import Param, Tape
    from oomdoctor.model.job import Job

KINDS = ("zero1", "zero2", "zero3")
BUCKET = 500_000_000
"""Values of a bucket (reduce_bucket_size) where no trainer fills in hidden size squared."""
SUB_GROUP = 1_000_000_000
SPLITS_WEIGHTS = 3
"""The stage that splits weights as well."""
HALF, FP32, FP64 = 2, 4, 8


class Buckets:
    """Takes the gradients of all weights that train."""

    def __init__(
        self, tape: Tape, job: Job, weights: Sequence[tuple[Param, int]], *, hidden: int
    ) -> None:
        """Read the job; nothing is allocated yet."""
        sharding = job.sharding
        self.tape = tape
        self.stage = KINDS.index(sharding.kind) + 1
        self.ranks = max(1, sharding.ranks)
        self.offloads = job.optimizer is not None and job.optimizer.offload is not None
        self.trained = [(param, times) for param, times in weights if param.trains]
        values = min(BUCKET, hidden**2) if job.framework in TRAINERS else BUCKET
        self.bucket = sharding.bucket_bytes or values * HALF
        self.number = 2 if sharding.overlap and self.stage < SPLITS_WEIGHTS else 1
        self.held: dict[object, Block] = {}
        self.filled = 0
        self.buffers: Block | None = None
        self.own: Block | None = None
        self.last = True
        for param, _ in self.trained:
            param.unit = self

    @property
    def values(self) -> int:
        """Return the number of values that this rank steps."""
        return sum(param.count * times for param, times in self.trained) // self.ranks

    def load(self) -> None:
        """Make what stage 3 holds from the start."""
        if self.stage == SPLITS_WEIGHTS and self.trained:
            self.buffers = self.tape.block(self.bucket, COMMUNICATION)
            if not self.offloads:
                self.own = self.tape.block(self.values * HALF, GRADIENT)

    def begin(self) -> None:
        """Make the buckets of a backward pass."""
        if self.buffers is None and self.trained:
            self.buffers = self.tape.block(self.number * self.bucket, COMMUNICATION)

    def take(self, of: object, grad: Block) -> None:
        """Receive a gradient."""
        if self.stage == 1:
            if of not in self.held:
                grad.move(GRADIENT)
                self.held[of] = grad
            return
        if grad.size > self.bucket:
            self._keep_part()
            return
        if self.filled + grad.size > self.bucket:
            self._reduce(self.filled)
            self.filled = 0
        self.filled += grad.size

    def skip(self, of: object, size: int) -> None:
        """Receive the gradients of layers that are not walked."""
        if self.stage == 1:
            self.held.setdefault(of, self.tape.block(size, GRADIENT))
            return
        self._reduce(min(self.bucket, size))

    def finish(self) -> None:
        """Reduce what is left at the end of backward, and free the buckets."""
        if self.stage == 1 and self.last and self.held:
            self._reduce_held()
        elif self.stage > 1:
            self._reduce(self.filled)
            self.filled = 0
        if self.stage < SPLITS_WEIGHTS:
            self.buffers = None

    def step(self) -> Block:
        """Return what a step needs for a moment."""
        if self.offloads:
            return self.tape.block(0)
        largest = max((param.count for param, _ in self.trained), default=0)
        if self.stage == SPLITS_WEIGHTS:
            part = min(self.values, SUB_GROUP)
            norm = FP64 * largest // self.ranks
        else:
            part = self.values
            norm = FP64 * min(largest, self.values)
        return self.tape.block(max(norm, (HALF + FP32) * part))

    def forget(self) -> None:
        """Set the gradients to None; stage 3 keeps the room of its part."""
        self.held.clear()
        if self.stage < SPLITS_WEIGHTS:
            self.own = None

    def _keep_part(self) -> None:
        """Make room for all weights that overlap with this rank's part, once."""
        if self.own is not None or self.stage == SPLITS_WEIGHTS:
            return
        if self.offloads:
            largest = max((param.count for param, _ in self.trained), default=0)
            self.own = self.tape.block(largest * HALF, GRADIENT)
            return
        values = 0
        for param, times in self.trained:
            for _ in range(times):
                if values >= self.values:
                    break
                values += param.count
        self.own = self.tape.block(values * HALF, GRADIENT)

    def _reduce(self, size: int) -> None:
        flat = self.tape.block(size, COMMUNICATION)
        del flat
        self._keep_part()

    def _reduce_held(self) -> None:
        """Move whole gradients into the bucket until it is full, reduce it, then the others."""
        for of, grad in list(self.held.items()):
            if self.filled + grad.size <= self.bucket:
                self.filled += grad.size
                del self.held[of]
            del grad
        self._reduce(self.filled)
        self.filled = 0
        self.held.clear()
