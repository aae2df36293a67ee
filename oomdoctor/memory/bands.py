"""By how much each engine's peak may be off, from comparisons with measured runs.

Each share covers 95 % of the comparable records of `fixtures/measured` and is rounded up to a whole
percent; those that a verdict uses end at 8 %, so that "tight" says something. A test computes them
from `results.json`, and `docs/accuracy.md` shows the figures.

`off` is how far the allocated peak may lie to either side. A card is compared with what must be
reserved: `up` is how far that may lie above the estimate where "fits" is still said, `down` how
far below where "oom" is.

| says | of what is | records | 95 % within | worst | share |
|---|---|---|---|---|---|
| simulation | allocated, either side | 62 | 0.9 % | 2.6 % | 3 % |
| simulation | reserved, more was needed | 17 | 6.6 % | 6.6 % | 7 % |
| simulation | reserved, less was needed | 17 | 6.1 % | 6.1 % | 7 % |
| formula | allocated, either side | 27 | 15.3 % | 22.5 % | 16 % |
| formula | reserved, more was needed | 31 | 6.7 % | 13.4 % | 7 % |
| formula | reserved, less was needed | 4 | 10.3 % | 10.3 % | 8 % |

The first is that of the worst record: code of one's own and other versions of the libraries seldom
agree to the last tensor.
"""

from __future__ import annotations

from oomdoctor.record import NamedTuple

FRAGMENTED = 1.08
"""What must be reserved over what is allocated at the peak, where no allocator was asked.

The median of 56 simulated jobs of eight models (1.01 to 1.40, `fixtures/simulated/room.json`).
"""
WIDEST = 0.08
"""The most of `up` and `down`."""


class Band(NamedTuple):
    """Shares of the peak."""

    off: float
    up: float
    down: float


SIMULATION = Band(off=0.03, up=0.07, down=0.07)
PLAIN_SIMULATION = Band(off=0.06, up=0.08, down=0.08)
"""Traced on fake CPU tensors, where the one for CUDA could not be set up: no record says more."""
FORMULA = Band(off=0.16, up=0.07, down=0.08)
VIRTUAL = SIMULATION
"""Run by torch's own code, but no record was run so: that code is seldom what was measured."""
