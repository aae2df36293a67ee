"""Decisions in Python that need a value which only a kernel could compute.

Python loads this file at its start, since its folder stands first in PYTHONPATH. A module is
patched when the program imports it:

- torch runs the kernels it was compiled with, and operators on small values run on the host as well
  (inside/known_values.py).
- `generate` of transformers asks the card whether all rows are finished. Here they are finished
  when the longest permitted length is reached.
- Steps of several ranks take a quarter of a second.
- What torch and safetensors save goes to a scratch folder (inside/files.py).
- `broadcast_object_list` of torch.distributed sends pickled objects over the cards. Here they go
  through the store that the ranks share.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.abc
import importlib.machinery
import os
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

Library: TypeAlias = Any
"""A module or object of a library that this file cannot import to know its type."""


def stop_at_the_longest_length(generation: Library) -> None:
    """Let generation end at its longest length, which the host knows."""
    criterion = generation.MaxLengthCriteria
    ask_the_card = criterion.__call__
    reached = [False]

    def call(self: Library, input_ids: Library, scores: Library, **more: Library) -> Library:
        reached[0] = reached[0] or input_ids.shape[-1] >= self.max_length
        return ask_the_card(self, input_ids, scores, **more)

    def has_unfinished(*_: Library, **__: Library) -> bool:
        over, reached[0] = reached[0], False
        return not over

    criterion.__call__ = call
    generation.GenerationMixin._has_unfinished_sequences = has_unfinished  # noqa: SLF001 - the loop asks it


def send_objects_through_the_store(distributed: Library) -> None:
    """Let objects pass from rank to rank as bytes of the store."""
    sent = [0]

    def broadcast_object_list(
        object_list: list[Library],
        src: int | None = None,
        group: Library = None,
        device: Library = None,
        group_src: int | None = None,
    ) -> None:
        import pickle

        del device  # there is nothing to move to it
        root = src if src is not None else group_src or 0
        if src is None and group is not None and group_src is not None:
            root = distributed.get_global_rank(group, group_src)
        store = distributed._get_default_store()  # noqa: SLF001 - the one the group was made with
        sent[0] += 1
        key = f"oomdoctor/objects/{sent[0]}"
        if distributed.get_rank() == root:
            store.set(key, pickle.dumps(list(object_list)))
        else:
            object_list[:] = pickle.loads(store.get(key))  # noqa: S301 - as the original does

    distributed.broadcast_object_list = broadcast_object_list


def pace_steps(optimizers: Library) -> None:
    """Let time pass after a step of several ranks, as it does on real cards.

    The thread that watches NCCL gives tensors back ten times a second. Where steps take no time,
    it is chance how many it still holds.
    """
    import time

    seconds = float(os.environ.get("OOMDOCTOR_VIRTUAL_PACE_S") or PACE_S)

    def rest(*_: Library, **__: Library) -> None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available():
            return
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            time.sleep(seconds)

    if seconds > 0:
        optimizers.register_optimizer_step_post_hook(rest)


def inside(name: str) -> Library:
    """Load a module of the package beside this folder, under a name that no program uses."""
    if NAME not in sys.modules:
        folder = Path(__file__).resolve().parent.with_name("inside")
        where, inner = folder / "__init__.py", [str(folder)]
        spec = spec_from_file_location(NAME, where, submodule_search_locations=inner)
        if spec is None or spec.loader is None:
            raise ImportError(f"there is no {where}")
        sys.modules[NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return importlib.import_module(f"{NAME}.{name}")


def fit_torch(torch: Library) -> None:
    """Run the kernels that torch was compiled with, and follow small values."""
    # torch.cuda.get_arch_list knows them, too, but a process that asked it may not fork
    for version in re.findall(r"code=sm_(\d+)", torch.__config__.show()):
        ctypes.CDLL(None).vc_add_compiled(int(version))
    if os.environ.get("OOMDOCTOR_VIRTUAL_VALUES") != "0":
        if hasattr(torch.library, "get_kernel"):
            inside("known_values").follow_known_values(torch)
        else:
            inside("older_torch").stand_in_for_masks(torch)


PACE_S = 0.25
SCRATCH: dict[str, Library] = {}
NAME = "_oomdoctor_virtual"


def apart(name: str) -> Callable[[Library], None]:
    """Return a patch that keeps the program's files of tensors apart, where a folder is named."""

    def patch(module: Library) -> None:
        files = inside("files")
        folder = os.environ.get("OOMDOCTOR_VIRTUAL_SCRATCH")
        if folder and Path(folder).is_dir():
            SCRATCH.setdefault(folder, files.Scratch(folder))
            getattr(files, name)(module, SCRATCH[folder])

    return patch


def fit_and_keep_apart(torch: Library) -> None:
    """Make both changes to torch."""
    fit_torch(torch)
    apart("keep_apart_torch")(torch)


KEEP: list[Library] = []
"""What the library only borrows."""
PATCHES: dict[str, Callable[[Library], None]] = {
    "torch": fit_and_keep_apart,
    "torch.optim.optimizer": pace_steps,
    "safetensors": apart("read_apart_safetensors"),
    "safetensors.torch": apart("keep_apart_safetensors"),
    "transformers.generation.utils": stop_at_the_longest_length,
    "torch.distributed.distributed_c10d": send_objects_through_the_store,
}


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and patches it."""

    def __init__(self, loader: Library, patch: Callable[[Library], None]) -> None:
        self.loader = loader
        self.patch = patch

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Library:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        try:
            self.patch(module)
        except (AttributeError, TypeError) as error:  # another version of the library
            sys.stderr.write(f"oomdoctor virtual card: {module.__name__}: {error!r}\n")

    def __getattr__(self, name: str) -> Library:
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are patched."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = PATCHES.get(fullname)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if patch else None
        if patch is None or spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, patch)
        return spec


def _run_the_other_one() -> None:
    """Run the sitecustomize that ours stands before, if there is one."""
    here = Path(__file__).resolve().parent
    others = [one for one in sys.path if Path(one).resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def tell_places_and_crashes() -> None:
    """Let the library ask for the line under way, and let a crash show where it was."""
    import atexit
    import faulthandler
    import resource

    driver = ctypes.CDLL(None)
    if not hasattr(driver, "vc_set_finder"):
        return  # a process that was started without the library

    finder = inside("places").finder()
    driver.vc_set_finder(finder)
    atexit.register(driver.vc_set_finder, None)
    KEEP.append(finder)
    if not faulthandler.is_enabled() and sys.stderr is not None:
        faulthandler.enable()
    driver.vc_watch_crashes()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder())
    tell_places_and_crashes()
    _run_the_other_one()
