"""The packages that call IPOPT: ipyopt, and cyipopt where there is no other.

Of the same system MUMPS 5.5 of cyipopt's wheels makes 12,002 fronts and MUMPS of ipyopt's 1,500, so that all of IPOPT
takes three times as long; there are wheels of ipyopt for Linux alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.errors import UsageError
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
Limits = tuple[Array, Array]
RENAMED = {"maxiter": "max_iter", "disp": "print_level"}
"""Options that SciPy's methods share, by IPOPT's names."""
REPORTS = 5
"""IPOPT's own level of printing."""
MESSAGES = {
    0: "A point that meets the conditions of optimality to the tolerance was found.",
    1: "A point that meets the conditions of optimality to the acceptable tolerance was found.",
    2: "The iterations converged to a point that violates the constraints least: there may be no feasible one.",
    3: "The steps became too small.",
    4: "The iterates diverge: there may be no minimum.",
    5: "The callback ended the iterations.",
    6: "A point that meets as many equations as there are unknowns was found.",
    -1: "The limit on the number of iterations was reached.",
    -2: "No step led closer to the constraints (restoration failed).",
    -3: "No search direction could be computed.",
    -4: "The limit on processor time was reached.",
    -5: "The limit on wall-clock time was reached.",
    -10: "There are more equality constraints than free unknowns.",
    -11: "The problem is inconsistent: a lower limit may be above the upper one.",
    -12: "An option has a value that this build of IPOPT cannot serve.",
    -13: "A function or a derivative is infinite or NaN.",
    -102: "There is not enough memory.",
}
"""What IPOPT's statuses mean (IpReturnCodes.h)."""


class InteriorProblem(Protocol):
    """Give values and derivatives of an objective and constraints, and the iterate to callbacks."""

    start: Array
    count: int
    places: Any
    second_places: Any
    iterate: Callable[[], Array]

    def objective(self, x: Array) -> float:
        """Return the value of the objective."""

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the objective."""

    def constraints(self, x: Array) -> Array:
        """Return the values of the constraints."""

    def jacobian(self, x: Array) -> Array:
        """Return the stored elements of the constraints' Jacobian."""

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the stored elements of the Lagrangian's Hessian."""

    def intermediate(self, *numbers: Any) -> bool:
        """Take note of an iteration; return whether to go on."""


class Outcome(NamedTuple):
    """What IPOPT found.

    Attributes:
        x: the last iterate.
        value: of the objective.
        multipliers: of the constraints, in the Lagrangian that adds these.
        status: a key of `MESSAGES`.
    """

    x: Array
    value: float
    multipliers: Array
    status: int


@cache
def known_options() -> frozenset[str]:
    """Return the names of all options, which ipyopt lists in a millisecond."""
    options = importlib.import_module("ipyopt").get_ipopt_options()
    return frozenset([option["name"] for option in options])


def solve_by_ipyopt(
    name: str, problem: InteriorProblem, box: Limits, sides: Limits, settings: dict[str, Any]
) -> Outcome:
    """Return what IPOPT finds through ipyopt, whose callbacks write into IPOPT's own arrays."""
    package: Any = importlib.import_module("ipyopt")
    for key in settings:
        if RENAMED.get(key, key) not in known_options():
            raise unknown_option(name, key, settings[key])

    def derivative(function: Callable[..., Array]) -> Callable[..., None]:
        def write(x: Array, *more: Any) -> None:
            at = x.copy()  # a view of IPOPT's memory, which is another point's afterwards
            problem.iterate = lambda: at
            more[-1][...] = function(at, *(value.copy() if np.ndim(value) else value for value in more[:-1]))

        return write

    def values(x: Array, out: Array) -> None:
        out[...] = problem.constraints(x.copy())

    solver = package.Problem(
        len(problem.start),
        *box,
        problem.count,
        *sides,
        problem.places,
        problem.second_places,
        lambda x: problem.objective(x.copy()),
        derivative(problem.gradient),
        values,
        derivative(problem.jacobian),
        None if settings.get("hessian_approximation") == "limited-memory" else derivative(problem.hessian),
        problem.intermediate,
    )
    for key, value in settings.items():
        set_option(name, lambda key, value: solver.set(**{key: value}), key, value)
    multipliers = np.zeros(problem.count)
    x, value, status = solver.solve(np.array(problem.start, float), mult_g=multipliers)
    return Outcome(x, value, multipliers, status)


def solve_by_cyipopt(
    name: str, problem: InteriorProblem, box: Limits, sides: Limits, settings: dict[str, Any]
) -> Outcome:
    """Return what IPOPT finds through cyipopt."""
    package: Any = importlib.import_module("cyipopt")
    solver = package.Problem(len(problem.start), problem.count, problem, *box, *sides)
    problem.iterate = lambda: solver.get_current_iterate()["x"]
    for key, value in settings.items():
        set_option(name, solver.add_option, key, value)
    x, found = solver.solve(problem.start)
    return Outcome(x, found["obj_val"], found["mult_g"], found["status"])


PACKAGES = {"ipyopt": solve_by_ipyopt, "cyipopt": solve_by_cyipopt}
"""Packages by their names, the quickest first."""


def installed_solver(name: str) -> Callable[[str, InteriorProblem, Limits, Limits, dict[str, Any]], Outcome]:
    """Return what calls IPOPT through the first package that is installed.

    Raises:
        UsageError: there is none.
    """
    for package, solve in PACKAGES.items():
        if importlib.util.find_spec(package) is not None:
            return solve
    given = f"method='ipopt', and none of the packages {' and '.join(PACKAGES)} is installed"
    raise UsageError(name, given, "one is needed for IPOPT", "Run pip install 'wengert[ipopt]'")


def unknown_option(name: str, key: str, value: Any) -> UsageError:
    """Return the error about an option that IPOPT does not have."""
    needed = "an option of IPOPT with a value of its kind is needed"
    return UsageError(name, f"{key}={shown(value)} among options", needed, "See the list of options of IPOPT")


def set_option(name: str, put: Callable[[str, Any], Any], key: str, value: Any) -> None:
    """Set an option of IPOPT; raise a UsageError if there is none of that name and kind."""
    known = RENAMED.get(key, key)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        value = REPORTS * value if known == "print_level" else ("no", "yes")[value]
    for form in (value, float(value)) if isinstance(value, int) else (value,):
        try:
            put(known, form)
        except (TypeError, ValueError):
            continue
        return
    raise unknown_option(name, key, value)
