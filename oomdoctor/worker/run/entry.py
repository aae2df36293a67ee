"""A function of the user as the job: its model, its optimizer and its step, on any device.

It runs only where a person named it on the command line. The function takes a `device` or not, and
returns model, optimizer (or None) and step, as three values or as an object with these names;
`step()` is called for each step, and does all that a step does.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from oomdoctor.worker.errors import UnsupportedError, WorkerError
from oomdoctor.worker.run.training import STEPS
from oomdoctor.worker.twins.optimizer import state_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.job import EntrySpec
    from oomdoctor.worker.observer import Observer

_PARTS = ("model", "optimizer", "step")
_LIBRARIES = ("<", sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]))
_WORDS = {"true": True, "false": False, "none": None}


class Made(NamedTuple):
    """What the user's function returned."""

    model: Any
    optimizer: Any
    step: Callable[[], object]


def run_entry(entry: EntrySpec, device: torch.device, observer: Observer) -> None:
    """Run the function, then two steps, and tell the observer where they are."""
    observer.phase("load")
    function = function_of(entry)
    with _theirs(entry):
        result = _called(function, entry, device)
    made = parts_of(result, entry.place)
    if isinstance(made.model, torch.nn.Module):
        observer.model(made.model)
        observer.tag([*made.model.parameters(), *made.model.buffers()], "weights")
    for name in STEPS:
        observer.phase(name, "forward")
        with _told(made.optimizer, observer, name), _theirs(entry, "'s step"):
            made.step()
        if made.optimizer is not None and hasattr(made.optimizer, "state"):
            observer.tag(state_tensors(made.optimizer), "optimizer")


def function_of(entry: EntrySpec) -> Callable[..., object]:
    """Import the function, from a module or from a file."""
    place, _, name = entry.place.rpartition(":")
    if not place or not name:
        raise UnsupportedError(f"{entry.place!r} is not module:function or file.py:function")
    if entry.folder not in sys.path:
        sys.path.insert(0, entry.folder)
    module = _imported(place, entry.folder)
    found = getattr(module, name, None)
    if not callable(found):
        there = [key for key, one in vars(module).items() if inspect.isfunction(one)]
        own = ", ".join(key for key in there if not key.startswith("_"))
        hint = f"its functions: {own}" if own else "define it there, or name another module"
        raise UnsupportedError(f"{place} has no function {name}", hint=hint)
    function: Callable[..., object] = found
    return function


def _imported(place: str, folder: str) -> Any:
    """Import the module; whatever stops it, its end included, is told with its place."""
    try:
        return _of_file(place, folder) if place.endswith(".py") else _of_name(place)
    except ImportError as error:
        raise UnsupportedError(
            f"{place} cannot be imported: {error}",
            hint="run oomdoctor where your code is, or name the interpreter with --python",
        ) from error
    except BaseException as error:  # an exit or an interrupt of their own ends no worker
        raise UnsupportedError(
            f"{place} cannot be imported: {_fault(error)}",
            hint="correct it: `python -m` or `python FILE.py` shows the whole fault",
        ) from error


@contextmanager
def _theirs(entry: EntrySpec, what: str = "") -> Iterator[None]:
    """Turn whatever the user's code raises into one sentence with its place in that code."""
    try:
        yield
    except WorkerError:
        raise
    except BaseException as error:
        raise UnsupportedError(
            f"{entry.place}{what} raised {_fault(error)}",
            hint="correct it; values on the fake card are not known, so that code which checks"
            " them, or needs a real card, has to leave that out here",
        ) from error


def _fault(error: BaseException) -> str:
    """Return an exception in a line, with the last line of the user's own code that ran."""
    said = str(error).strip().partition("\n")[0]
    frames = [
        one
        for one in traceback.extract_tb(error.__traceback__)
        if not one.filename.startswith(_LIBRARIES) and "site-packages" not in one.filename
    ]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{place}"


def _of_name(place: str) -> Any:
    return importlib.import_module(place)


def _of_file(place: str, folder: str) -> Any:
    path = Path(folder, place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {path}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _called(function: Callable[..., object], entry: EntrySpec, device: torch.device) -> object:
    known = inspect.signature(function).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    odd = [name for name in entry.arguments if name not in known and not takes_any]
    if odd:
        raise UnsupportedError(f"{entry.place} takes no argument {', '.join(odd)}")
    given: dict[str, object] = {name: value_of(text) for name, text in entry.arguments.items()}
    if "device" in known:
        given.setdefault("device", device)
    return function(**given)


def value_of(text: str) -> object:
    """Return an argument as a number or a truth value where it reads as one, else as its text."""
    low = text.strip().lower()
    if low in _WORDS:
        return _WORDS[low]
    found = _number(text, int)
    if found is None:
        found = _number(text, float)
    return text if found is None else found


def _number(text: str, kind: Callable[[str], int | float]) -> int | float | None:
    try:
        return kind(text)
    except ValueError:
        return None


def parts_of(made: object, place: str) -> Made:
    """Return model, optimizer and step of what a function returned."""
    if isinstance(made, (tuple, list)) and len(made) == len(_PARTS):
        found = dict(zip(_PARTS, made, strict=True))
    elif isinstance(made, dict):
        found = made
    else:
        found = {name: getattr(made, name, None) for name in _PARTS}
    step = found.get("step")
    if not callable(step):
        raise UnsupportedError(
            f"{place} returned no step",
            hint="it has to return (model, optimizer, step), where step() takes one step",
        )
    return Made(found.get("model"), found.get("optimizer"), step)


@contextmanager
def _told(optimizer: Any, observer: Observer, phase: str) -> Iterator[None]:
    """Tell the parts of a step: where backward begins, and the optimizer."""
    plain = torch.autograd.backward

    def backward(*arguments: Any, **named: Any) -> Any:
        observer.phase(phase, "backward")
        return plain(*arguments, **named)

    torch.autograd.backward = backward
    handles = []
    if isinstance(optimizer, torch.optim.Optimizer):
        handles = [
            optimizer.register_step_pre_hook(lambda *_: observer.phase(phase, "optimizer")),
            optimizer.register_step_post_hook(lambda *_: observer.phase(phase, "zero-grad")),
        ]
    try:
        yield
    finally:
        torch.autograd.backward = plain
        for handle in handles:
            handle.remove()
