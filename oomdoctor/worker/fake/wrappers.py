"""Takes the Python objects off tensors that only C++ holds, as if no Python had seen them.

A kernel written in Python is handed Python objects for its arguments, and these stay with the
tensors: one more reference. torch counts references where it decides whether memory can be used
again (a gradient is added in place only if nobody else holds it, `input_buffer.cpp`). On a card
those tensors have no Python objects, so the objects that came from our kernels are cut off: the
tensor forgets its object, and the object holds an undefined tensor in its place.

The words that are changed are looked for and tried on a tensor of our own first; where they are
not what they are in CPython's and torch's headers (`torch/csrc/autograd/python_variable.h`,
`c10/util/intrusive_ptr.h`), nothing is ever changed and `works` is false.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD = ctypes.sizeof(ctypes.c_void_p)
TENSOR = 2 * WORD  # of the Python object: where its tensor stands, after count and type
COUNT = WORD  # of the tensor: its references, after its table of methods
HAS_OBJECT = 1 << 63
IMPL_WORDS = 40
UNDEFINED = "_ZN3c1019UndefinedTensorImpl10_singletonE"
ALONE = 3  # references to an object: the one of C++, a name here, and that of getrefcount

_word = ctypes.c_uint64.from_address


class Wrappers:
    """The Python objects of tensors that kernels have seen since the last call."""

    def __init__(self) -> None:
        """Find out whether objects can be cut off in this build."""
        self._seen: list[weakref.ref[torch.Tensor]] = []
        self._slot = 0
        self._undefined = 0
        self.works = self._prepare()

    def _prepare(self) -> bool:
        if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
            return False
        path = Path(torch.__file__).parent / "lib" / "libc10.so"
        try:
            singleton = ctypes.c_void_p.in_dll(ctypes.CDLL(str(path)), UNDEFINED)
        except (OSError, ValueError):
            return False
        self._undefined = ctypes.addressof(singleton)
        tensor = torch.empty(1, device="cpu")
        here, impl = id(tensor), tensor._cdata
        if _word(here + TENSOR).value != impl or not _word(impl + COUNT).value & HAS_OBJECT:
            return False
        places = [at for at in range(2, IMPL_WORDS) if _word(impl + at * WORD).value == here]
        if len(places) != 1:
            return False
        self._slot = places[0] * WORD
        return self._try()

    def _try(self) -> bool:
        """Cut the object off a tensor that C++ holds too, and look at what is left."""
        root = torch.zeros(1, requires_grad=True, device="cpu")
        node = torch._C._functions.UndefinedGrad  # only to see that the module is there
        saved = torch.ones(1, device="cpu")
        product = root * saved
        del node
        reference = weakref.ref(saved)
        before = saved._use_count()
        del saved
        self._seen.append(reference)
        self.drop()
        return (
            before >= 2
            and reference() is None
            and product.grad_fn is not None
            and product.grad_fn._saved_other.item() == 1
        )

    def saw(self, values: Iterable[object]) -> None:
        """Note that a kernel was handed, or returned, these: tensors, lists of them, and others."""
        for value in values:
            if type(value) is torch.Tensor:
                self._seen.append(weakref.ref(value))
            elif isinstance(value, (list, tuple)):
                self.saw(value)

    def drop(self) -> None:
        """Cut off the noted objects that nobody in Python holds."""
        seen = self._seen
        if not seen:
            return
        self._seen = []
        if not self._slot:
            return
        for reference in seen:
            tensor = reference()
            if (
                tensor is None
                or sys.getrefcount(tensor) != ALONE
                or type(tensor) is not torch.Tensor
            ):
                continue
            impl = tensor._cdata
            count = _word(impl + COUNT)
            value = count.value
            if not value & HAS_OBJECT or (value & 0xFFFFFFFF) < 2 or tensor.__dict__:
                continue
            _word(impl + self._slot).value = 0
            count.value = (value & ~HAS_OBJECT) - 1
            _word(id(tensor) + TENSOR).value = self._undefined
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(tensor))
