"""Makes any build of torch accept tensors of a 'cuda' device that is not there, without a compiler.

Two things in torch ask for a device. c10 keeps a *device guard* for each kind of device: a build
without CUDA has none, and any op that needs one aborts the process. torch puts a guard that does
nothing in the place of one that counts no devices (`_ensureCUDADeviceGuardSet`), so a guard whose
every method answers 0 is registered first. ATen keeps *CUDA hooks*, an object on the heap: its
table of virtual methods is copied, and in the copy `isBuilt` answers 1 and `hasPrimaryContext` 0.
Which entries these are is counted in the header that the wheel holds. A wrong entry ends the
process, so the whole is tried in a process of its own (`selftest`) before a worker relies on it.

Works on Linux (Itanium C++ ABI). The hooks get their own table back when Python ends: torch's
static destructors run after that, when ours is gone.
"""

from __future__ import annotations

import atexit
import ctypes
import re
import sys
import time
from pathlib import Path
from typing import Any

from oomdoctor.worker.errors import ShimFailedError

HOOKS_HEADER = "include/ATen/detail/AcceleratorHooksInterface.h"
METHODS = 160
GUARD_METHODS = 64
CUDA = 1  # c10::DeviceType::CUDA
BEFORE_METHODS = 2  # a vtable's offset to top and type information stand before its methods
REST_S = 0.1
REGISTER = "_ZN3c104impl19registerDeviceGuardENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE"
GET_HOOKS = "_ZN2at6detail12getCUDAHooksEv"

_Method = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Shim:
    """What was put into torch; keeps the C objects alive, so it must outlive every tensor."""

    def __init__(self) -> None:
        """Start with nothing installed."""
        self._kept: list[object] = []
        self.installed = False

    def install(self) -> None:
        """Register the guard and redirect the hooks; once for each process."""
        if self.installed:
            return
        import torch

        library = Path(torch.__file__).parent
        slots = method_slots(header_text(library))
        check_slots(slots)
        if torch.version.cuda is None and torch.version.hip is None:
            self._register_guard(library)
        torch._C._ensureCUDADeviceGuardSet()
        self._redirect_hooks(library, slots)
        self.installed = True

    def keep(self, what: object) -> None:
        """Keep alive what C++ may still call: a memory whose tensors are not all gone."""
        self._kept.append(what)

    def _register_guard(self, library: Path) -> None:
        """Register a guard that counts no devices: torch replaces it by one that does nothing."""
        register = self._symbol(library / "lib" / "libc10.so", REGISTER)
        register.argtypes = [ctypes.c_int8, ctypes.c_void_p]
        register.restype = None
        methods = (ctypes.c_void_p * GUARD_METHODS)(*[self._answer(0)] * GUARD_METHODS)
        guard = (ctypes.c_void_p * 1)(ctypes.addressof(methods))
        self._kept += [methods, guard]
        register(CUDA, ctypes.addressof(guard))

    def _redirect_hooks(self, library: Path, slots: dict[str, int]) -> None:
        """Point the CUDA hooks at a copy of their methods in which two are ours."""
        get = self._symbol(library / "lib" / "libtorch_cpu.so", GET_HOOKS)
        get.restype = ctypes.c_void_p
        hooks = ctypes.cast(get(), ctypes.POINTER(ctypes.c_void_p))
        word = ctypes.sizeof(ctypes.c_void_p)
        old = hooks[0]
        if old is None:
            raise ShimFailedError("torch's CUDA hooks have no methods")
        start = old - BEFORE_METHODS * word
        copy = (ctypes.c_void_p * METHODS).from_buffer_copy(ctypes.string_at(start, METHODS * word))
        copy[BEFORE_METHODS + slots["isBuilt"]] = self._answer(1)
        copy[BEFORE_METHODS + slots["hasPrimaryContext"]] = self._answer(0)
        self._kept.append(copy)
        atexit.register(self._give_back, hooks, old)
        hooks[0] = ctypes.addressof(copy) + BEFORE_METHODS * word

    @staticmethod
    def _give_back(hooks: Any, table: int) -> None:
        """Point the hooks at their own methods again, and let torch's threads come to rest.

        A thread of autograd frees what Python made after `backward` has returned. One that still
        asks for Python's lock when Python is gone is unwound, which C++ ends the process for: 2 of
        80 did on a busy machine. Sleeping gives them the lock.
        """
        hooks[0] = table
        time.sleep(REST_S)

    def _symbol(self, path: Path, name: str) -> Any:
        try:
            library = ctypes.CDLL(str(path))
            symbol = library[name]
        except (OSError, AttributeError) as error:
            raise ShimFailedError(f"{path.name} of this torch has no {name}") from error
        self._kept.append(library)
        return symbol

    def _answer(self, value: int) -> int | None:
        """Return the address of a method that answers `value` whatever it is asked."""
        method = _Method(lambda _self: value)
        self._kept.append(method)
        return ctypes.cast(method, ctypes.c_void_p).value


def header_slots() -> dict[str, int]:
    """Return the places of the hooks' methods as the header in this torch declares them."""
    import torch

    return method_slots(header_text(Path(torch.__file__).parent))


def header_text(library: Path) -> str:
    """Return the header that declares the hooks' first methods."""
    if sys.platform != "linux":
        raise ShimFailedError(f"the fake card is made for Linux, this is {sys.platform}")
    path = library / HOOKS_HEADER
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ShimFailedError(f"this torch comes without {HOOKS_HEADER}") from error


def method_slots(header: str) -> dict[str, int]:
    """Return the place of each virtual method in its table; a destructor takes two.

    >>> method_slots("virtual ~A() = default; virtual bool isBuilt() const {")
    {'isBuilt': 2}
    """
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.DOTALL)
    slots: dict[str, int] = {}
    place = 0
    for found in re.finditer(r"\bvirtual\s+([^(;{]*?)(~?\w+)\s*\(", code):
        name = found.group(2)
        if name.startswith("~"):
            place += 2
            continue
        slots[name] = place
        place += 1
    return slots


def check_slots(slots: dict[str, int]) -> None:
    """Raise where the header does not declare what the shim needs."""
    for name in ("isBuilt", "hasPrimaryContext"):
        if name not in slots:
            raise ShimFailedError(f"{HOOKS_HEADER} declares no {name}")
