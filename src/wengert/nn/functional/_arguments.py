"""What arguments of layers and losses must be, and in which precision they are computed."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.dispatch import as_tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.primitives.half_precision import HALF, SINGLE, widen
from wengert.support.hints import hint_parameters


def as_real(name: str, value: Any) -> Any:
    """Return an array as a Tensor; complex numbers are refused: they have no order, and other squares than sizes."""
    found: Any = as_tensor(value)
    if found.dtype.kind == "c":
        given = f"an array of dtype {found.dtype}"
        raise DtypeError(name, given, "real numbers are needed", "Pass numpy.abs of it, or real parts")
    return found


def as_floats(x: Any) -> Any:
    """Return integers as floats: they wrap round, and NumPy's exponentials of short ones have 16 bits."""
    return x if x.dtype.kind in "fc" else x.astype(float)


def as_parameter(name: str, what: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a parameter, which has a shape or is one number for all, as a Tensor; None as it is."""
    if value is None:
        return None
    found: Any = as_tensor(value)
    if found.shape not in ((), shape):
        given = f"{what} of shape {found.shape}"
        raise ShapeError(name, given, f"shape {shape}, or one number, is needed", "Reshape it")
    return found


def as_weights(name: str, what: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return weights or a mask, which broadcast to a shape and do not enlarge it, as a Tensor."""
    found: Any = as_tensor(value)
    lengths = zip(reversed(found.shape), reversed(shape), strict=False)
    if found.ndim > len(shape) or any(ours not in (1, theirs) for ours, theirs in lengths):
        given = f"{what} of shape {found.shape}"
        raise ShapeError(name, given, f"one that broadcasts to shape {shape} is needed", "Reshape it")
    return found


def as_slope(name: str, what: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a parameter of an activation, a number or what broadcasts to the shape of its input."""
    return value if isinstance(value, int | float) else as_weights(name, what, value, shape)


def require_setting(name: str, what: str, value: Any, most: float = np.inf) -> None:
    """Raise a UsageError if a number, known while Python runs, is negative, or above the most."""
    if isinstance(value, int | float | np.number) and not 0 <= value <= most:
        needed = "a number, 0 or more, is needed" if most == np.inf else f"0 to {most:g} is needed"
        raise UsageError(name, f"{shown(value)} for {what}", needed, "Correct it")


Lengths = tuple[int, ...]


def per_axis(name: str, what: str, value: Any, rank: int, least: int = 1) -> Lengths:
    """Return a number, not below the least, for each axis of space; one alone is that of all."""
    if type(value) is int and value >= least:
        return (value,) * rank
    try:
        found = tuple(map(operator.index, value)) if isinstance(value, Sequence) else (operator.index(value),) * rank
    except TypeError:
        found = ()
    if len(found) != rank or min(found) < least:
        needed = f"one or {rank} integers, {least} or more, are needed"
        raise UsageError(name, f"{what}={value!r}", needed, "Correct it")
    return found


def as_images(name: str, value: Any, rank: int) -> tuple[Any, bool]:
    """Return images with a batch, and whether they came with one."""
    x: Any = as_tensor(value)
    count = x.ndim
    if count == rank + 2:
        return x, True
    if count == rank + 1:
        return x[None], False
    needed = f"(batch, channels) or (channels,) and {rank} axes of space are needed"
    raise ShapeError(name, f"shape {x.shape}", needed, "Reshape it")


def window_spans(kernel: Lengths, gaps: Lengths) -> Lengths:
    """Return how long windows are with the gaps between their elements."""
    return tuple([(n - 1) * gap + 1 for n, gap in zip(kernel, gaps, strict=True)])


def require_room(name: str, lengths: Lengths, spans: Lengths) -> None:
    """Raise a ShapeError unless windows fit into images with their padding."""
    if any(n < span for n, span in zip(lengths, spans, strict=True)):
        given = f"windows of {spans} in images of {lengths}, with what is around them"
        raise ShapeError(name, given, "windows that fit are needed", "Pad the images, or take smaller windows")


F = TypeVar("F", bound=Callable[..., Any])


def in_single(function: F) -> F:
    """Return a function that computes with arrays of half precision in single precision, and returns half precision.

    >>> import numpy as np
    >>> in_single(lambda x: (x * x).sum() / x.size)(np.full(70_000, 2.0, np.float16))
    np.float16(4.0)
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        dtypes = [getattr(x, "dtype", None) for x in (*args, *kwargs.values())]
        if HALF not in dtypes:
            return function(*args, **kwargs)
        found = function(*map(widen, args), **{name: widen(x) for name, x in kwargs.items()})
        return found.astype(HALF) if found.dtype == SINGLE and SINGLE not in dtypes else found

    return call  # type: ignore[return-value]  # it has the type of the function


hinted = hint_parameters("numpy", "layers")
"""Let errors about parameters that NumPy's functions or PyTorch's layers have say what to write."""


def layer(function: F) -> F:
    """Return a public function with such errors that computes with half precision as `in_single` does."""
    return hinted(in_single(function))
