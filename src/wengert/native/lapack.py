"""BLAS and LAPACK at their addresses, as SciPy offers them to other extensions, and how many threads they use."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
from typing import Any

from wengert.native.structs import I32, VOID, Pointer, Signature, Struct

PREFIX = "lapack_"
"""What the names of these functions begin with in native code: "lapack_dgetrf"."""
OFFERED = ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas")
"""The modules that offer them."""
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
        AttributeError: it is not offered here, or takes whole numbers of other sizes.
    """
    own = name.removeprefix(PREFIX)
    if own == "threads":
        return ctypes.addressof(threads_of(OFFERED[0]))
    name_of, address_of = capsules()
    for module in OFFERED:
        with contextlib.suppress(ImportError, AttributeError, KeyError):
            capsule = importlib.import_module(module).__pyx_capi__[own]
            signature = name_of(capsule)
            if INTEGER in signature:
                return int(address_of(capsule, signature))
    raise AttributeError(f"{own}: SciPy offers no such function here")


@functools.cache
def are_offered(names: tuple[str, ...]) -> bool:
    """Tell whether native code can call all of some functions."""
    try:
        return all(lapack_address(PREFIX + name) for name in names)
    except AttributeError:
        return False


# Threads


@functools.cache
def threads_of(module: str) -> Any:
    """Return the THREADS of the library that an extension module is linked to; empty ones if nobody knows them.

    OpenBLAS has other names for its functions where whole numbers have 64 bits, and in the wheels of NumPy and SciPy.
    """
    found = THREADS.ctype()
    with contextlib.suppress(ImportError, OSError, AttributeError):
        library = ctypes.CDLL(importlib.import_module(module).__file__)
        for prefix in ("scipy_", ""):
            for suffix in ("64_", ""):
                with contextlib.suppress(AttributeError):
                    get, change = (library[f"{prefix}openblas_{what}_num_threads{suffix}"] for what in ("get", "set"))
                    found.get, found.set = (ctypes.cast(x, ctypes.c_void_p).value for x in (get, change))
                    return found
    return found
