"""What a differentiated function returns: floats, or it is refused; a result detached from its arguments warns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.control.variable_places import Undefined
from wengert.core.containers.tree_leaves import place_in, unflatten
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.aval import is_differentiable, is_number
from wengert.core.values.dispatch import require_plain
from wengert.core.values.interop import is_foreign_array, remedy_for, type_shown
from wengert.core.values.tensor import Tensor
from wengert.errors import DetachedWarning, DtypeError, RangeError, describe

WITH_AUX = ("grad", "value_and_grad", "vjp", "jvp")


def require_differentiable_results(name: str, leaves: Sequence[Any], structure: Any, received: Sequence[Any]) -> None:
    """Raise unless a result consists of numbers, some of them floats, and warn of floats that are no Tensors.

    Integers and booleans beside floats have zero derivatives, as has what `floor` makes of an argument: these are
    Tensors. A plain number or ndarray was not computed from an argument, or by a road that derivatives cannot follow;
    a Python number beside Tensors is a constant that the user wrote.
    `received` are the leaves of the arguments that it is differentiated by.

    Raises:
        DtypeError: there is a leaf that is no number, or none that is a float.
        GraphError: a traced statement left a leaf undefined.
    """
    for leaf in leaves:
        if type(leaf) is not Tensor or not is_differentiable(leaf.dtype):
            break
    else:
        if leaves:
            return
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Undefined):
            leaf.refuse()
        if not isinstance(leaf, Tensor | np.ndarray | np.generic | bool | int | float | complex):
            what = f"a value of type {type_shown(leaf)}{place_text(structure, i)}"
            raise result_error(name, what, "Compute it with NumPy's functions" if is_foreign_array(type(leaf)) else "")
        if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind not in "biufc":
            raise result_error(name, f"dtype {leaf.dtype}{place_text(structure, i)}")
    kinds = [dtype_of(leaf) for leaf in leaves]
    if leaves and not any(map(is_differentiable, kinds)):
        raise result_error(name, f"dtype {kinds[0]}")
    if not leaves and structure is not None and unflatten(structure, []) is None:
        raise result_error(name, "None")
    beside = any(type(leaf) is Tensor for leaf in leaves)  # then a Python number is what the user wrote there
    for leaf, dtype in zip(leaves, kinds, strict=True):
        if type(leaf) is not Tensor and received and is_differentiable(dtype) and not (beside and is_number(leaf)):
            warn_of_detached(name, leaf)


def require_arrays(name: str, leaves: Sequence[Any], structure: Any) -> None:
    """Raise a DtypeError unless all leaves of a result, in containers of this structure, are numbers or arrays."""
    require_plain(name, leaves)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray | np.generic):
            given = f"dtype {leaf.dtype}" if leaf.dtype.kind not in "biufc" else ""
        else:
            if isinstance(leaf, int):
                require_short(name, leaf, place_text(structure, i))
            number = isinstance(leaf, Tensor | bool | int | float | complex)
            given = "" if number else f"a {type_shown(leaf)}"
            if isinstance(leaf, Undefined):
                leaf.refuse()
        if given:
            needed = "numbers, arrays and Tensors, in any containers, are needed"
            action = remedy_for(leaf, "Return what was computed, and anything else elsewhere")
            raise DtypeError(name, f"a function that returned {given}{place_text(structure, i)}", needed, action)


def require_short(name: str, number: int, where: str) -> None:
    """Raise a RangeError if a whole number of Python's has more bits than any of NumPy's types."""
    if np.asarray(number).dtype.kind == "O":
        given = f"a function that returned an integer of {number.bit_length()} bits{where}"
        needed = "at most 63 and a sign are needed"
        raise RangeError(name, given, needed, "Return a float, or calculate it where it is called")


def place_text(structure: Any, index: int) -> str:
    """Return where a leaf of a result stands, if that is a container."""
    return "" if structure is None else f" at {place_in(structure, index, 'result')}"


def dtype_of(leaf: Any) -> np.dtype[Any]:
    """Return the dtype of a numeric leaf."""
    return leaf.dtype if isinstance(leaf, Tensor | np.ndarray | np.generic) else np.asarray(leaf).dtype


def result_error(name: str, what: str, action: str = "") -> DtypeError:
    """Return the error about a result without derivative; the action is that for what was given, if there is one."""
    aside = "through has_aux=True" if name in WITH_AUX else "elsewhere"
    return DtypeError(
        name,
        f"a function that returned {what}",
        "a float or complex number, or an array of them, is needed to differentiate",
        action or f"Return what was computed, converted to float, and anything else {aside}",
    )


def warn_of_detached(name: str, leaf: Any) -> None:
    """Warn of a result that no derivative can follow, at the user's line."""
    warnings.warn(
        describe(
            name,
            f"a function that returned a plain {type(leaf).__name__}, not computed from what it is differentiated by",
            "a result that depends on it is needed, or the derivative is zero",
            "Compute it with NumPy functions of the arguments, or return wengert.asarray(value) if it is a constant",
        ),
        DetachedWarning,
        stacklevel=user_stacklevel(),
    )
