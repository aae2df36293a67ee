from __future__ import annotations

import pytest

from oomdoctor.worker.fake.reductions import Reduction, buffers


# bytes of partial results and counters as torch 2.13's CUDA host code takes them
@pytest.mark.parametrize(
    ("expected", "sizes", "strides", "reduced", "width", "processors"),
    [
        ((448, 4), (1024, 896), (896, 1), (True, True), 4, 108),
        ((7340032, 28), (1024, 896), (896, 1), (True, False), 4, 108),
        ((7340032, 28), (1024, 896), (896, 1), (True, False), 2, 108),
        ((), (1024, 896), (896, 1), (False, True), 4, 108),
        ((64, 4), (512, 256), (256, 1), (True, True), 4, 108),
        ((), (17,), (1,), (True,), 4, 132),
    ],
)
def test_a_reduction_takes_buffers_where_several_blocks_share_it(
    expected: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    reduced: tuple[bool, ...],
    width: int,
    processors: int,
) -> None:
    assert expected == buffers(Reduction(sizes, strides, reduced, width, 4), processors)
