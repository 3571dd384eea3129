"""Functions of plain Tensors that NumPy computes itself: its own function, called with the arrays.

The values are those of the general way, to the bit, since there they are compared with NumPy's. What that costs is 1 to
50 us: operands are looked at, parameters put in order, and a function composed of others makes a Tensor for each step.
This takes 0.3 to 0.5 us. Whatever is no call with plain Tensors and numbers, and whatever NumPy raises or warns of,
goes the general way, which says more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy import generic, ndarray

from wengert.core.diagnostics.numpy_warnings import SETTINGS, raising
from wengert.core.memory.views import ALIAS
from wengert.core.values.aval import MOST_AXES
from wengert.core.values.interop import without_dispatch
from wengert.core.values.numpy_overrides import DIRECT
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor, new_tensor, plain_tensor, wrapped_constants
from wengert.support.deferred_warnings import unregister
from wengert.support.records import NamedTuple

unregister(globals())  # what would warn goes the general way, and warns there
Function = Callable[..., Any]


class DirectCall(NamedTuple):
    """Hold how a function is computed of plain Tensors; see `enter_by_numpy`."""

    least: int
    most: int
    composed: bool
    inside: bool


BY_NUMPY: dict[Any, DirectCall] = {}
"""The functions that NumPy computes itself."""
GIVEN_UP = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, Warning)
"""What NumPy raises; the general way raises what says more."""
SIMPLE = frozenset({int, float, complex, str, bool, type(None)})
"""Types of arguments that are passed on as they are."""
NUMERIC = "fiubc"
FAMILIAR = 3
"""How many arguments calls have by position, but those with more arrays: behind may be what is to be overwritten."""


def enter_by_numpy(
    *functions: Function, most: int = 2, least: int = 1, composed: bool = False, inside: bool = False
) -> None:
    """Let functions be computed by themselves where they are called with plain Tensors.

    Args:
        *functions: NumPy's functions, which have a meaning for Tensors; their results are in memory of their own.
        most: how many arguments may be arrays; where there are others behind (`out`, say) the general way is gone.
        least: the number of arguments below which it is gone, too.
        composed: whether the general way is composed of others, which warn about numbers at the user's line.
        inside: whether the general way begins with asking `DIRECT`, since a frame around it would be looked at in
            each recorded operation.
    """
    for function in functions:
        BY_NUMPY[function] = DirectCall(least, most, composed, inside)
        DIRECT[function] = by_numpy(function, not_implemented)


def not_implemented(*_args: Any, **_kwargs: Any) -> Any:
    """Return NotImplemented: the call is left to the general meaning of a function."""
    return NotImplemented


def by_numpy(function: Function, otherwise: Function, finish: Function | None = None) -> Function:
    """Return a function that calls one of NumPy's with the arrays of plain Tensors, and for all else another.

    Args:
        function: NumPy's function, which has been entered.
        otherwise: what it means for Tensors; `not_implemented` where somebody else knows.
        finish: makes a Tensor of what that gives if it is none, and is not what was given as `out`.
    """
    least, most, composed, _ = BY_NUMPY[function]
    settings = SETTINGS if composed else None
    bare = without_dispatch(function)
    longest = max(most, FAMILIAR)

    takes_one, takes_two = least <= 1, least <= 2 <= most

    @functools.wraps(otherwise)
    def compute(*args: Any, **kwargs: Any) -> Any:
        values: Sequence[Any] | None = None
        x = args[0] if args else None
        if type(x) is Tensor:
            trace = x._trace
            if trace is None:
                value = x._value
                if not kwargs and type(value) is ndarray and value.size and not WATCHES:  # as most calls are
                    if len(args) == 1:
                        values = (value,) if takes_one else None
                    elif len(args) == 2:
                        y = args[1]
                        if type(y) in SIMPLE:
                            values = (value, y) if least <= 2 else None
                        elif takes_two and type(y) is Tensor and y._trace is None:
                            other = y._value
                            values = (value, other) if type(other) is ndarray and other.size else None
                    elif len(args) == 3 and takes_two and type(args[2]) in SIMPLE:
                        y = args[1]
                        if type(y) is Tensor and y._trace is None:
                            other = y._value
                            values = (value, other, args[2]) if type(other) is ndarray and other.size else None
            elif trace is not ALIAS:  # what is recorded need not wait for all the rest
                found = otherwise(*args, **kwargs)
                return found if finish is None or type(found) is Tensor else finish(found, (kwargs.get("out"),))
        if values is None and least <= len(args) <= longest and not WATCHES:
            values = values_of(args, kwargs, most)
        if values is not None:
            try:
                out = bare(*values, **kwargs) if settings is None else under(settings, bare, values, kwargs)
            except GIVEN_UP:
                out = None
            if (
                out.ndim and (out.base is None or not is_shared(out.base, values))
                if type(out) is ndarray
                else isinstance(out, generic)
            ):
                return plain_tensor(out)
            if isinstance(out, tuple) and (several := results_of(out, values)) is not None:
                return several
        found = otherwise(*args, **kwargs)
        return found if finish is None or type(found) is Tensor else finish(found, (kwargs.get("out"),))

    return compute


def values_of(args: Sequence[Any], kwargs: Mapping[str, Any], most: int) -> Sequence[Any] | None:
    """Return what NumPy is given in the place of arguments with plain Tensors among them; None where others are asked.

    Args:
        args: the arguments by position.
        kwargs: those by name, which are no arrays.
        most: how many arguments may be arrays.
    """
    values: list[Any] = []
    any_tensor = False
    for x in args:
        kind = type(x)
        if kind is Tensor:
            any_tensor = True
            x = array_of(x)
            if x is None or not x.size or len(values) >= most:
                return None
        elif kind not in SIMPLE:
            any_tensor = any_tensor or (kind is not ndarray and holds_tensor(x))
            if (len(values) >= most and not is_numbers(x)) or (x := plain_value(x)) is NotImplemented:
                return None
        values.append(x)
    return values if any_tensor and (not kwargs or are_options(kwargs)) else None


def call_plain(function: Function, x: Any, *args: Any) -> Tensor | None:
    """Return what a function of arrays gives for a plain Tensor; None for others, and where NumPy raises or warns.

    Args:
        function: in C, or one that stops where it would warn; its result is in memory of its own.
        x: any argument.
        *args: further ones that are no arrays.
    """
    if type(x) is not Tensor or WATCHES:
        return None
    value = x._value if x._trace is None else array_of(x)
    if type(value) is not ndarray:
        return None
    try:
        out = function(value, *args)
    except GIVEN_UP:
        return None
    if type(out) is ndarray and not out.ndim:
        return None
    result = new_tensor()  # as `plain_tensor`, whose call would take a thirtieth of the time
    result._value = out
    result._trace = result._node = None
    result._kept = False
    return result


METHODS: dict[str, Function] = {"astype": ndarray.astype, "copy": ndarray.copy}
ORDERS = frozenset("CFAK")
"""In which a scalar, which does not change, is its own copy."""


def call_plain_method(name: str, x: Tensor, argument: Any) -> Tensor | None:
    """Return what a method gives for a plain array, one that is held as a scalar, too; None as `call_plain` does."""
    value = x._value
    if type(value) is ndarray or not hasattr(x, "_array") or not isinstance(value, generic) or WATCHES:
        return call_plain(METHODS[name], x, argument)
    try:
        found = make_tensor(
            value if name == "copy" and argument in ORDERS else getattr(value, name)(argument), None, None
        )
    except GIVEN_UP:
        return None
    found._array = ()
    return found


def join_plain(function: Function, operands: Any, *args: Any) -> Tensor | None:
    """Return what a function gives for a list of arrays and numbers, first a plain Tensor; None as `call_plain`."""
    if WATCHES or (type(operands) is not tuple and type(operands) is not list) or not operands:
        return None
    first = operands[0]
    if type(first) is not Tensor or first._trace is not None:
        return None
    values = []
    for x in operands:
        kind = type(x)
        if kind is Tensor:
            x = x._value if x._trace is None else array_of(x)
            if type(x) is not ndarray and not isinstance(x, generic):
                return None
        elif kind is ndarray:
            if x.dtype.kind not in NUMERIC:
                return None
        elif kind is not float and kind is not int:
            return None
        values.append(x)
    try:
        out = function(values, *args)
    except GIVEN_UP:
        return None
    if not out.ndim:
        return None
    return plain_tensor(out)


def by_arrays(function: Function) -> Function:
    """Return a function that computes with the arrays of plain Tensors, where all of its operands are such.

    That is for what is composed of many of NumPy's functions, each of which takes several times as long for Tensors.

    Args:
        function: of Tensors, arrays and others by position; its result, or tuple of them, is in memory of its own.
    """

    @functools.wraps(function)
    def compute(*args: Any) -> Any:
        values = []
        any_tensor = False
        for x in args:
            if type(x) is Tensor:
                any_tensor = True
                if (x := array_of(x, scalars=True)) is None:
                    return function(*args)
            values.append(x)
        if WATCHES or not any_tensor:
            return function(*args)
        try:
            found = under(SETTINGS, function, values, {})
        except GIVEN_UP:  # the general way says more
            return function(*args)
        return wrapped_constants(found)

    return compute


def array_of(x: Tensor, scalars: bool = False) -> Any:
    """Return the array of a plain Tensor, that of a view as it is now; None of one that is traced, or no array.

    A NumPy scalar counts as one if asked for.
    """
    trace = x._trace
    if trace is not None:
        if trace is not ALIAS or x._value.base._trace is not None:
            return None
        x = x._value.current()
    return x._value if type(x._value) is ndarray or (scalars and isinstance(x._value, generic)) else None


def under(settings: Any, function: Function, values: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what NumPy gives; where it would warn about numbers it raises."""
    before = settings.get()
    try:
        settings.set(raising(before))
        return function(*values, **kwargs)
    finally:
        settings.set(before)  # at once: Ctrl-C comes before what C does, or after it


def are_options(kwargs: Mapping[str, Any]) -> bool:
    """Tell whether arguments by name are none that holds an array, or that lets an operand be overwritten."""
    return "overwrite_input" not in kwargs and all([type(x) in SIMPLE or is_numbers(x) for x in kwargs.values()])  # noqa: C419 - a generator takes longer


def is_numbers(x: Any) -> bool:
    """Tell whether an argument is a tuple of integers, such as axes."""
    return type(x) is tuple and all(type(item) is int for item in x)


def holds_tensor(x: Any) -> bool:
    """Tell whether an argument is a sequence with a Tensor in it."""
    return type(x) in (tuple, list) and any(type(item) is Tensor for item in x)


def plain_value(x: Any, axes: int = MOST_AXES) -> Any:
    """Return what NumPy is given in the place of an argument; NotImplemented where the general way is to be gone."""
    kind = type(x)
    if kind is Tensor:
        x = array_of(x)
        return NotImplemented if x is None or not x.size else x
    if kind is ndarray:
        return x if x.dtype.kind in NUMERIC and x.size else NotImplemented
    if kind is not tuple and kind is not list:
        return x if kind in SIMPLE else NotImplemented
    values = []
    for item in x:
        value = plain_value(item, axes - 1) if axes else NotImplemented
        if value is NotImplemented:
            return value
        values.append(value)
    return values if kind is list else tuple(values)


def results_of(out: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """Return several results as Tensors; None if one is no array, or may be memory of an operand."""
    tensors = []
    for item in out:
        if type(item) is ndarray:
            if not item.ndim or (item.base is not None and is_shared(item.base, values)):
                return None
        elif not isinstance(item, generic):
            return None
        tensors.append(plain_tensor(item))
    return tuple.__new__(type(out), tensors)  # named ones likewise


def is_shared(owner: Any, values: Sequence[Any]) -> bool:
    """Tell whether the owner of the memory of a window may be an operand; None stands for what is no window."""
    if type(owner) is not ndarray:
        return owner is not None  # as_strided puts an object between
    for x in values:
        if type(x) is ndarray:
            if x is owner or x.base is owner:
                return True
        elif type(x) not in SIMPLE and is_shared(owner, x):
            return True
    return False
