"""Give a Tensor to every public function of NumPy and SciPy, and tell what is neither right nor refused in words.

Usage: python -m tools.edges [MODULE ...]

Each function gets the first of some arguments that it takes as ndarrays, with a Tensor that requires grad in the place
of the first array of floats; then under `jit`, and in the lanes of `vmap`. Printed is what raises an error that says
nothing of Tensors ("bare"), gives plain numbers where the gradient is lost ("lost"; some functions are constant), or
other numbers than for ndarrays ("other"). The functions of the same names in `wengert` are asked, too. What is printed
today comes from C code that replaces an error by its own, from questions about types that Tensors cannot answer, and
from functions that are constant.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import wengert as wg
from wengert.errors import WengertError

MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "scipy.special", "scipy.linalg", "scipy.stats", "scipy.signal"),
    *("scipy.integrate", "scipy.interpolate", "scipy.ndimage", "scipy.spatial.distance", "scipy.sparse.linalg"),
    *("scipy.optimize", "scipy.fft"),
)
LEFT_ALONE = {
    *("empty", "empty_like", "ndarray", "test", "info", "load", "save", "savez", "savetxt", "loadtxt", "genfromtxt"),
    *("fromfile", "memmap", "savez_compressed", "seterr", "seterrcall", "setbufsize", "set_printoptions"),
    *("show_config", "show_runtime", "set_backend", "set_global_backend"),
}
"""Functions whose results are not determined, or that use files or settings."""
SECONDS = 5
ROW = np.array([0.31, 0.52, 0.77, 0.24, 0.63, 0.45])
MATRIX = np.array([[2.1, 0.3, 0.5], [0.3, 1.7, 0.2], [0.5, 0.2, 2.6]])
NUMBER = np.float64(0.41)
LONG = np.random.default_rng(0).normal(size=64)
ARGUMENTS: list[tuple[Any, ...]] = [
    *((ROW,), (MATRIX,), (NUMBER,), (ROW, ROW[::-1]), (MATRIX, MATRIX + np.eye(3)), (MATRIX, MATRIX[0]), (ROW, 2)),
    *((ROW, 0.7), (2, ROW), (ROW, ROW, ROW), (2, 1, ROW), (ROW, 1, 2), (2, 3, ROW), (ROW, ROW, ROW, ROW), (ROW, 3, 0)),
    *(([MATRIX, MATRIX],), ((ROW, ROW),), (np.sum, 0, MATRIX), (np.sum, [0], MATRIX), ("i,i->", ROW, ROW)),
    *((ROW > 0.4, ROW, ROW), (ROW > 0.4, ROW), (ROW, (2, 3)), (MATRIX, (1, 1)), (MATRIX, [0, 1], 0), (LONG,)),
    *((LONG, LONG[::-1]), (np.arange(6.0), ROW, 0.5), (np.arange(6.0), ROW), ((1, 1), np.ones((3, 3)), ROW[:3])),
    *(
        (np.ones((3, 2)), ROW[:3]),
        (MATRIX, MATRIX, MATRIX),
        (ROW[:3], ROW[:3], MATRIX),
        (np.arange(3.0), np.arange(3.0), MATRIX),
    ),
    *(
        (lambda t, y: -y, (0.0, 1.0), ROW[:2]),
        (lambda y, t: -y, ROW[:2], np.arange(2.0)),
        (lambda x: np.sum(x * x), ROW[:2]),
    ),
]


class TooLong(BaseException):
    """Stop a function that searches."""


def stop(*_: Any) -> None:
    """Stop what is running."""
    raise TooLong


def called(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a function quietly, with arrays of its own, for some seconds."""
    own = [copy.deepcopy(x) if isinstance(x, np.ndarray) else x for x in arguments]
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return function(*own)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def numbers(value: Any) -> list[Any]:
    """Return the arrays in a result."""
    if isinstance(value, wg.Tensor | np.ndarray | np.generic | float | complex):
        return [value]
    return [x for item in value for x in numbers(item)] if isinstance(value, tuple | list) else []


def taken(function: Callable[..., Any]) -> tuple[tuple[Any, ...], int, Any] | None:
    """Return the first arguments that a function takes, which of them is an array of floats, and what it gives."""
    for arguments in ARGUMENTS:
        at = next(
            (i for i, x in enumerate(arguments) if isinstance(x, np.ndarray | np.float64) and x.dtype == float), None
        )
        if at is not None:
            with contextlib.suppress(Exception, TooLong):
                return arguments, at, called(function, arguments)
    return None


def refused_in_words(error: BaseException | None) -> bool:
    """Tell whether an error, or what it came from, is one of Wengert's."""
    while error is not None:
        if isinstance(error, WengertError):
            return True
        error = error.__cause__ or error.__context__
    return False


def verdict(compute: Callable[[], Any], want: Any) -> str:
    """Return what is wrong with a result, or with the error in its place; nothing if nothing is."""
    try:
        found = numbers(called(compute, ()))
    except TooLong:
        return "too long"
    except Exception as error:  # noqa: BLE001 - any may come
        return "" if refused_in_words(error) else f"bare {type(error).__name__}: {error}".replace("\n", " ")[:200]
    wanted = numbers(want)
    if (
        wanted
        and not any(isinstance(x, wg.Tensor) for x in found)
        and any(np.asarray(x).dtype.kind in "fc" for x in wanted)
    ):
        return "lost"
    same = len(found) != len(wanted) or all(
        np.allclose(x.detach() if isinstance(x, wg.Tensor) else x, y, rtol=1e-9, atol=1e-11, equal_nan=True)
        for x, y in zip(found, wanted, strict=True)
    )
    return "" if same else "other"


def faults(function: Callable[..., Any], arguments: tuple[Any, ...], at: int, want: Any) -> Iterator[tuple[str, str]]:
    """Yield the modes in which something is wrong, and what."""

    def of(x: Any) -> Any:
        return function(*arguments[:at], x, *arguments[at + 1 :])

    point = arguments[at]
    yield "tape", verdict(lambda: of(wg.tensor(point, requires_grad=True)), want)
    yield "jit", verdict(lambda: [wg.asarray(x) for x in wg.jit(lambda x: numbers(of(x)))(point)], want)
    yield (
        "vmap",
        verdict(lambda: [wg.asarray(x[0]) for x in wg.vmap(lambda x: numbers(of(x)))(np.stack([point]))], want),
    )


def functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module, and those of the same names in `wengert`."""
    found = importlib.import_module(module)
    mirror = None
    with contextlib.suppress(ImportError):
        mirror = importlib.import_module(f"wengert.{module}")
    for name in sorted(set(vars(found)) - LEFT_ALONE):
        function = vars(found)[name]
        if name.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        yield f"{module}.{name}", function
        with contextlib.suppress(AttributeError):  # of what is left out
            if mirror is not None:
                yield f"wengert.{module}.{name}", getattr(mirror, name)


def main(modules: list[str]) -> None:
    """Print a line for each function and mode in which something is wrong."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, stop)
    for module in modules or MODULES:
        for name, function in functions(module):
            plain = taken(function)
            for mode, text in faults(function, *plain) if plain is not None else ():
                if text:
                    print(f"{name:45} {mode:5} {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
