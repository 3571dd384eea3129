"""Functions whose derivatives are written by hand in C, compiled by the C compiler there is; sums in any order."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@functools.cache
def library_of(name: str) -> ctypes.CDLL:
    """Return the functions of a C file of this folder."""
    compiler = shutil.which("cc")
    assert compiler is not None
    with tempfile.TemporaryDirectory() as folder:
        made = str(Path(folder) / "made.so")
        source = str(Path(__file__).with_name(f"{name}.c"))
        subprocess.run([compiler, *FLAGS, "-o", made, source, "-lm"], check=True)
        return ctypes.CDLL(made)


def descent(way: str, outer: int, tolerance: float, arrays: Sequence[Array]) -> Callable[[float], Any]:
    """Return descent inside of descent from a hyperparameter on; see `benchmarks.loops.descent_inside`.

    Args:
        way: of the derivative, "forward" or "reverse".
        outer: how many steps the outer one takes.
        tolerance: of the inner one.
        arrays: the matrix and target of the inner one, then of the outer one.
    """
    function = library_of("descent")[way]
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_double, *[ctypes.c_void_p] * 4]
    pointers = [np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p) for x in arrays]  # which keep their arrays
    return lambda start: np.float64(function(start, outer, tolerance, *pointers))
