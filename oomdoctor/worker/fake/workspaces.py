"""Memory that kernels take for themselves while they run, which no result shows."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from oomdoctor.worker.fake.tracker import Tracker

GEMMS = frozenset({"mm.out", "addmm.out", "bmm.out", "baddbmm.out"})


class Workspaces:
    """x"""

    def __init__(self, tracker: Tracker, sm: tuple[int, int]) -> None:
        self._tracker = tracker
        self._sm = sm
        self._handles: set[int] = set()

    def before(self, operator: OpOverload, arguments: tuple[Any, ...]) -> None:
        """Account for what is taken before the results are made."""
        n = operator._schema.name[6:] + "." + operator._schema.overload_name
        if n in GEMMS:
            t = threading.get_ident()
            if t not in self._handles:
                self._handles.add(t)
                self._tracker.workspace(
                    8519680 if self._sm[0] != 9 else 32 << 20, "cublas workspace", kept=True
                )

    def after(self, operator: OpOverload, arguments: tuple[Any, ...], result: object) -> None:
        """Account for what is taken while the results are written."""
