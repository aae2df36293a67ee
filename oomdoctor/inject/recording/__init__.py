"""The flight recorder's inside: writes down what a process does with memory, and changes nothing.

It uses the hooks of a trial (steps, phases, failures) with a line that is a file, a meter that
takes no figure away from the program, and at an out-of-memory error writes down what only the dying
process knows. Standard library only, as all of `inject/`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def note_fault(environment: Mapping[str, str], error: BaseException) -> None:
    """Note in the run's folder that a process is not recorded, and why."""
    import os

    try:
        path = os.path.join(environment["OOMDOCTOR_RUN"], "processes", f"{os.getpid()}.fault.txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{error!r}\n")
    except OSError:
        return
