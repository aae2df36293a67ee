"""A decoder allocates here what it allocated on a real card, block by block.

The snapshots were taken by others on a real card with torch 2.11; the decoder is written anew from
their sizes and call stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.gpu.scripts import run_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SNAPSHOTS = ROOT.parent / "shared" / "snapshots"
KINDS = {"alloc": 1, "free_completed": -1}
ARGUMENTS = {
    "a-ctx128-training": ("--length", "128"),
    "a-ctx512-training": ("--length", "512", "--amp"),
    "a-ctx256-inference": ("--length", "256", "--task", "inference"),
    "a-ctx1024-inference": ("--length", "1024", "--task", "inference"),
}


def events(path: Path) -> list[int]:
    """Return the sizes of blocks in order, negative where one was freed."""
    import pickle

    with path.open("rb") as file:
        trace = pickle.load(file)["device_traces"][0]  # noqa: S301 - ours, or from the workplace
    return [KINDS[entry["action"]] * entry["size"] for entry in trace if entry["action"] in KINDS]


def heights(sizes: list[int]) -> Iterator[int]:
    height = 0
    for size in sizes:
        height += size
        yield height


@pytest.mark.parametrize("name", ARGUMENTS)
def test_blocks_and_their_peak_are_those_of_a_real_card(
    torch: Any, tmp_path: Path, name: str
) -> None:
    recorded = SNAPSHOTS / f"{name}.pickle"
    if not recorded.exists():
        pytest.skip("the snapshots of a real card are not here")
    made = tmp_path / "made.pickle"

    ran = run_script(
        torch, tmp_path / "run", "decoder.py", (*ARGUMENTS[name], "--snapshot", str(made))
    )

    assert ran.outcome == "fit", ran.output
    ours, theirs = events(made), events(recorded)
    assert [one for one in ours if one > 0] == [one for one in theirs if one > 0]
    assert max(heights(ours)) == max(heights(theirs))
