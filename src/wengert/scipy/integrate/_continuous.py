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
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.control.scan import scan
from wengert.control.while_loop import while_loop
from wengert.core.containers.tree_leaves import flatten
from wengert.errors import GraphError
from wengert.implicit.matrix_free import holds_trace
from wengert.scipy.integrate._algebraic import Algebraic, rate_of
from wengert.scipy.integrate._methods.adaptive_steps import (
    Control,
    OneStepMethod,
    Step,
    Walk,
    as_arrays,
    goes_on,
    interpolate_state,
    try_step,
)
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod, at_other_time
from wengert.scipy.integrate._methods.jacobian_matrices import FULL, Matrices
from wengert.scipy.integrate._methods.methods_by_name import AnyMethod
from wengert.scipy.integrate._methods.rosenbrock import Rosenbrock
from wengert.scipy.integrate._methods.tableaux import Tableau, jacobian_by_state
from wengert.scipy.integrate._methods.visits import AlongSolution, Slope
from wengert.support.records import NamedTuple
from wengert.traces.jet import Jet
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient, vjp

NODES, WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(5))
PLACES = 0.5 + NODES
"""Those of Gauss's rule of order 10, of an interval from 0 to 1."""
UNMEASURED = 1e100
"""What algebraic cotangents are measured by, which follow from the others at each time: not at all."""
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
        mass_of: gives the mass matrix, likewise, and the equations that a singular one leaves; None for that of ones.
        method: that of the steps.
    """

    def __init__(self, slope_of: Callable[[Any], Slope], mass_of: Any, method: AnyMethod) -> None:
        self.slope_of, self.mass_of, self.method = slope_of, mass_of, method
        self.moving: Any = custom_rule(lambda value, *_: value)
        self.moving.defvjp(lambda *given: (given[0], given), self.pull)
        self.moving.defjvp(self.push)
        self.reaching: Any = custom_rule(lambda y, _end, _leaves: y)
        self.reaching.defvjp(lambda *given: (given[0], given), lambda given, ct: vjp(self.state_at, *given)[1](ct))
        self.reaching.defjvp(lambda primals, tangents: jvp(self.state_at, primals, tangents))

    def __call__(self, value: Any, piece: Piece, end: Any) -> Any:
        """Return the state at the end of a piece, whose value is known, with derivatives."""
        known = stop_gradient((value, piece.step, piece.control, end))
        return self.reaching(self.moving(*known, piece.t, piece.y, piece.leaves), end, piece.leaves)

    def rate_of(self, leaves: Any) -> Slope:
        """Return how states change."""
        return rate_of(self.slope_of(leaves), *self.masses(leaves))

    @property
    def matrices(self) -> Matrices:
        """How Jacobians of the slope are held."""
        return self.method.matrices if isinstance(self.method, ImplicitMethod | Rosenbrock) else FULL

    def masses(self, leaves: Any) -> tuple[Any, Algebraic | None]:
        """Return the mass matrix, None for that of ones, and the algebraic equations, None without."""
        if self.mass_of is None:
            return None, None
        mass, algebraic = self.mass_of(leaves)
        return mass, stop_gradient(algebraic)

    def near(self, piece: Piece, extension: Any, part: Any) -> Callable[[Any], tuple[Any, Any]]:
        """Return the solution near a part of the step of a piece: time and state as functions of it."""
        (held, _, _, start, _), terms = stop_gradient((piece, extension))
        t = start + part * held.h
        y = self(interpolate_state(self.method, held.y, terms, part), piece, t)
        rate = self.rate_of(piece.leaves)

        def path(part: Any) -> tuple[Any, Any]:
            time = start + part * held.h
            return time, at_other_time(rate, t, time, y)

        return path

    def along(self, piece: Piece) -> Callable[[Any], Any]:
        """Return the state of a piece as a function of time."""
        step = piece.step
        slope, method = self.slope_of(stop_gradient(piece.leaves)), self.method
        if isinstance(method, ImplicitMethod):
            method = replace(method, algebraic=self.masses(piece.leaves)[1])
        extension = stop_gradient(method.extend(slope, step.t, step.y, step.end, step.h, step.slopes))

        def state(t: Any) -> Any:
            part = (stop_gradient(t) - step.t) / step.h
            return self(interpolate_state(self.method, step.y, extension, part), piece, t)

        return state

    def near_known(self, piece: Piece) -> Callable[[Any, Any, Any], Any]:
        """Return the state at a time from that at another one, which is equal to it, as a function of both times."""
        rate = self.rate_of(piece.leaves)
        return lambda known, t, y: at_other_time(rate, known, t, y)

    def equations(self, t: Any, y: Any, leaves: Any) -> Callable[[Any, Any], Any]:
        """Return f(t, y) - M y' as a function of the state and of what functions read, with y' held."""
        if self.mass_of is None:
            return lambda y, leaves: self.slope_of(leaves)(t, y)
        rate = self.rate_of(leaves)(t, y)
        return lambda y, leaves: self.slope_of(leaves)(t, y) - self.masses(leaves)[0] @ rate

    def pull(self, residuals: Any, ct: Any) -> Any:
        """Return the cotangents of a piece from that of the state at its end."""
        _, step, control, end, start, y, leaves = residuals
        first, total = self.pull_between(Piece(step, control, leaves, start, y), end, ct)
        by_start = -np.sum(first * self.rate_of(leaves)(start, y))
        return None, None, None, None, by_start, first, tuple([-x for x in total])

    def pull_between(self, piece: Piece, end: Any, ct: Any) -> tuple[Any, Any]:
        """Return the cotangent of the state at the beginning of a piece, and what those of leaves lack: its integral.

        Both times are held.
        """
        state = self.along(piece)

        def cotangents(t: Any, c: Any, place: Any) -> Any:
            return vjp(self.equations(t, place, piece.leaves), place, piece.leaves)[1](c)

        def add(t: Any, c: Any) -> Any:
            return cotangents(t, c, state(t))[1]

        change = AlongSolution(state, lambda t, c, place: -cotangents(t, c, place)[0], self.near_known(piece))

        nothing = [0.0 * x for x in piece.leaves]
        mass, algebraic = self.masses(piece.leaves)
        held = self.matrices.transpose
        if mass is None:
            return self.integrate(change, (end, piece.t), ct, 1.0 / piece.sizes, piece.control, held, add, nothing)
        mass, by_state = mass.T, jacobian_by_state(self.slope_of(piece.leaves), end, state(end)).T
        matrix, missed = mass, []
        if algebraic is not None:
            rows, columns = algebraic
            moved = np.linalg.solve(columns.T @ by_state @ rows.T, columns.T @ ct) @ rows
            ct, missed = ct - by_state @ moved, add(end, moved)
            matrix = mass + columns @ columns.T @ by_state
        first = np.linalg.solve(matrix, ct)
        weights = (np.abs(mass) + np.abs((end - piece.t) * by_state)).T @ piece.sizes
        sizes = 1.0 / stop_gradient(np.where(weights == 0, 1.0, weights))
        sizes = np.where(stop_gradient(np.max(np.abs(mass), axis=0)) == 0, UNMEASURED, sizes)
        ends = end, piece.t
        last, total = self.integrate(change, ends, first, sizes, piece.control, held, add, nothing, mass)
        total = [x + y for x, y in zip(total, missed, strict=True)] if missed else total
        return mass @ last, total

    def push(self, primals: Any, tangents: Any) -> Any:
        """Return the state at the end of a piece, and its tangent."""
        (value, step, control, end, start, y, leaves), (*_, begins, first, moves) = primals, tangents
        if any(holds_trace(x, Jet) for x in flatten(tangents)[0]):  # which steps look at
            given, action = "taylor of a solution with gradient='continuous'", "Leave gradient out, or use jvp of jvp"
            raise GraphError("solve_ivp", given, "derivatives one after another are needed", action)
        piece = Piece(step, control, leaves, start, y)
        first = first - begins * self.rate_of(leaves)(start, y)
        state = self.along(piece)

        def change_at(t: Any, v: Any, place: Any) -> Any:
            return jvp(self.equations(t, place, piece.leaves), (place, piece.leaves), (v, moves))[1]

        change = AlongSolution(state, change_at, self.near_known(piece))
        mass, algebraic = self.masses(piece.leaves)
        if algebraic is not None:
            rows, columns = algebraic
            by_state = jacobian_by_state(self.slope_of(piece.leaves), piece.t, state(piece.t))
            missed = np.linalg.solve(rows @ by_state @ columns, rows @ change(piece.t, first))
            first = first - columns @ missed
        times = piece.t, end
        held = self.matrices
        last, _ = self.integrate(change, times, first, piece.sizes, piece.control, held, lambda t, v: [], [], mass)
        return value, last

    def state_at(self, y: Any, end: Any, leaves: Any) -> Any:
        """Return a state as that of a time that moves, by steps that none but derivatives of it need."""
        return at_other_time(self.rate_of(leaves), stop_gradient(end), end, y)

    def integrate(
        self,
        slope: Slope,
        ends: tuple[Any, Any],
        first: Any,
        sizes: Any,
        control: Control,
        matrices: Matrices,
        add: Any,
        total: Any,
        mass: Any = None,
    ) -> tuple[Any, Any]:
        """Return the solution of a linear equation at an end, and the integrals of what is to be added up.

        Args:
            slope: of the equation.
            ends: where to begin and to end.
            first: the value at the beginning.
            sizes: what numbers of it are measured by.
            control: its relative tolerance is that here, too.
            matrices: how Jacobians of the equation are held.
            add: what is integrated, arrays, of time and value.
            total: zeros like these.
            mass: what the rate of the value is multiplied by.
        """
        start, end = ends
        method: OneStepMethod = self.method if isinstance(self.method, Tableau) else Rosenbrock(matrices, mass)
        largest = np.maximum(np.max(np.abs(stop_gradient(first)) / sizes, initial=0.0), LEAST)
        control = Control(control.rtol, control.rtol * sizes * largest, np.inf, 0.0, control.most)
        length = stop_gradient(end) - stop_gradient(start)
        if mass is None:  # no step tells how a piece of length 0 moves with its ends, to second order
            first = cond(length == 0, lambda: at_other_time(slope, start, end, first), lambda: first)
        walk = Walk(start, first, slope(start, first), np.abs(length), False, 0, 0)

        def attempt(carried: tuple[Walk, list[Any]]) -> tuple[Walk, list[Any]]:
            walk, total = carried
            after, step = try_step(slope, method, walk, end, control)
            extension = method.extend(slope, step.t, step.y, step.end, step.h, step.slopes)

            def add_share(total: list[Any], node: tuple[Any, Any]) -> tuple[list[Any], None]:
                place, share = node[0], np.where(after.rejected, 0.0, node[1] * step.h)
                found = add(step.t + place * step.h, interpolate_state(method, step.y, extension, place))
                return [x + share * np.where(after.rejected, 0.0, y) for x, y in zip(total, found, strict=True)], None

            return after, scan(add_share, total, (PLACES, WEIGHTS))[0] if total else total

        go_on = functools.partial(goes_on, until=end, direction=np.sign(length))
        walk, total = while_loop(lambda carried: go_on(carried[0]), attempt, as_arrays((walk, total)))
        return np.where(walk.failure == 0, walk.y, np.nan), total
