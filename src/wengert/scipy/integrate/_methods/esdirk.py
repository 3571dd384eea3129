"""An implicit method for stiff equations, one stage after the other: Kvaerno's pair of order 5 and 4.

Each of six stages solves a system of n numbers by Newton's method, all with the factors of one matrix. None of the
iterations is differentiated: stages move with what their equations read.

Source: A. Kvaerno, Singly diagonally implicit Runge-Kutta methods with an explicit first stage, BIT Numer. Math. 44,
2004. The continuous extension has order 4, and the slopes of the solution at both ends of a step; its coefficients
solve the order conditions for each power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wengert.control.scan import scan
from wengert.control.while_loop import while_loop
from wengert.scipy.integrate._algebraic import completed_state
from wengert.scipy.integrate._methods.adaptive_steps import (
    Control,
    Counts,
    Step,
    Walk,
    as_arrays,
    interpolate_state,
    try_step,
)
from wengert.scipy.integrate._methods.held_factors import moving_root
from wengert.scipy.integrate._methods.implicit_method import (
    ImplicitMethod,
    newton_progress,
    newton_tolerance,
    rounding_error,
)
from wengert.scipy.integrate._methods.jacobian_matrices import Matrices
from wengert.scipy.integrate._methods.tableaux import Rows, combination, root_mean_square
from wengert.scipy.integrate._methods.visits import Slope, Stages, Start, Visits
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

GAMMA = 0.26
STAGES: Rows = (
    (GAMMA,),
    (0.13, 0.84033320996790809),
    (0.22371961478320505, 0.47675532319799699, -0.06470895363112615),
    (0.16648564323248321, 0.10450018841591720, 0.03631482272098715, -0.13090704451073998),
    (0.13855640231268224, 0.0, -0.04245337201752043, 0.02446657898003141, 0.61943039072480676),
    (0.13659751177640291, 0.0, -0.05496908796538376, -0.04118626728321046, 0.62993304899016403, 0.06962479448202728),
)
"""What the slopes of the stages before weigh in each; its own weighs `GAMMA`."""
EXTENSION: Rows = (
    (1.0, -2.0720375887956863, 1.6904652246969742, -0.48183012412488746),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.8427243190616482, -1.905324989984831, 1.0076315829577993),
    (0.0, -0.6665857136422548, 1.168426358151657, -0.5430269117926154),
    (0.0, 3.2569288143993465, -3.994125432838047, 1.36712966742886),
    (0.0, -0.6050255205696723, 1.4885502190674593, -0.8138999040157576),
    (0.0, -0.7560043104533911, 1.5520086209067838, -0.5360043104533934),
)
"""What slopes weigh in the coefficients of the continuous extension, of x, x**2, ..."""
BETWEEN = (0.25, 0.5, 0.75)
"""Where between the ends of a step algebraic states of the continuous extension satisfy their equations."""
CORRECTION = np.linalg.inv(np.array([[*BETWEEN, 1.0]]).T ** np.arange(1, 5))[:, :3]
"""What changes there, of none at both ends, weigh in its coefficients."""
MOST_ITERATIONS = 10
NEGLIGIBLE = 1e-2
NOT_CONVERGED = 20.0
"""The norm of the error of a step whose stages are not found, after which the next is half as long."""


class KvaernoMemory(NamedTuple):
    """Hold what was computed so far."""

    counts: Counts


@dataclass(frozen=True)
class Kvaerno(ImplicitMethod):
    """Be the method."""

    @property
    def order(self) -> int:
        """The order of the error estimate."""
        return 4

    def start(self, slope: Slope, walk: Walk, direction: Any, chosen: bool, moves: bool) -> Walk:
        """Return where an integration begins; nothing but the slope goes on from step to step."""
        walk = walk._replace(memory=KvaernoMemory(Counts(1 if chosen else 2, 0, 0)))
        return walk if self.mass is None else walk._replace(f=self.rate(slope)(walk.t, walk.y))

    def restart(self, slope: Slope, walk: Walk, direction: Any, where: Any) -> Walk:
        """Return where an integration goes on after a change of the state."""
        return walk

    def try_step(self, slope: Slope, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Make one attempt at a step; see `wengert.scipy.integrate._methods.adaptive_steps.try_step`."""
        attempt = Attempt(self, control)
        after, step = try_step(slope, attempt, walk, t1, control)
        before, tried = walk.memory.counts, after.attempts - walk.attempts
        matrices = 0 if self.is_constant else tried
        counts = Counts(before.slopes + tried * attempt.rounds, before.jacobians + matrices, before.factors + tried)
        return after._replace(memory=KvaernoMemory(counts)), step

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`.

        Algebraic states have no slopes that it could be of order 4 with: what they are between the ends their equations
        say. A step along a slope has been none.
        """
        coefficients = [h * combination(column, slopes) for column in zip(*EXTENSION, strict=True)]
        if self.algebraic is None or y.dtype.kind == "c":
            return coefficients
        is_step = np.any(np.stack([stop_gradient(x) for x in slopes[1:]]) != stop_gradient(slopes[0]))

        def change(_: Any, part: Any) -> tuple[Any, Any]:
            state = interpolate_state(self, y, coefficients, np.where(is_step, part, 0.0))
            found = completed_state(slope, t + np.where(is_step, part * h, 0.0), state, self.algebraic)[0]
            return (), np.where(is_step, found - state, 0.0)

        changes = CORRECTION @ scan(change, (), np.array(BETWEEN))[1]
        return [x + changes[i] for i, x in enumerate(coefficients)]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        return [x, x * x, x * x * x, x * x * x * x]

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the slopes of a step along a slope."""
        return [f] * 7


class Attempt:
    """Be an attempt at a step, which counts what it takes, and knows whether its stages were found."""

    more = None
    is_adaptive = is_kept = True
    evaluations, jacobians = 0, 0
    places: tuple[float, ...] = ()
    order = 4

    def __init__(self, method: Kvaerno, control: Control) -> None:
        self.method, self.control = method, control
        self.extend, self.basis, self.at_rest = method.extend, method.basis, method.at_rest
        self.mass = method.mass
        self.rounds: Any = 0

    def stages(self, visits: Visits, start: Start) -> Stages:
        """Return the slopes of a step, the state at its end, and the slope there, which is the last of them, too."""
        search = None if start.roots else StageSearch(self, visits, start)
        slopes, found, (t, y, _, h) = [start.f], [], start[:4]
        for i, row in enumerate(STAGES):
            time, known = t + (sum(row) + GAMMA) * h, y + h * combination(row, slopes)
            if search is None:
                found.append(self.moving(visits, time, known, start, start.roots[i]))
            else:
                found.append(search.root(time, known, known + GAMMA * h * slopes[-1]))
            slopes.append((found[-1] - known) / (GAMMA * h))
        return Stages(slopes, found[-1], slopes[-1], found, () if search is None else (search.rounds, search.converged))

    def moving(self, visits: Visits, t: Any, known: Any, start: Start, root: Any) -> Any:
        """Return the state of a stage, where it is what is known and a part of the slope there, with derivatives."""
        method = replace(self.method, mass=start.mass)
        (time, before), (_, root) = visits.place(t, known), visits.place(t, root)

        def equations(state: Any) -> tuple[Any, Matrices, Any]:
            jacobian = method.matrices.jacobian(visits, time, state)
            missed = method.by_mass(state - before) - GAMMA * start.h * visits(time, state)
            return missed, method.matrices, method.mass_like(jacobian) - GAMMA * start.h * jacobian

        return moving_root(equations, root)

    def error_norm(self, found: Stages, scale: Any, h: Any) -> Any:
        """Return the norm of the error estimate, which is what the last two stages differ by; below 1 it is good."""
        self.rounds, converged = found.counted
        lower = [*STAGES[-2], GAMMA, 0.0]
        weights = [high - low for high, low in zip([*STAGES[-1], GAMMA], lower, strict=True)]
        norm = root_mean_square(h * combination(weights, found.slopes) / scale)
        return np.where(converged, norm, NOT_CONVERGED)


class StageSearch:
    """Look for the states of stages by Newton's method, and count how often.

    Attributes:
        rounds: how many there were.
        converged: whether all were found.
    """

    def __init__(self, attempt: Attempt, slope: Slope, start: Start) -> None:
        self.method = replace(attempt.method, mass=start.mass)
        self.slope, self.h = slope, start.h
        jacobian = self.method.jacobian_at(slope, start.t, start.y)
        self.factors = self.method.matrices.factors(self.method.mass_like(jacobian) - start.h * GAMMA * jacobian)
        self.scale = attempt.control.atol + attempt.control.rtol * np.abs(start.y)
        self.tolerance = newton_tolerance(attempt.control.rtol)
        self.negligible = np.maximum(NEGLIGIBLE * self.tolerance, rounding_error(attempt.control.rtol))
        self.rounds: Any = 0
        self.converged: Any = True

    def root(self, t: Any, known: Any, guess: Any) -> Any:
        """Return the state of a stage, where it is what is known and a part of the slope there."""

        def improve(now: Any) -> Any:
            state, before, rounds, _converged, _over = now
            residual = self.method.by_mass(state - known) - GAMMA * self.h * self.slope(t, state)
            change = self.method.matrices.substitute(self.factors, residual)
            norm = root_mean_square(change / self.scale)
            _, hopeless, converged = newton_progress(norm, before, rounds, MOST_ITERATIONS, self.tolerance)
            near = norm <= self.negligible  # where rounding errors are all that is left, nothing converges
            failed = (hopeless & np.logical_not(near)) | np.logical_not(np.isfinite(norm))
            converged, rounds = (converged | near) & np.logical_not(failed), rounds + 1
            over = failed | converged | (rounds >= MOST_ITERATIONS)
            return np.where(failed, state, state - change), norm, rounds, converged, over

        found = while_loop(lambda now: np.logical_not(now[-1]), improve, as_arrays((guess, 0.0, 0, False, False)))
        self.rounds, self.converged = self.rounds + found[2], self.converged & found[3]
        return np.where(found[3], found[0], known)
