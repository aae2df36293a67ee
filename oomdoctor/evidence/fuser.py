"""Processes that hold the device files open: `fuser -v`, `lsof`, although a table may be empty.

                         USER        PID ACCESS COMMAND
    /dev/nvidia0:        anna      21452 F...m python3
                         anna      21453 F...m python3
    /dev/nvidiactl:      anna      21452 F.... python3
    python3  21452 anna  mem  CHR  195,0   /dev/nvidia0                (lsof /dev/nvidia*)

Display servers and driver daemons always hold them and are not counted.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, stated
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Quote

ANCHORS = ("/dev/nvidia", "/dev/kfd", "pid access command")
DAEMONS = ("xorg", "x", "nvidia-persiste", "nvidia-persistenced", "systemd", "gnome-shell", "dcgm")


@cache
def _row() -> re.Pattern[str]:
    return re.compile(
        r"(?:/dev/\S+:\s+)?(?P<user>\S+)\s+(?P<pid>\d+)\s+[Fcefrm.]{3,6}\s+(?P<name>\S.*)"
    )


@cache
def _lsof() -> re.Pattern[str]:
    return re.compile(
        r"(?P<name>\S+)\s+(?P<pid>\d+)\s+(?P<user>\S+)\s+\S+\s+CHR\s.*/dev/(?:nvidia\d|kfd)"
    )


def read(document: Document) -> Reading:
    """Count the different processes."""
    holders: dict[str, tuple[str, Quote]] = {}
    for line in document.lines:
        text = line.text.strip("> \t")
        if len(text) > MAX_TABLE_LINE:
            continue
        found = _row().fullmatch(text) or _lsof().match(text)
        if found is None or found["name"].strip().lower() in DAEMONS:
            continue
        holders.setdefault(found["pid"], (found["name"].strip(), document.quote(line)))
    if not holders:
        return Reading()
    quotes = [quote for _, quote in holders.values()]
    names = "\n".join(name for name, _ in holders.values())
    return Reading(
        facts=(
            stated("gpu.device_holders", len(holders), *quotes),
            stated("gpu.holder_programs", names, *quotes),
        )
    )
