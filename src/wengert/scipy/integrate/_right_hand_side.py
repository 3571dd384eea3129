"""What users give of an equation: its right-hand side and its Jacobian, whose results are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.control.argument_aliasing import own_copies
from wengert.core.diagnostics.argument_checks import require_result, shown
from wengert.creation import asarray
from wengert.errors import DtypeError, ShapeError, WengertError

NAME = "solve_ivp"


def array_of(what: str, value: Any) -> Any:
    """Return an argument as a Tensor or an array; errors name it by `what`."""
    try:
        return asarray(value)
    except WengertError as error:
        raise type(error)(NAME, f"{shown(value)} for {what}", "numbers are needed", "Pass a list of floats") from error


class RightHandSide:
    """Be a user's function of time and state, whose result is an array like the state.

    Args:
        function: the function.
        args: its further arguments.
        state: a state.
        columns: whether it takes states as matrices of one column.
        has_state_first: whether it takes the state before the time.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], state: Any, columns: bool, has_state_first: bool
    ) -> None:
        self.fun = function
        self.args = args
        self.size, self.dtype = state.shape[0], state.dtype
        self.columns, self.has_state_first = columns, has_state_first

    def __call__(self, t: Any, y: Any) -> Any:
        """Return the slope."""
        state = y[:, None] if self.columns else y
        both = (state, t) if self.has_state_first else (t, state)
        found = require_result(NAME, self.fun(*own_copies((*both, *self.args))), "fun")
        found = array_of("what fun returned", found)
        if found.shape == (self.size, 1) and self.columns:
            found = found[:, 0]
        if found.dtype.kind == "c" and self.dtype.kind != "c":
            given = f"fun returned dtype {found.dtype} for a real y0"
            raise DtypeError(NAME, given, "real numbers are needed", "Pass a complex y0, y0.astype(complex)")
        if found.shape == () and self.size == 1:
            found = found.reshape(1)
        if found.shape != (self.size,):
            given = f"fun returned shape {found.shape} for a state of {self.size} numbers"
            raise ShapeError(NAME, given, f"shape ({self.size},) is needed", "Return one slope for each number of y0")
        return found if found.dtype == self.dtype else found.astype(self.dtype)


class Jacobian:
    """Be a user's Jacobian of the slope by the state."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], size: int, bands: int | None) -> None:
        self.fun, self.args, self.size, self.bands = function, args, size, bands

    def __call__(self, t: Any, y: Any) -> Any:
        """Return the Jacobian."""
        return jacobian_matrix(self.fun(*own_copies((t, y, *self.args))), self.size, self.bands)


def jacobian_matrix(given: Any, size: int, bands: int | None) -> Any:
    """Return a Jacobian, which is dense or packed here, in double precision; the latter if the user says its bands."""
    found = array_of("jac", given.toarray() if hasattr(given, "toarray") else given)
    rows = size if bands is None else bands
    if found.shape != (rows, size):
        given = f"jac of shape {found.shape} for a state of {size} numbers"
        place = "(i, j)" if bands is None else "(uband + i - j, j)"
        raise ShapeError(NAME, given, f"shape ({rows}, {size}) is needed", f"Element {place} is d fun[i] / d y[j]")
    return found if found.dtype.kind in "c" or found.dtype == float else found.astype(float)
