"""What a call of `solve_ivp` says besides functions, times and states: checked, and remembered if it is plain."""

from __future__ import annotations

import functools
from types import NoneType
from typing import Any

from wengert.core.diagnostics.argument_checks import elements, require_choice, require_flag, shown
from wengert.errors import UsageError
from wengert.scipy.integrate._algebraic import Algebraic, algebraic_equations
from wengert.scipy.integrate._arguments import (
    LEAST_RTOL,
    fixed_size,
    mass_matrix,
    mass_places,
    most_steps,
    pattern_of,
    step_sizes,
    tolerances,
)
from wengert.scipy.integrate._methods.adaptive_steps import Control
from wengert.scipy.integrate._methods.methods_by_name import METHODS, OUTSIDE
from wengert.scipy.integrate._right_hand_side import NAME
from wengert.scipy.integrate._step_loops import Options
from wengert.support.records import NamedTuple

PLAIN = frozenset((float, int, bool, str, NoneType))
"""Classes of arguments that never change."""


class CallArguments(NamedTuple):
    """Hold arguments of `solve_ivp`, what it knows of the state, and whether slopes are functions of this first."""

    size: int
    kind: str
    method: Any
    rtol: Any
    atol: Any
    lband: Any
    uband: Any
    first_step: Any
    max_step: Any
    max_steps: Any
    has_state_first: bool = False
    dense_output: Any = False
    vectorized: Any = False
    jac_sparsity: Any = None
    mass: Any = None
    start: Any = "given"
    step: Any = None
    gradient: Any = None
    memory_budget: Any = None


class CallSettings(NamedTuple):
    """Hold what follows from these arguments.

    Attributes:
        control: that of the sizes of steps.
        options: of the program, but for events and times that move.
        gradient: how derivatives are taken.
        mass: the mass matrix; None for that of ones.
        algebraic: the equations of a singular one; None without.
        odd: what there is that equations along the solution do not serve.
        is_judged: whether a warning tells of derivatives that steps do not resolve.
    """

    control: Control
    options: Options
    gradient: str
    mass: Any
    algebraic: Algebraic | None
    odd: tuple[str, ...]
    is_judged: bool


def settings_for(given: CallArguments) -> CallSettings:
    """Return what follows from arguments: as it was where these are plain, and nothing is to be warned of."""
    has_no_pattern = given.jac_sparsity is given.lband is given.uband is None
    is_usual = has_no_pattern and type(given.rtol) is float and given.rtol >= LEAST_RTOL
    return known_settings(*given) if is_usual and PLAIN.issuperset(map(type, given)) else checked_settings(*given)


def checked_settings(*arguments: Any) -> CallSettings:
    """Return what follows from arguments, each of which is checked."""
    given = CallArguments(*arguments)
    method, size = given.method, given.size
    require_flag(NAME, dense_output=given.dense_output, vectorized=given.vectorized)
    require_method(method)
    fixed = fixed_size(given.step, method, size, given.max_step, given.first_step)
    sizes = step_sizes(given.max_step, given.first_step) if fixed is None else (fixed, fixed)
    control = Control(*tolerances(given.rtol, given.atol, size), *sizes, most_steps(given.max_steps))
    pattern = pattern_of(given.jac_sparsity, given.lband, given.uband, method, size)
    mass, algebraic = masses_of(given.mass, method, size, given.kind, given.start)
    odd = {
        "a mass matrix that is being traced": mass is not None and elements(mass) is None,
        "complex states": given.kind == "c",
        "step": fixed is not None,
    }
    gradient = gradient_kind(given.gradient, method)
    is_outside = method in OUTSIDE
    options = Options(
        method,
        has_first_step=given.first_step is not None or fixed is not None or is_outside,
        dense=not is_outside and bool(given.dense_output),
        columns=bool(given.vectorized),
        has_state_first=given.has_state_first,
        budget=given.memory_budget,
        pattern=pattern,
        mass_places=mass_places(mass),
        is_solved=given.start == "solved",
        is_continuous=is_outside or gradient == "continuous",
        has_moving_start=False,
        has_moving_times=False,
        shape=(size,),
        kind=given.kind,
    )
    strange = tuple(what for what, is_there in odd.items() if is_there)
    return CallSettings(control, options, gradient, mass, algebraic, strange, mass is None and fixed is None)


known_settings = functools.lru_cache(maxsize=256, typed=True)(checked_settings)


def require_method(method: Any) -> None:
    """Refuse what is not the name of a method."""
    if not isinstance(method, str) or method not in METHODS:
        needed = f"one of {', '.join(METHODS)} is needed"
        raise UsageError(NAME, f"{shown(method)} for method", needed, "Pass its name")


def masses_of(mass: Any, method: str, size: int, kind: str, start: Any) -> tuple[Any, Algebraic | None]:
    """Return the mass matrix and its algebraic equations; refuse to solve these where that cannot be."""
    found = mass_matrix(mass, method, size)
    require_choice(NAME, "start", start, ("given", "solved"))
    if start == "solved" and (kind == "c" or (found is not None and elements(found) is None)):
        given = "start='solved' with a complex y0, or a mass matrix that is being traced"
        raise UsageError(NAME, given, "real states and a known matrix are needed", "Solve for y0 before")
    return found, algebraic_equations(found)


def gradient_kind(gradient: Any, method: str) -> str:
    """Return how derivatives are taken, which nobody has to say."""
    if gradient is None:
        return "continuous" if method in OUTSIDE else "discrete"
    require_choice(NAME, "gradient", gradient, ("discrete", "forward", "continuous"))
    if method in OUTSIDE and gradient == "discrete":
        given = f"gradient='discrete' for method {method!r}, whose steps another library takes"
        raise UsageError(NAME, given, "'continuous' or 'forward' is needed", "Leave gradient out, or pass method='BDF'")
    return str(gradient)
