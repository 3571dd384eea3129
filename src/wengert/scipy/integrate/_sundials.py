"""The integrators of SUNDIALS as classes of SciPy's kind, through scikit-sundae: CVODE, and IDA for M y' = f(t, y).

Source: A. C. Hindmarsh et al., SUNDIALS: suite of nonlinear and differential/algebraic equation solvers, ACM TOMS 31,
2005.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import DenseOutput, OdeSolver
from scipy.sparse import csc_array, csc_matrix

from wengert.errors import UsageError
from wengert.scipy.integrate._methods.element_matrices import ElementMatrices
from wengert.scipy.integrate._methods.recorded_steps import UNLIMITED, polynomial_places
from wengert.scipy.integrate._programs import IntegrationProgram
from wengert.scipy.integrate._right_hand_side import NAME
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
ORDER = 5
"""The highest order of backward differences, and so the degree of their continuous extensions."""
PLACES, COEFFICIENTS_OF = polynomial_places(ORDER)
MOST_ATTEMPTS = 10**6
"""How many steps SUNDIALS may take in a call, which takes one."""
DENSE = 40
"""States from which LAPACK's factors take less time than those that SUNDIALS has by itself."""


class StepPolynomial(DenseOutput):  # type: ignore[misc]  # SciPy has no types
    """Be the continuous extension of a step, by its values at places within.

    Args:
        t_old: the time at which the step begins.
        t: that at which it ends.
        samples: the states at `PLACES`, of shape (ORDER + 1, n).
    """

    def __init__(self, t_old: float, t: float, samples: Array) -> None:
        super().__init__(t_old, t)
        self.coefficients = (COEFFICIENTS_OF @ samples).T

    def _call_impl(self, t: Array) -> Array:
        """Return the states at times."""
        part = 2.0 * (t - self.t_old) / (self.t - self.t_old) - 1.0
        found: Array = self.coefficients @ np.vander(np.atleast_1d(part), ORDER + 1, increasing=True).T
        return found[:, 0] if np.ndim(t) == 0 else found


class SundialsSolver(OdeSolver):  # type: ignore[misc]  # SciPy has no types
    """Be an integrator of SUNDIALS.

    Args:
        fun: the right-hand side.
        t0: the beginning.
        y0: the state there.
        t_bound: the end.
        vectorized: as in SciPy.
        make: gives an integrator that begins, of the right-hand side, t0, y0 and options.
        options: tolerances, sizes of steps, and what is to be said of the Jacobian.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        t0: float,
        y0: Array,
        t_bound: float,
        vectorized: bool = False,
        *,
        make: Callable[..., Any],
        **options: Any,
    ) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized)
        self.y: Any = y0
        self.inner = make(fun, t0, y0, max_num_steps=MOST_ATTEMPTS, **options)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.inner))
        self.is_held = True  # SuperLU_MT frees what its first factorisation allocates also where there was none

    def _step_impl(self) -> tuple[bool, str | None]:
        """Take a step."""
        found = self.inner.step(self.t_bound, "onestep", self.t_bound)
        self.nfev, self.njev = found.nfev, found.njev
        if not found.success:
            return False, found.message
        if self.is_held:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self.inner))
            self.is_held = False
        self.t, self.y = float(found.t), found.y
        return True, None

    def _dense_output_impl(self) -> StepPolynomial:
        """Return the extension of the last step, which SUNDIALS gives at times within: at its end last, to go on."""
        times = self.t_old + PLACES * (self.t - self.t_old)
        times[-1] = self.t
        samples = [self.inner.step(time, "normal", None).y for time in times]
        return StepPolynomial(self.t_old, self.t, np.stack(samples))


def sundials_options(name: str, program: IntegrationProgram, leaves: Any, mass: Any, sizes: Any) -> dict[str, Any]:
    """Return what `SundialsSolver` is made of, for "CVODE" or "IDA"; see `integrator_class`."""
    rtol, atol, largest, first = sizes
    return {
        "rtol": one_tolerance(name, rtol, atol),
        "atol": float(atol) if np.ndim(atol) == 0 else np.asarray(atol, float),
        "max_step": 0.0 if np.isinf(largest) else float(largest),
        "first_step": float(first),
        "make": implicit_maker(program, leaves, mass) if name == "IDA" else explicit_maker(program, leaves),
    }


def one_tolerance(name: str, rtol: Any, atol: Any) -> float:
    """Return the relative tolerance of all states in whose errors anybody is interested, which SUNDIALS has one of."""
    looked_at = np.asarray(atol) < UNLIMITED
    each = np.broadcast_to(rtol, np.broadcast_shapes(np.shape(rtol), np.shape(atol)))
    known = np.unique(each[looked_at] if np.any(looked_at) else each)
    if len(known) != 1:
        given = f"several numbers for rtol with method {name!r}"
        raise UsageError(NAME, given, "one number is needed", "Say more of each state by atol")
    return float(known[0])


class JacobianForm:
    """Know how SUNDIALS takes a Jacobian: as a matrix, or the elements of a pattern column by column.

    Args:
        program: has the compiled Jacobian.
        leaves: what it reads.
        size: of how many states SUNDIALS knows.
        places: of those the ones whose rates the program has as further states.

    Attributes:
        options: what is to be said of it.
        is_sparse: whether it has a pattern.
    """

    def __init__(self, program: IntegrationProgram, leaves: Any, size: int, places: Array) -> None:
        self.program, self.leaves, self.size, self.places = program, leaves, size, places
        matrices = program.matrices
        self.is_sparse = isinstance(matrices, ElementMatrices)
        self.options: dict[str, Any] = {"linsolver": "dense" if size < DENSE else "lapackdense"}
        if isinstance(matrices, ElementMatrices):
            self.chosen = np.flatnonzero(matrices.rows < size)
            rows, columns = matrices.rows[self.chosen], matrices.columns[self.chosen]
            self.is_rate = columns >= size
            columns = np.concatenate([np.arange(size), places])[columns]
            both, self.order = np.unique(columns * size + rows, return_inverse=True)
            self.rows, self.columns = both % size, both // size
            pattern = csc_matrix(csc_array((np.ones(len(both)), (self.rows, self.columns)), (size, size)))
            pattern.indices, pattern.indptr = pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)
            self.options = {"linsolver": "sparse", "sparsity": pattern}

    def integrator(self, kind: Any, function: Any, jacobian: Any, options: dict[str, Any]) -> Any:
        """Return an integrator of scikit-sundae, which warns that a pattern is not used, as it is, with a Jacobian."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Custom sparse Jacobian approximation")
            return kind(function, jacfn=jacobian, **self.options, **options)

    def of_mass(self, mass: Any) -> Any:
        """Return a mass matrix in the form that `elements` gives."""
        return mass[self.rows, self.columns] if self.is_sparse else mass

    def elements(self, t: float, y: Array, factor: float = 0.0) -> Any:
        """Return the Jacobian of the right-hand side by the states, and `factor` times that by their rates."""
        found = self.program.jacobian_at(self.leaves, t, y)
        if self.is_sparse:
            own = found[self.chosen] * np.where(self.is_rate, factor, 1.0)
            return np.bincount(self.order, own, len(self.rows))
        size, by_state = self.size, found[: self.size, : self.size]
        if len(self.places):
            by_state = np.array(by_state)
            by_state[:, self.places] += factor * found[:size, size:]
        return by_state


def explicit_maker(program: IntegrationProgram, leaves: Any) -> Callable[..., Any]:
    """Return what makes CVODE's integrator of y' = f(t, y), and lets it begin."""

    def make(fun: Callable[..., Any], t0: float, y0: Array, **options: Any) -> Any:
        from sksundae.cvode import CVODE

        form = JacobianForm(program, leaves, len(y0), np.zeros(0, int))

        def slope(t: float, y: Array, yp: Array) -> None:
            yp[:] = fun(t, y)

        def jacobian(t: float, y: Array, yp: Array, out: Array) -> None:
            out[...] = form.elements(t, y)

        found = form.integrator(CVODE, slope, jacobian, options)
        found.init_step(t0, y0)
        return found

    return make


def implicit_maker(program: IntegrationProgram, leaves: Any, mass: Any) -> Callable[..., Any]:
    """Return what makes IDA's integrator of 0 = M y' - f(t, y), and lets it begin, with the rates that follow.

    The last states, those whose tolerance is `UNLIMITED` itself, are the rates of residuals F(t, y, y') = 0, which IDA
    takes as such: as states they would be as exact as others need them, which is not at all.
    """

    def make(fun: Callable[..., Any], t0: float, y0: Array, *, atol: Any, **options: Any) -> Any:
        from sksundae.ida import IDA

        size = len(y0) - (0 if mass is None else int(np.count_nonzero(np.asarray(atol) == UNLIMITED)))
        matrix = np.eye(size) if mass is None else np.asarray(mass)
        places = np.nonzero(matrix[size:])[1]
        form, matrix = JacobianForm(program, leaves, size, places), matrix[:size, :size]
        own = form.of_mass(matrix)

        def residual(t: float, y: Array, yp: Array, out: Array) -> None:
            out[:] = matrix @ yp - fun(t, with_rates(y, yp, places))[:size]

        def jacobian(t: float, y: Array, yp: Array, _: Array, cj: float, out: Array) -> None:
            out[...] = cj * own - form.elements(t, with_rates(y, yp, places), cj)

        options["atol"] = atol if np.ndim(atol) == 0 else atol[:size]
        found = form.integrator(IDA, residual, jacobian, options)
        found.init_step(t0, y0[:size], np.asarray(program.rate_at(leaves, t0, y0))[:size])
        return RatesBeside(found, places) if len(places) else found

    return make


class RatesBeside(NamedTuple):
    """Be an integrator of IDA whose states have rates of some beside them.

    Attributes:
        inner: the integrator.
        places: of the states whose rates follow.
    """

    inner: Any
    places: Array

    def step(self, *given: Any) -> Any:
        """Take a step, or give a state within the last one."""
        found = self.inner.step(*given)
        found.y = with_rates(found.y, found.yp, self.places)
        return found


def with_rates(y: Array, yp: Array, places: Array) -> Array:
    """Return states, and after them the rates of those at some places."""
    return np.concatenate([y, yp[places]]) if len(places) else y
