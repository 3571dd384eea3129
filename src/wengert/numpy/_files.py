"""Files of arrays, with NumPy's signatures: what is read are Tensors; what is being differentiated is not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor, implements
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError
from wengert.numpy._naming import documented


def as_ndarray(value: Any) -> Any:
    """Return a Tensor as a read-only ndarray; other values as they are."""
    return value.numpy() if type(value) is Tensor else value


def enter_writer(function: Callable[..., None]) -> None:
    """Enter a function that writes arrays into a file."""

    @implements(function)
    @documented(function.__name__, "Write arrays into a file")
    def write(*args: Any, **options: Any) -> None:
        function(*map(as_ndarray, args), **{name: as_ndarray(value) for name, value in options.items()})


def enter_reader(function: Callable[..., Any]) -> None:
    """Enter a function that reads arrays from a file."""

    @implements(function)
    @documented(function.__name__, "Read from a file; arrays come as Tensors")
    def read(*args: Any, **options: Any) -> Any:
        if args and type(args[0]) is Tensor:
            raise DtypeError(function.__name__, "a Tensor as the file", "a path or an open file is needed", "Pass one")
        found = function(*args, **options)
        return as_tensor(found) if type(found) is np.ndarray and found.dtype.kind in "biufc" else found


_WRITING: tuple[Callable[..., None], ...] = (np.save, np.savez, np.savez_compressed, np.savetxt)
_READING: tuple[Callable[..., Any], ...] = (np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.fromregex)
for _function in _WRITING:
    enter_writer(_function)
for _function in _READING:
    enter_reader(_function)
