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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.run.training import STEPS
from oomdoctor.worker.twins.optimizer import state_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.job import EntrySpec
    from oomdoctor.worker.observer import Observer

_PARTS = ("model", "optimizer", "step")
_WORDS = {"true": True, "false": False, "none": None}


class Made(NamedTuple):
    """What the user's function returned."""

    model: Any
    optimizer: Any
    step: Callable[[], object]


def run_entry(entry: EntrySpec, device: torch.device, observer: Observer) -> None:
    """Run the function, then two steps, and tell the observer where they are."""
    observer.phase("load")
    made = parts_of(_called(function_of(entry), entry, device), entry.place)
    if isinstance(made.model, torch.nn.Module):
        observer.model(made.model)
        observer.tag([*made.model.parameters(), *made.model.buffers()], "weights")
    for name in STEPS:
        observer.phase(name, "forward")
        with _told(made.optimizer, observer, name):
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
    try:
        module = _of_file(place, entry.folder) if place.endswith(".py") else _of_name(place)
    except ImportError as error:
        raise UnsupportedError(
            f"{place} cannot be imported: {error}",
            hint="run oomdoctor where your code is, or name the interpreter with --python",
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise UnsupportedError(f"{place} has no function {name}")
    function: Callable[..., object] = found
    return function


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
