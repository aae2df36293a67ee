"""Starts the hooks of a trial in a Python process, then every other `sitecustomize` in turn.

Python loads this file at its start, since its folder stands first in PYTHONPATH. Another file of
the name (the virtual card has one) may do the same and come back here: each runs once.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

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
    spec.loader.exec_module(module_from_spec(spec))


def begin() -> None:
    """Load, let the others run, and hook last: our import hook is then asked first."""
    first = NAME not in sys.modules
    if first:
        load_the_package()
        vars(sys.modules[NAME])["ran"] = {HERE}
    run_the_next_one(vars(sys.modules[NAME])["ran"])
    if first:
        from importlib import import_module

        import_module(f"{NAME}.start").start(os.environ)


if __name__ == "sitecustomize" and os.environ.get("OOMDOCTOR_TRIAL_SOCKET"):
    try:
        begin()
    except Exception as error:  # noqa: BLE001 - a program must start, whatever becomes of us
        sys.stderr.write(f"oomdoctor: this process is not watched: {error!r}\n")
