"""Cards of one job on which the same memory lies outside PyTorch's pool.

[rank2]: ... (GPU 2; 79.19 GiB total capacity; ... 60.56 MiB free; 67.50 GiB reserved ...)
[rank5]: ... (GPU 5; 79.19 GiB total capacity; ... 60.56 MiB free; 67.50 GiB reserved ...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.model.core import Fact, Quote

_OF_OUTSIDE = ("oom.capacity", "oom.free", "torch.reserved")
_SAME = 0.01
_QUOTED = 20


def equal_cards(events: Sequence[Event]) -> Iterator[Fact]:
    """Yield on how many cards the same memory lies outside the pool, where two or more tell it.

    Strangers seldom hold the same to within a hundredth on several cards; what a job keeps there
    itself (buffers of collectives, kernels of a library) does.
    """
    held: dict[int, tuple[int, Quote]] = {}
    for event in events:
        told = {one.key: one.value for one in event.failure.facts}
        index, figures = told.get("oom.gpu_index"), [told.get(key) for key in _OF_OUTSIDE]
        numbers = [one for one in figures if isinstance(one, int) and not isinstance(one, bool)]
        if isinstance(index, int) and len(numbers) == len(_OF_OUTSIDE):
            outside = numbers[0] - numbers[1] - numbers[2]
            held.setdefault(index, (outside, event.failure.line_quote))
    if len(held) < 2:
        return
    first = next(iter(held.values()))[0]
    same = [quote for size, quote in held.values() if abs(size - first) <= _SAME * abs(first)]
    yield fact("oom.equal_cards", len(same), same[:_QUOTED])
