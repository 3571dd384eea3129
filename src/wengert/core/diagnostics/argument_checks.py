"""What arguments of public functions have to be; each raises an error in the house form otherwise."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.dispatch import require_plain
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError

FEW = 32
"""Numbers of an array below which Python looks at them in a fourth of NumPy's time, and warns of no overflow."""


def shown(value: Any) -> str:
    """Return how errors show a wrong argument: as it is written if that is short, otherwise by its type."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return f"{value!r:.40}"
    return f"a value of type {type(value).__name__}"


def require_callable(name: str, value: Any, what: str = "function") -> None:
    """Raise a DtypeError unless a value can be called.

    >>> require_callable("grad", 3.0)
    Traceback (most recent call last):
    wengert.errors.DtypeError: grad: 3.0 as the function; something that can be called is needed. Pass the function...
    """
    if not callable(value):
        action = "Pass the function itself, not what it returned"
        raise DtypeError(name, f"{shown(value)} as the {what}", "something that can be called is needed", action)


def require_result(name: str, found: Any, what: str = "a function") -> Any:
    """Return the result of a user's function; raise a UsageError if it is None.

    >>> require_result("solve_ivp", None, "fun")
    Traceback (most recent call last):
    wengert.errors.UsageError: solve_ivp: fun that returned None; numbers are needed. Return what it computes.
    """
    if found is None:
        raise UsageError(name, f"{what} that returned None", "numbers are needed", "Return what it computes")
    return found


def require_flag(name: str, **flags: Any) -> None:
    """Raise a UsageError unless arguments are True or False (or numbers that stand for them)."""
    for parameter, value in flags.items():
        if value is True or value is False:  # told in a tenth of the time
            continue
        if not isinstance(value, int | np.bool_) or value not in (0, 1):
            given = f"{shown(value)} for {parameter}"
            raise UsageError(name, given, "True or False is needed", f"Pass {parameter} as a bool")


def require_choice(
    name: str, parameter: str, value: Any, known: Sequence[str | None], *, beside: str = "", action: str = ""
) -> None:
    """Raise a UsageError unless an argument is one of the names that are known.

    Args:
        name: who asks.
        parameter: its name.
        value: the argument.
        known: the names.
        beside: what else it may be, for the text.
        action: what to do.

    >>> require_choice("interpolate", "mode", "cubed", ("linear", "cubic"))
    Traceback (most recent call last):
    wengert.errors.UsageError: interpolate: mode='cubed'; 'linear' or 'cubic' is needed. Pass one of these...
    """
    if not isinstance(value, str | None) or value not in known:
        *others, last = map(repr, known)
        needed = f"{', '.join([*([beside] if beside else []), *others])} or {last} is needed"
        raise UsageError(name, f"{parameter}={shown(value)}", needed, action or "Pass one of these")


def as_path(name: str, path: Any) -> str | bytes:
    """Return the path of a file; a number would be one that is open."""
    try:
        return os.fspath(path)  # type: ignore[no-any-return]  # strings and bytes are all that it returns
    except TypeError as error:
        given = f"{shown(path)} as the path"
        raise DtypeError(name, given, "the name of a file is needed", "Pass a string") from error


def as_items(name: str, what: str, value: Any) -> list[Any]:
    """Return the items of what can be iterated.

    >>> as_items("optim.piecewise", "rates", (1.0, 2.0))
    [1.0, 2.0]
    """
    try:
        return list(value)
    except TypeError:
        given = f"{shown(value)} for {what}"
        raise UsageError(name, given, "a list or tuple is needed", "Put it into brackets") from None


def as_whole(name: str, parameter: str, value: Any, least: int | None = None) -> int:
    """Return a whole number, not below the least one."""
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool) or (least is not None and found < least):
        bound = "" if least is None else f", {least} or more,"
        raise UsageError(name, f"{shown(value)} for {parameter}", f"a whole number{bound} is needed", "Pass an int")
    return found


def as_dtype(name: str, value: Any) -> np.dtype[Any]:
    """Return what NumPy takes for a dtype as one."""
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except (TypeError, ValueError) as error:
        given = f"{shown(value)} for dtype"
        raise DtypeError(name, given, "a dtype is needed", "Pass float or numpy.float32, for instance") from error
    return dtype


ORDERS = frozenset("CFAK")


def as_order(order: Any, default: str) -> str:
    """Return the name of a memory order in capitals; the default for None."""
    needed = "'C', 'F', 'A' or 'K' is needed"
    if order is not None and not isinstance(order, str):
        raise DtypeError("order", shown(order), needed, "Leave it out")
    found = default if order is None else order.upper()
    if found not in ORDERS:
        raise UsageError("order", shown(order), needed, "Leave it out")
    return found


def require_number(name: str, what: str, value: Any) -> Aval:
    """Return shape and dtype of an argument, which must be a number or a numeric array, of no class of its own."""
    require_plain(name, (value,))
    try:
        aval = aval_of(value) if isinstance(value, Tensor | np.ndarray | np.generic) else aval_of(np.asarray(value))
    except ValueError:  # lists of different lengths
        aval = Aval((), np.dtype(object))
    if aval.dtype.kind not in "biufc":
        needed = "a number, a numeric array or a Tensor is needed"
        conversion = ".toarray()" if hasattr(value, "toarray") else ".astype(float) for instance"
        raise DtypeError(name, f"{shown(value)} as {what}", needed, f"Convert it, with {conversion}")
    return aval


def require_real(name: str, what: str, dtype: np.dtype[Any]) -> None:
    """Raise a DtypeError about complex numbers where real ones are meant."""
    if dtype.kind == "c":
        needed = "real numbers are needed"
        raise DtypeError(name, f"{what} of dtype {dtype}", needed, "Pass their real part, or their size")


def require_one_number(name: str, parameter: str, value: Any, real: bool = True) -> None:
    """Raise an error unless an argument is one number, known or not, and a real one if that is needed."""
    if isinstance(value, float | int):
        return
    aval = require_number(name, parameter, value)
    if aval.shape:
        raise ShapeError(name, f"{parameter} of shape {aval.shape}", "one number is needed", "Pass one of its elements")
    if real:
        require_real(name, parameter, aval.dtype)


def require_finite(name: str, what: str, value: Any, action: str = "Leave them out") -> None:
    """Raise a UsageError about NaN or infinity among numbers that are known."""
    known = elements(value)
    if isinstance(known, float) and math.isfinite(known):  # in a hundredth of the time of what follows
        return
    is_short = type(known) is np.ndarray and known.dtype == float and known.ndim == 1 and len(known) < FEW
    if is_short and all(map(math.isfinite, known.tolist())):
        return
    if known is not None and not np.isfinite(known).all():
        raise UsageError(name, f"NaN or infinity among {what}", "finite numbers are needed", action)


def require_limits(name: str, what: str, lower: Any, upper: Any) -> None:
    """Raise a UsageError about lowest numbers that are above the highest ones, or NaN, where both are known."""
    known = [elements(side) for side in (lower, upper)]
    if any(side is None or (isinstance(side, list | tuple) and Tensor in map(type, side)) for side in known):
        return
    low, high = (np.asarray(side) for side in known)
    try:
        shape = np.broadcast_shapes(low.shape, high.shape)
    except ValueError:
        given = f"limits of shapes {low.shape} and {high.shape} of {what}"
        raise ShapeError(name, given, "one shape, or numbers, are needed", "Pass as many of each") from None
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    for place in np.argwhere(~np.less_equal(low, high)).tolist()[:1]:
        given = f"limits {low[tuple(place)]!s} and {high[tuple(place)]!s} of {what}{place or ''}"
        needed = "lower <= upper, and no NaN, is needed"
        raise UsageError(name, given, needed, "Look for those that were exchanged; infinity where there is no limit")


def elements(value: Any) -> Any:
    """Return the numbers of a parameter; None where they are not known yet, or differ from lane to lane."""
    while type(value) is Tensor:
        trace = value._trace
        if trace is None:
            return value._value
        if trace.staged or not trace.concrete:
            return None
        value = trace.below(value)
    return value


def refuse_wrong(name: str, what: str, known: Any, wrong: Any, needed: str) -> None:
    """Raise a UsageError about the first number of a parameter that is wrong, if there is one."""
    if np.any(wrong):
        found = np.broadcast_to(known, np.shape(wrong))[wrong].flat[0]
        text = f"{found!s} for {what}" if is_number(known) else f"{found!s} among {what}"
        raise UsageError(name, text, needed, "Correct it")


def positive(name: str, what: str, value: Any, zero: bool = True) -> Any:
    """Return a parameter whose numbers are positive, or 0 if that may be; NaN for others, if these are not known."""
    if is_number(value) and value > 0:  # as most are: what follows takes 5 us
        return value
    known = elements(value)
    if known is None:
        return np.where(value >= 0 if zero else value > 0, value, np.nan)
    wrong = np.less(known, 0) if zero else np.less_equal(known, 0)
    refuse_wrong(name, what, known, wrong, f"{'0 or more' if zero else 'more than 0'} is needed")
    return value
