"""What parameters of layers and losses must be: what is of another shape would be broadcast, and train to nonsense."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.dispatch import as_tensor
from wengert.errors import DtypeError, ShapeError, UsageError


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


def require_setting(name: str, what: str, value: Any, least: float, most: float = np.inf) -> None:
    """Raise a UsageError if a number, known while Python runs, is out of a range."""
    if isinstance(value, int | float | np.number) and not least <= value <= most:
        needed = f"a number, {least:g} or more, is needed" if most == np.inf else f"{least:g} to {most:g} is needed"
        raise UsageError(name, f"{shown(value)} for {what}", needed, "Correct it")
