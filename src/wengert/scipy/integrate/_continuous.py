"""Derivatives of a solution by equations of their own, along the steps that were taken: gradient="continuous".

A state at the end of a piece of the solution moves with that at its beginning, by what functions read, and by both
times. Backward, cotangents solve the adjoint equation c' = -J^T c along the continuous extension of the step, with an
error estimate and steps of their own, and those of what functions read are integrals; the state is never integrated
backward. Forward, tangents solve v' = J v + df/dp p'. Derivatives of these move with the extension, as it does.

Source: Y. Cao, S. Li, L. Petzold and R. Serban, Adjoint sensitivity analysis for differential-algebraic equations, SIAM
J. Sci. Comput. 24, 2003.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert.control.scan import scan
from wengert.control.while_loop import while_loop
from wengert.scipy.integrate._methods.adaptive_steps import (
    Control,
    OneStepMethod,
    Step,
    Walk,
    as_arrays,
    goes_on,
    interpolated,
    try_step,
)
from wengert.scipy.integrate._methods.implicit_method import at_other_time
from wengert.scipy.integrate._methods.jacobian_matrices import FULL
from wengert.scipy.integrate._methods.methods_by_name import AnyMethod
from wengert.scipy.integrate._methods.rosenbrock import Rosenbrock
from wengert.scipy.integrate._methods.tableaux import Tableau
from wengert.scipy.integrate._methods.visits import Slope
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient, vjp

NODES, WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(5))
PLACES = 0.5 + NODES
"""Those of Gauss's rule of order 10, of an interval from 0 to 1."""
LEAST = 1e-290
"""What stands for the size of a cotangent that is zero."""


class Piece(NamedTuple):
    """Hold a piece of the solution.

    Attributes:
        step: the step that it is the beginning of, held constant.
        control: that of the sizes of steps, likewise.
        leaves: what functions read.
        t: when it begins.
        y: in which state.
    """

    step: Step
    control: Control
    leaves: Any
    t: Any
    y: Any

    @property
    def sizes(self) -> Any:
        """Return what numbers of the state are measured by."""
        return np.abs(stop_gradient(self.y)) + self.control.atol / self.control.rtol


class Flow:
    """Give states at the end of pieces of a solution the derivatives that the equation gives them.

    Attributes:
        slope_of: gives the right-hand side, of what functions read.
        method: that of the steps.
        own: that of equations for tangents and cotangents.
    """

    def __init__(self, slope_of: Callable[[Any], Slope], method: AnyMethod) -> None:
        self.slope_of, self.method = slope_of, method
        self.own: OneStepMethod = method if isinstance(method, Tableau) else Rosenbrock(FULL)
        self.moving: Any = custom_rule(lambda value, *_: value)
        self.moving.defvjp(lambda *given: (given[0], given), self.pull)
        self.moving.defjvp(self.push)

    def __call__(self, value: Any, piece: Piece, end: Any) -> Any:
        """Return the state at the end of a piece, whose value is known, with derivatives."""
        slope, known = self.slope_of(piece.leaves), stop_gradient((value, piece.step, piece.control, piece.t, end))
        first = at_other_time(slope, piece.t, known[3], piece.y)
        return at_other_time(slope, known[4], end, self.moving(*known, first, piece.leaves))

    def along(self, piece: Piece) -> Callable[[Any], Any]:
        """Return the state of a piece as a function of time."""
        step = piece.step
        slope = self.slope_of(stop_gradient(piece.leaves))
        extension = stop_gradient(self.method.extend(slope, step.t, step.y, step.end, step.h, step.slopes))

        def state(t: Any) -> Any:
            part = (stop_gradient(t) - step.t) / step.h
            return self(interpolated(self.method, step.y, extension, part), piece, t)

        return state

    def pull(self, residuals: Any, ct: Any) -> Any:
        """Return the cotangents of a piece from that of the state at its end."""
        _, step, control, start, end, y, leaves = residuals
        piece = Piece(step, control, leaves, start, y)
        state = self.along(piece)

        def cotangents(t: Any, c: Any) -> Any:
            return vjp(lambda y, leaves: self.slope_of(leaves)(t, y), state(t), piece.leaves)[1](c)

        def change(t: Any, c: Any) -> Any:
            return -cotangents(t, c)[0]

        def add(t: Any, c: Any) -> Any:
            return cotangents(t, c)[1]

        nothing = [0.0 * x for x in piece.leaves]
        last, total = self.integrate(change, (end, piece.t), ct, 1.0 / piece.sizes, piece.control, add, nothing)
        return None, None, None, None, None, last, tuple([-x for x in total])

    def push(self, primals: Any, tangents: Any) -> Any:
        """Return the state at the end of a piece, and its tangent."""
        (value, step, control, start, end, y, leaves), (*_, first, moves) = primals, tangents
        piece = Piece(step, control, leaves, start, y)
        state = self.along(piece)

        def change(t: Any, v: Any) -> Any:
            primals, tangents = (state(t), piece.leaves), (v, moves)
            return jvp(lambda y, leaves: self.slope_of(leaves)(t, y), primals, tangents)[1]

        last, _ = self.integrate(change, (piece.t, end), first, piece.sizes, piece.control, lambda t, v: [], [])
        return value, last

    def integrate(
        self, slope: Slope, ends: tuple[Any, Any], first: Any, sizes: Any, control: Control, add: Any, total: Any
    ) -> tuple[Any, Any]:
        """Return the solution of a linear equation at an end, and the integrals of what is to be added up.

        Args:
            slope: of the equation.
            ends: where to begin and to end.
            first: the value at the beginning.
            sizes: what numbers of it are measured by.
            control: its relative tolerance is that here, too.
            add: what is integrated, arrays, of time and value.
            total: zeros like these.
        """
        start, end = ends
        largest = np.maximum(np.max(np.abs(stop_gradient(first)) / sizes, initial=0.0), LEAST)
        control = Control(control.rtol, control.rtol * sizes * largest, np.inf, 0.0, control.most)
        length = stop_gradient(end) - stop_gradient(start)
        walk = Walk(start, first, slope(start, first), np.abs(length), False, 0, 0)

        def attempt(carried: tuple[Walk, list[Any]]) -> tuple[Walk, list[Any]]:
            walk, total = carried
            after, step = try_step(slope, self.own, walk, end, control)
            extension = self.own.extend(slope, step.t, step.y, step.end, step.h, step.slopes)

            def add_share(total: list[Any], node: tuple[Any, Any]) -> tuple[list[Any], None]:
                place, share = node[0], np.where(after.rejected, 0.0, node[1] * step.h)
                found = add(step.t + place * step.h, interpolated(self.own, step.y, extension, place))
                return [x + share * np.where(after.rejected, 0.0, y) for x, y in zip(total, found, strict=True)], None

            return after, scan(add_share, total, (PLACES, WEIGHTS))[0] if total else total

        go_on = functools.partial(goes_on, until=end, direction=np.sign(length))
        walk, total = while_loop(lambda carried: go_on(carried[0]), attempt, as_arrays((walk, total)))
        return np.where(walk.failure == 0, walk.y, np.nan), total
