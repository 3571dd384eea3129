"""BLAS and LAPACK at their addresses, as SciPy offers them to other extensions, and how many threads they use."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, compress, repeat
from typing import Any

from wengert.native.availability import UnavailableError
from wengert.native.structs import I32, VOID, Pointer, Signature, Struct
from wengert.support.scopes import Restore, StateScope, calling_all

PREFIX = "lapack_"
"""What the names of these functions begin with in native code: "lapack_dgetrf"."""
OFFERED = ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas")
"""The modules that offer them."""
ROUTINES = "numpy.linalg._umath_linalg"
"""The module of NumPy that calls its own library."""
BOTH = (ROUTINES, OFFERED[0])
INTEGER = b"int *"
"""How signatures name a whole number of 32 bits; functions that take others are not called."""

THREADS = Struct(
    "Threads",
    get=Pointer(Signature(I32, ())),
    set=Pointer(Signature(VOID, (I32,))),
)
"""What tells how many threads a library uses, and changes it; nothing if the library has no such functions."""


def capsules() -> Any:
    """Return the functions of Python's that look into capsules: for the name, and for the address by the name."""
    name_of, address_of = ctypes.pythonapi["PyCapsule_GetName"], ctypes.pythonapi["PyCapsule_GetPointer"]
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return name_of, address_of


@functools.cache
def lapack_address(name: str) -> int:
    """Return the address of what native code calls by a name that begins with `PREFIX`.

    Raises:
        UnavailableError: it is not offered here, or takes whole numbers of other sizes.
    """
    own = name.removeprefix(PREFIX)
    if own == "threads":
        return ctypes.addressof(library_of(OFFERED[0]).threads)
    name_of, address_of = capsules()
    for module in OFFERED:
        with contextlib.suppress(ImportError, AttributeError, KeyError):
            capsule = importlib.import_module(module).__pyx_capi__[own]
            signature = name_of(capsule)
            if INTEGER in signature:
                return int(address_of(capsule, signature))
    raise UnavailableError(f"{own}: SciPy offers no such function here")


@functools.cache
def installation() -> str:
    """Return what tells one installation of SciPy, which offers them, from others and from none; it is not imported."""
    found = importlib.util.find_spec("scipy")
    return "" if found is None or found.origin is None else f"{found.origin} {os.stat(found.origin).st_mtime_ns}"


@functools.cache
def are_offered(names: tuple[str, ...]) -> bool:
    """Tell whether native code can call all of some functions."""
    try:
        return all(lapack_address(PREFIX + name) for name in names)
    except UnavailableError:
        return False


# Threads


class Library:
    """Know how many threads a library uses, whose functions an extension module calls.

    OpenBLAS has other names for what tells and changes that where whole numbers have 64 bits, and in wheels of NumPy's
    and SciPy's.

    Attributes:
        threads: THREADS.
        count, use: the functions; of a library that has none, what tells that it uses one.
    """

    def __init__(self, module: str) -> None:
        self.threads: Any = THREADS.ctype()
        self.count: Any = int
        self.use: Any = int
        with contextlib.suppress(ImportError, OSError, AttributeError):
            library: Any = ctypes.PyDLL(importlib.import_module(module).__file__)
            for prefix, suffix in ((x, y) for x in ("scipy_", "") for y in ("64_", "")):
                with contextlib.suppress(AttributeError):
                    own = [library[f"{prefix}openblas_{what}_num_threads{suffix}"] for what in ("get", "set")]
                    self.threads.get, self.threads.set = (ctypes.cast(x, ctypes.c_void_p).value for x in own)
                    self.count, self.use = own
                    break


library_of = functools.cache(Library)


class OneThread(StateScope):
    """Be the context in which NumPy's and SciPy's libraries use one thread each; threads may enter it side by side.

    The last one to leave puts the numbers back that the first one found, unless somebody else set another meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[Restore] = []

    def undo(self) -> Restore:
        """Return what puts the numbers back if nobody else is inside: `undos` has one for each that is."""
        return calling_all(compress(chain(self.ends, (self.ends.clear,)), map(operator.not_, repeat(self.undos))))

    def change(self) -> None:
        """Let each use one."""
        if self.ends:
            return
        for name in BOTH if "scipy.linalg" in sys.modules else BOTH[:1]:
            library = library_of(name)
            count = library.count()
            if count > 1:
                is_one = map(operator.eq, map(operator.call, (library.count,)), (1,))
                self.ends.append(calling_all(compress((partial(library.use, count),), is_one)))
                library.use(1)


ONE_THREAD = OneThread()


def on_one_thread(function: Callable[..., Any], operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Call a function while NumPy's and SciPy's libraries use one thread each."""
    with ONE_THREAD:
        return function(*operands, **params)
