"""Snapshots in the formats of other programs: rows of blocks, folded stacks, speedscope.

Folded stacks (`main;forward;linear 4194304`) are read by flamegraph.pl and its kin; a speedscope
file is opened at speedscope.app, also without a network.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from oomdoctor.snapshot.categories import category_of
from oomdoctor.snapshot.lives import BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.lives import Life
    from oomdoctor.snapshot.moments import Moment
    from oomdoctor.snapshot.stacks import Frame, Stack

COLUMNS = (
    "device",
    "address",
    "requested_bytes",
    "block_bytes",
    "allocated_at_event",
    "let_go_at_event",
    "free_at_event",
    "pool",
    "category",
    "file",
    "line",
    "function",
)
RISKY = ("=", "+", "-", "@", "\t", "\r")
SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"


def blocks_csv(moments: Sequence[Moment], stacks: Sequence[Stack]) -> str:
    """Return one row for each block; events that were not recorded are empty."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for _, values in _blocks(moments, stacks):
        rows.writerow("" if one is None else _harmless(one) for one in values.values())
    return text.getvalue()


def blocks_json(moments: Sequence[Moment], stacks: Sequence[Stack]) -> str:
    """Return the blocks with their whole stacks, each of which is listed once."""
    blocks = [values | {"stack": life.stack} for life, values in _blocks(moments, stacks)]
    listed = [{"frames": [one._asdict() for one in stack.frames]} for stack in stacks]
    made = {"schema_version": 1, "stacks": listed, "blocks": blocks}
    return json.dumps(made, ensure_ascii=False) + "\n"


def _blocks(
    moments: Sequence[Moment], stacks: Sequence[Stack]
) -> Iterator[tuple[Life, dict[str, Any]]]:
    for moment in moments:
        count = len(moment.device.events)
        for one in moment.lives:
            stack = stacks[one.stack]
            frame = stack.first
            values = (
                moment.device.number,
                one.address,
                one.requested,
                one.size,
                None if one.born == BEFORE else one.born,
                one.let_go if BEFORE < one.let_go < count else None,
                one.free if one.free < count else None,
                f"{one.pool[0]}.{one.pool[1]}",
                category_of(one, stack),
                *((frame.file, frame.line, frame.name) if frame else (None, None, None)),
            )
            yield one, dict(zip(COLUMNS, values, strict=True))


def _harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value.startswith(RISKY):
        return "'" + value
    return value


def folded(balances: Sequence[tuple[int, Balance]], stacks: Sequence[Stack]) -> str:
    """Return the stacks of what is held, the outermost frame first, with their bytes."""
    lines = []
    for device, balance in balances:
        for number, share in balance.stacks:
            names = [one.replace(";", ",").replace("\n", " ") for one in _names(stacks[number])]
            lines.append(f"{';'.join([f'GPU {device}', *names])} {share.held_bytes}\n")
    return "".join(lines)


def _names(stack: Stack) -> list[str]:
    if not stack.frames:
        return ["autograd's backward pass" if stack.backward else "no recorded stack"]
    return [_name(one) for one in reversed(stack.frames)]


def _name(frame: Frame) -> str:
    return f"{frame.name} ({frame.file}:{frame.line})"


def speedscope(
    balances: Sequence[tuple[int, Balance]], stacks: Sequence[Stack], name: str, exporter: str
) -> str:
    """Return a sampled profile for each card, whose weights are the bytes held."""
    numbers: dict[str, int] = {}
    frames: list[dict[str, object]] = []
    profiles = []
    for device, balance in balances:
        samples, weights = [], []
        for number, share in balance.stacks:
            stack = stacks[number]
            sample = []
            for at, label in enumerate(_names(stack)):
                if label not in numbers:
                    numbers[label] = len(frames)
                    frames.append(_speedscope_frame(label, stack, at))
                sample.append(numbers[label])
            samples.append(sample)
            weights.append(share.held_bytes)
        profiles.append(
            {
                "type": "sampled",
                "name": f"GPU {device}, before event {balance.moment}",
                "unit": "bytes",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    made = {
        "$schema": SPEEDSCOPE,
        "name": name,
        "exporter": exporter,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(made, ensure_ascii=False) + "\n"


def _speedscope_frame(label: str, stack: Stack, at: int) -> dict[str, object]:
    if not stack.frames:
        return {"name": label}
    frame = stack.frames[len(stack.frames) - 1 - at]
    return {"name": frame.name, "file": frame.file, "line": frame.line}
