"""What `solve_ivp` is given, in the form that programs take."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import (
    FEW,
    as_items,
    as_whole,
    elements,
    positive,
    refuse_wrong,
    require_finite,
    require_number,
    require_one_number,
    shown,
)
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.scipy.integrate._methods.jacobian_matrices import GivenPattern
from wengert.scipy.integrate._methods.methods_by_name import FIXED, OUTSIDE, WITH_JACOBIAN, WITH_MASS, WITH_PATTERN
from wengert.scipy.integrate._right_hand_side import NAME, array_of, jacobian_matrix
from wengert.sparse.coloring.coloring_methods import as_pattern
from wengert.transforms.reverse import stop_gradient

LEAST_RTOL = 100 * float(np.finfo(float).eps)
FLOATS = frozenset((float, np.float64))
DEFAULT_STEPS = 1_000_000
"""How many steps may be tried where nobody says."""


def ends_of(t_span: Any) -> tuple[Any, Any]:
    """Return both ends of the interval, which are numbers."""
    ends = as_items(NAME, "t_span", t_span if isinstance(t_span, list | tuple) else array_of("t_span", t_span))
    if len(ends) != 2:
        given = f"{len(ends)} numbers for t_span"
        raise ShapeError(NAME, given, "a beginning and an end are needed", "Pass (t0, t1)")
    return as_time("t_span", ends[0]), as_time("t_span", ends[1])


def as_time(what: str, value: Any) -> Any:
    """Return a time as a float."""
    require_one_number(NAME, what, value)
    require_finite(NAME, what, value)
    if type(value) is not Tensor:
        return float(value)
    return value if value.dtype == float else value.astype(float)


def as_floats(value: Any) -> Any:
    """Return an array of floats, or a list of them as one; None for anything else, whose way is through Tensors."""
    if type(value) is np.ndarray:
        return value if value.dtype == float else None
    if type(value) in (list, tuple) and FLOATS.issuperset(map(type, value)):
        return np.array(value, float)
    return None


def as_state(y0: Any) -> Any:
    """Return the initial state in double precision."""
    usual = as_floats(y0)
    if usual is not None and usual.ndim == 1:
        require_finite(NAME, "y0", usual)
        return usual
    found = array_of("y0", y0)
    require_number(NAME, "y0", found)
    if found.ndim != 1:
        needed = "one axis is needed"
        raise ShapeError(NAME, f"y0 of shape {found.shape}", needed, "Pass y0.ravel(), and reshape y in fun")
    require_finite(NAME, "y0", found)
    dtype = complex if found.dtype.kind == "c" else float
    found = found if found.dtype == dtype else found.astype(dtype)
    return found if any(type(x) is Tensor for x in flatten(y0)[0]) else found.numpy()


def output_times(t_eval: Any, t0: Any, t1: Any) -> Any:
    """Return output times, which lie in the interval, in its order; they may repeat, as `odeint` lets them."""
    usual = as_floats(t_eval)
    times = array_of("t_eval", t_eval) if usual is None else usual
    if times.ndim != 1:
        raise ShapeError(NAME, f"t_eval of shape {times.shape}", "one axis is needed", "Pass a list of times")
    times = times if times.dtype == float else times.astype(float)
    known, first, last = elements(times), elements(t0), elements(t1)
    if known is not None and first is not None and last is not None:
        require_order(known, first, last)
    if usual is not None:
        times = times.copy() if usual is t_eval else times
        times.flags.writeable = False  # results have it, as they are
        return times
    return times if any(type(x) is Tensor for x in flatten(t_eval)[0]) else times.numpy()


def require_order(times: Any, first: Any, last: Any) -> None:
    """Refuse times that lie outside of the interval, or are not in its order."""
    if 0 < len(times) < FEW:
        few = times.tolist()
        if first <= few[0] and few[-1] <= last and all(map(operator.le, few, few[1:])):
            return
    if last >= first and len(times) and times[0] >= first and times[-1] <= last and (times[1:] >= times[:-1]).all():
        return  # as most are: what follows takes four times as long
    outside = (times < min(first, last)) | (times > max(first, last)) | np.isnan(times)
    needed = f"times between t0 = {first:.6g} and t1 = {last:.6g} are needed"
    refuse_wrong(NAME, "t_eval", times, outside, needed)
    steps = np.diff(times) if last >= first else -np.diff(times)
    if np.any(steps < 0):
        given = "output times in t_eval that do not follow each other"
        raise UsageError(NAME, given, "times in order from t0 to t1 are needed", "Sort them")


def stops_of(times: Any, t1: Any) -> Any:
    """Return output times with t1 as the last, which is one of them if it is known to be.

    One stop is no loop: first gradients of Lotka-Volterra's equations take 285 ms for 325.
    """
    if type(times) is np.ndarray and type(t1) is float and len(times) and times[-1] == t1:
        return times
    return np.concatenate([times, np.reshape(t1, (1,))])


def tolerances(rtol: Any, atol: Any, size: int) -> tuple[Any, Any]:
    """Return the tolerances, which are numbers or one for each component."""
    found: list[Any] = []
    for what, value in (("rtol", rtol), ("atol", atol)):
        number: Any = float(value) if isinstance(value, int | float) else array_of(what, value)
        if not isinstance(number, float) and type(value) is not Tensor:
            number = number.numpy()
        positive(NAME, what, number)
        if np.shape(number) not in ((), (size,)):
            given = f"{what} of shape {np.shape(number)} for a state of {size} numbers"
            raise ShapeError(NAME, given, "a number, or one for each is needed", "Reshape it")
        found.append(number)
    known = elements(found[0])
    is_usual = type(known) is float and known >= LEAST_RTOL  # told in a hundredth of the time
    if known is not None and not is_usual and np.any(known < LEAST_RTOL):
        text = f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {LEAST_RTOL})`."
        warnings.warn(text, stacklevel=user_stacklevel())
        found[0] = np.maximum(found[0], LEAST_RTOL)
    return found[0], found[1]


def step_sizes(max_step: Any, first_step: Any) -> tuple[Any, Any]:
    """Return the largest size of a step, and that of the first one, 0 where it is to be chosen."""
    for what, value in (("max_step", max_step), ("first_step", first_step)):
        if value is not None:
            require_one_number(NAME, what, value)
            positive(NAME, what, value, zero=False)
    found = [0.0 if x is None else as_size(x) for x in (max_step, first_step)]
    return found[0], found[1]


def require_within(first_step: Any, t0: Any, t1: Any) -> None:
    """Refuse a first step that is longer than the interval."""
    known = [elements(x) for x in (first_step, t0, t1)]
    if not any(x is None for x in known) and known[0] > abs(known[2] - known[1]):
        given = f"first_step={known[0]:.6g} for an interval of length {abs(known[2] - known[1]):.6g}"
        raise UsageError(NAME, given, "a step within the interval is needed", "Leave it out")


def as_size(number: Any) -> Any:
    """Return a number of any dtype as one of double precision, which steps have, held constant in derivatives."""
    known = isinstance(number, int | float | np.generic | np.ndarray)
    return float(number) if known else stop_gradient(number.astype(float))


def fixed_size(step: Any, method: str, size: int, max_step: Any, first_step: Any) -> Any:
    """Return the size of all steps as a number, None for methods that choose it."""
    if (step is None) is (method in FIXED):
        given = f"step={shown(step)} for method {method!r}"
        one = "the size of its steps" if step is None else f"a method of steps of one size, {' or '.join(FIXED)},"
        remedy = "Pass step=0.01, say" if step is None else "Leave step out, or pass first_step and max_step"
        raise UsageError(NAME, given, f"{one} is needed", remedy)
    if step is None:
        return None
    if first_step is not None or not np.all(np.isinf(max_step)):
        raise UsageError(NAME, "first_step or max_step beside step", "step alone is needed", "Leave them out")
    require_one_number(NAME, "step", step)
    require_finite(NAME, "step", step)
    positive(NAME, "step", step, zero=False)
    if method == "Verlet" and size % 2:
        given = f"a state of {size} numbers for method 'Verlet'"
        raise ShapeError(NAME, given, "positions, then as many velocities, are needed", "Pass np.concatenate([q, v])")
    return as_size(step)


def unknown_steps(times: Any) -> UsageError:
    """Return the error about what all steps are asked for, where nobody knows how many there are."""
    asked = "t_eval=None" if times is None else "dense_output=True"
    given = f"{asked} in a function that is being traced, or in lanes of `vmap`"
    wanted = "times such as t_eval=np.linspace(t0, t1, 101)"
    action = f"Pass t_eval=[t1] for the end, which is y[:, 0] then, or {wanted}"
    needed = "output times are needed where the number of steps is not known"
    return UsageError(NAME, given, needed, action if times is None else "Pass t_eval with the times of sol")


def most_steps(max_steps: Any) -> int:
    """Return how many steps may be tried."""
    return as_whole(NAME, "max_steps", max_steps, least=1)


def arguments(args: Any) -> tuple[Any, ...]:
    """Return the further arguments of functions, which SciPy takes in anything that can be iterated."""
    if args is None:
        return ()
    try:
        return tuple(args)
    except TypeError:
        given = f"{shown(args)} for args"
        raise UsageError(NAME, given, "a tuple is needed", "Write args=(p,)") from None


def mass_matrix(mass: Any, method: str, size: int) -> Any:
    """Return the mass matrix, None for that of ones."""
    if mass is None:
        return None
    if method not in WITH_MASS:
        given = f"a mass matrix for method {method!r}"
        raise UsageError(NAME, given, "a method for stiff equations is needed", "Pass method='Rodas5P'")
    mass = mass.toarray() if hasattr(mass, "toarray") else mass
    found = array_of("mass", mass)
    if found.shape != (size, size):
        given = f"mass of shape {found.shape} for a state of {size} numbers"
        raise ShapeError(NAME, given, f"shape ({size}, {size}) is needed", "Write numpy.diag of a vector")
    found = found if found.dtype.kind in "fc" else found.astype(float)
    return found if type(mass) is Tensor else found.numpy()


def jacobian_of(jac: Any, method: str, state: Any, pattern: GivenPattern | None) -> Any:
    """Return the Jacobian: a function, a matrix, packed if the user says its bands, or None."""
    if (method == "Radau" or method in OUTSIDE) and state.dtype.kind == "c":
        given = f"a complex y0 for method {method!r}"
        raise UsageError(NAME, given, "a real one is needed", "Pass method='BDF', 'Kvaerno5' or 'Rodas5P'")
    if jac is not None and method not in WITH_JACOBIAN:
        warn_of_no_effect("jac")
        return None
    if jac is None or callable(jac):
        return jac
    found = jacobian_matrix(jac, state.shape[0], None if pattern is None else pattern.bands)
    return found if type(jac) is Tensor else found.numpy()


def warn_of_no_effect(what: str) -> None:
    """Warn of an argument that a method does not need."""
    text = f"The following arguments have no effect for a chosen solver: `{what}`."
    warnings.warn(text, stacklevel=user_stacklevel())


def pattern_of(jac_sparsity: Any, lband: Any, uband: Any, method: str, size: int) -> GivenPattern | None:
    """Return which elements of the Jacobian may be other than zero, None if the user does not say."""
    given = {"jac_sparsity": jac_sparsity, "lband": lband, "uband": uband}
    if all(x is None for x in given.values()):
        return None
    if method not in WITH_PATTERN:
        for what, value in given.items():
            if value is not None:
                warn_of_no_effect(what)
        return None
    if jac_sparsity is not None:
        if lband is not None or uband is not None:
            asked = "jac_sparsity beside lband or uband"
            raise UsageError(NAME, asked, "one of them is needed", "Leave out the one that says less")
        found = as_pattern(NAME, jac_sparsity)
        if found.shape != (size, size):
            asked = f"jac_sparsity of shape {found.shape} for a state of {size} numbers"
            needed = f"shape ({size}, {size}) is needed"
            raise ShapeError(NAME, asked, needed, "Element (i, j) says whether fun[i] depends on y[j]")
        return GivenPattern(size, places_of(found.rows, found.indices, size))
    below, above = (0 if x is None else as_whole(NAME, what, x, least=0) for what, x in list(given.items())[1:])
    rows, columns = np.indices((below + above + 1, size))
    rows = rows - above + columns
    inside = (rows >= 0) & (rows < size)
    return GivenPattern(size, places_of(rows[inside], columns[inside], size), above, below + above + 1)


def places_of(rows: Any, columns: Any, size: int) -> bytes:
    """Return the places of elements, row by row, as bytes."""
    return np.sort(rows.astype(np.int64) * size + columns).tobytes()


def mass_places(mass: Any) -> bytes | None:
    """Return the places of the elements of a mass matrix that are not zero, None if nobody knows them."""
    known = None if mass is None else elements(mass)
    return None if known is None else np.flatnonzero(known).astype(np.int64).tobytes()
