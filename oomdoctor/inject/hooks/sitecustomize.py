"""Starts our hooks in a Python process, then every other `sitecustomize` in turn.

Python loads this file at its start, since its folder stands first in PYTHONPATH. Another file of
the name (the virtual card has one) may do the same and come back here: each runs once.
"""

from __future__ import annotations

import os
import sys

# the parts of importlib that are there at any start; its own modules import a dozen others
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import PathFinder, spec_from_file_location

NAME = "_oomdoctor_inject"
HERE = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))


def load_the_package() -> None:
    """Load the package beside this folder under a name that no program uses."""
    folder = os.path.dirname(HERE)
    where = os.path.join(folder, "__init__.py")
    spec = spec_from_file_location(NAME, where, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


def run_the_next_one(ran: set[str]) -> None:
    """Run the `sitecustomize` that ours, and those that ran already, stand before."""
    left = [one for one in sys.path if os.path.realpath(one or ".") not in ran]
    spec = PathFinder.find_spec("sitecustomize", left)
    if spec is None or spec.loader is None:
        return
    ran.add(os.path.realpath(os.path.dirname(spec.origin or "")))
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module  # what it would be without ours
    spec.loader.exec_module(module)


def begin() -> None:
    """Load, let the others run, and hook last: our import hook is then asked first.

    What another one raises is its own, and Python's to print.
    """
    is_first = False
    try:
        is_first = NAME not in sys.modules
        if is_first:
            load_the_package()
            vars(sys.modules[NAME])["ran"] = {HERE}
        ran = vars(sys.modules[NAME])["ran"]
    except Exception as error:  # noqa: BLE001 - a program must start, whatever becomes of us
        ran = {HERE}
        fail(error)
    try:
        run_the_next_one(ran)
    finally:
        if is_first:
            hook()


def hook() -> None:
    """Set the hooks."""
    try:
        name = f"{NAME}.start" if IS_TRIAL else f"{NAME}.recording.start"
        __import__(name)
        sys.modules[name].start(os.environ)
        if not IS_TRIAL:  # the program finds its path as it would be; its children have PYTHONPATH
            sys.path[:] = [one for one in sys.path if os.path.realpath(one or ".") != HERE]
    except Exception as error:  # noqa: BLE001 - a program must start, whatever becomes of us
        fail(error)


def fail(error: Exception) -> None:
    """Say that a process is not watched: a trial on its error stream, a run in its folder."""
    if IS_TRIAL:
        sys.stderr.write(f"oomdoctor: this process is not watched: {error!r}\n")
        return
    recording = sys.modules.get(f"{NAME}.recording")
    if recording is not None:
        recording.note_fault(os.environ, error)


IS_TRIAL = bool(os.environ.get("OOMDOCTOR_TRIAL_SOCKET"))
if __name__ == "sitecustomize" and (IS_TRIAL or os.environ.get("OOMDOCTOR_RUN")):
    begin()
