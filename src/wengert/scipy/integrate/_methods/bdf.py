"""A method for stiff equations and large systems: backward differences of order 1 to 5, with the steps of SciPy's.

A step solves one system of n numbers. It begins with differences of the states before, as if these were those of equal
steps; where sizes change they are those of the same polynomial. Sizes, orders and times are held constant; differences
move with what the slope reads, and so does the state, by the equation that it solves.

Source: L. F. Shampine and M. W. Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18, 1997; the choice of steps and
orders is that of SciPy's class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.control.while_loop import while_loop
from wengert.creation import asarray
from wengert.scipy.integrate._methods.adaptive_steps import (
    TOO_MANY,
    TOO_SMALL,
    Control,
    Counts,
    Step,
    Walk,
    as_arrays,
    interpolate_state,
    least_size,
)
from wengert.scipy.integrate._methods.held_factors import moving_root
from wengert.scipy.integrate._methods.implicit_method import (
    ImplicitMethod,
    at_held_time,
    at_other_time,
    newton_progress,
    newton_tolerance,
)
from wengert.scipy.integrate._methods.jacobian_matrices import Matrices
from wengert.scipy.integrate._methods.tableaux import combination, root_mean_square
from wengert.scipy.integrate._methods.visits import Slope
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

HIGHEST, MOST_ITERATIONS = 5, 4
LARGEST_FACTOR, SMALLEST_FACTOR = 10.0, 0.2
KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
GAMMA = np.array([0, *np.cumsum(1 / np.arange(1, HIGHEST + 1))])
ALPHA = (1 - KAPPA) * GAMMA
ERROR = KAPPA * GAMMA + 1 / np.arange(1, HIGHEST + 2)
ROWS = np.arange(HIGHEST + 3)[:, None]
"""The orders of differences."""
KNOWN = (np.arange(HIGHEST + 1)[:, None] >= ROWS.T).astype(float)
"""For each order of the method, which differences make up the predicted state."""
WEIGHTS = np.pad(GAMMA / np.where(ALPHA == 0, 1.0, ALPHA)[:, None], ((0, 0), (0, 2))) * KNOWN
"""What they weigh in the equation of a step."""


def polynomials() -> list[list[float]]:
    """Return what each difference weighs in the coefficients of the continuous extension, of x, x**2, ..."""
    x = np.polynomial.Polynomial([0.0, 1.0])
    found, product = [], x - 1.0
    for j in range(1, HIGHEST + 1):
        found.append(np.pad(product.coef[1:], (0, HIGHEST - j)).tolist())
        product = product * (x - 1.0 + j) / (j + 1.0)
    return found


EXTENSION = polynomials()


class BdfMemory(NamedTuple):
    """Hold what a step knows from those before; of it, differences alone are differentiated.

    Attributes:
        jacobian: of the slope by the state.
        current: whether it is that at the state where the present step ends.
        to_renew: whether it is to be made anew.
        factors: of the matrix of Newton's method.
        usable: whether these are those for the next attempt.
        differences: of the states before, of shape (8, n), a row for each order.
        length: the size of the steps that they are of.
        order: of the method.
        equal: how many steps of that size there were.
        counts: of evaluations.
    """

    jacobian: Any
    current: Any
    to_renew: Any
    factors: Any
    usable: Any
    differences: Any
    length: Any
    order: Any
    equal: Any
    counts: Counts


class BdfTrial(NamedTuple):
    """Hold an attempt at a step: when it begins and ends, its size with its sign, and the differences for that.

    Attributes:
        lost: whether sizes are too small.
        cut: whether it was made shorter, to end where the integration does.
        equal: how many steps of the same size there were.
        size: that which was to be tried.
    """

    now: Any
    end: Any
    h: Any
    differences: Any
    lost: Any
    cut: Any
    equal: Any
    size: Any


class CorrectorIteration(NamedTuple):
    """Hold where Newton's method is: how far the state is from the predicted one, and how fast it converges."""

    change: Any
    norm: Any
    rounds: Any
    converged: Any
    over: Any


@dataclass(frozen=True)
class BackwardDifferences(ImplicitMethod):
    """Be the method.

    Attributes:
        holds_times: whether states of which steps begin anew are those of times held constant, as sizes are. Where a
            solution has equations of its own for derivatives these move with the times, and steps read constants.
    """

    holds_times: bool = True

    @property
    def order(self) -> int:
        """The order by which the first size is chosen."""
        return 1

    def start(self, slope: Slope, walk: Walk, direction: Any, chosen: bool, moves: bool) -> Walk:
        """Return where an integration begins, with what its first step knows."""
        jacobian = self.jacobian_at(slope, *stop_gradient((walk.t, walk.y)))
        factors = self.matrices.factors(self.matrices.identity(jacobian))
        size, rate = stop_gradient(walk.size), self.rate(slope)
        t, y = self.held_start(rate, walk) if moves else (stop_gradient(walk.t), walk.y)
        differences = first_differences(rate, stop_gradient(walk.t), y, size * direction)
        counts = self.first_counts(chosen)
        memory = BdfMemory(jacobian, self.is_constant, False, factors, False, differences, size, 1, 0, counts)
        return walk._replace(t=t, y=y, memory=memory)

    def held_start(self, rate: Slope, walk: Walk) -> tuple[Any, Any]:
        """Return time and state with which steps begin."""
        if not self.holds_times:
            return walk.t, walk.y
        return stop_gradient(walk.t), at_held_time(rate, walk.t, walk.y)

    def restart(self, slope: Slope, walk: Walk, direction: Any, where: Any) -> Walk:
        """Return where an integration goes on, with what the first step after a change of the state knows."""
        memory, size, rate = walk.memory, stop_gradient(walk.size), self.rate(slope)
        t, y = self.held_start(rate, walk)
        t, y = np.where(where, t, walk.t), np.where(where, y, walk.y)
        fresh = first_differences(rate, stop_gradient(t), y, size * direction)
        memory = memory._replace(
            current=memory.current & np.logical_not(where),
            to_renew=memory.to_renew | (where & (not self.is_constant)),
            usable=memory.usable & np.logical_not(where),
            differences=np.where(where, fresh, memory.differences),
            length=np.where(where, size, memory.length),
            order=np.where(where, 1, memory.order),
            equal=np.where(where, 0, memory.equal),
        )
        return walk._replace(t=t, y=y, memory=memory)

    def try_step(self, slope: Slope, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Make one attempt at a step; see `wengert.scipy.integrate._methods.adaptive_steps.try_step`."""
        trial = trial_of(walk, stop_gradient(t1), control)
        memory = self.prepare_factors(slope, walk.memory, trial)
        order = memory.order
        found = iterate(self, slope, memory, trial, control)
        held = np.where(found.converged, found.change, 0.0)
        state = known_sum(KNOWN, order, stop_gradient(trial.differences)) + held
        scale = control.atol + control.rtol * np.abs(state)
        norm = root_mean_square(of_order(ERROR, order) * held / scale)
        good = found.converged & (norm <= 1) & np.logical_not(trial.lost)
        change = moving_change(self, slope, trial, order, held, good, walk.y)
        again = np.logical_not(found.converged) & np.logical_not(memory.current)
        safety = 0.9 * (2 * MOST_ITERATIONS + 1) / (2 * MOST_ITERATIONS + found.rounds)
        differences = after_step(trial.differences, change, order)
        chosen, factor = next_order(stop_gradient(differences), order, norm, scale)
        renewed = trial.equal + 1 > order
        chosen = np.where(good & renewed, chosen, order)
        grown = np.where(renewed, np.minimum(LARGEST_FACTOR, safety * factor), 1.0)
        power = np.where(norm == 0, 1.0, norm) ** (-1.0 / (order + 1))
        shrunk = np.where(found.converged, np.maximum(SMALLEST_FACTOR, safety * power), 0.5)
        length = np.abs(trial.h)
        size = np.where(again, trial.size, length * np.where(good, grown, shrunk))
        counts = memory.counts._replace(slopes=memory.counts.slopes + found.rounds)
        before = walk.memory
        after = memory._replace(
            current=np.where(good, self.is_constant, memory.current),
            to_renew=again,
            usable=np.where(good, np.logical_not(renewed), found.converged),
            differences=np.where(good, differences, before.differences),
            length=np.where(good, length, before.length),
            order=chosen,
            equal=np.where(good, trial.equal + 1, 0),
            counts=Counts(*(np.where(trial.lost, x, y) for x, y in zip(before.counts, counts, strict=True))),
        )
        after = after._replace(equal=np.where(good & renewed, 0, np.where(again, before.equal, after.equal)))
        rows = np.where(chosen >= ROWS, differences, 0.0)
        step = Step(trial.now, walk.y, trial.h, differences[0], tuple(rows[i] for i in range(1, HIGHEST + 1)))
        done = good & (trial.end == stop_gradient(t1))
        attempts = walk.attempts + np.where(trial.lost, 0, 1)
        failure = np.where(trial.lost, TOO_SMALL, np.where(attempts >= control.most, TOO_MANY, 0))
        largest = np.where(good, np.maximum(walk.largest_error, norm), walk.largest_error)
        t, y = np.where(good, trial.end, walk.t), np.where(good, differences[0], walk.y)
        failure = np.where(done, 0, failure)
        return Walk(t, y, walk.f, size, np.logical_not(good), attempts, failure, after, largest), step

    def prepare_factors(self, slope: Slope, memory: BdfMemory, trial: BdfTrial) -> BdfMemory:
        """Return the memory with a Jacobian and factors that can be used."""
        jacobian, counts = memory.jacobian, memory.counts
        end, differences, h = trial.end, stop_gradient(trial.differences), trial.h
        usable = memory.usable & np.logical_not(trial.cut | memory.to_renew)
        if not self.is_constant:
            counts = counts._replace(jacobians=counts.jacobians + memory.to_renew)
            place = known_sum(KNOWN, memory.order, differences)
            jacobian = cond(
                memory.to_renew,
                lambda t, y, _: self.jacobian_at(slope, t, y),
                lambda _t, _y, old: old,
                end,
                place,
                jacobian,
            )
        factors = cond(
            usable,
            lambda _c, _jacobian, factors: factors,
            lambda c, jacobian, _: self.matrices.factors(self.mass_like(jacobian) - c * jacobian),
            h / of_order(ALPHA, memory.order),
            jacobian,
            memory.factors,
        )
        counts = counts._replace(factors=counts.factors + np.logical_not(usable))
        current = memory.current | memory.to_renew
        return memory._replace(jacobian=jacobian, current=current, factors=factors, counts=counts)

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""
        return [combination(column, slopes) for column in zip(*EXTENSION, strict=True)]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        found = [x]
        for _ in range(1, HIGHEST):
            found.append(found[-1] * x)
        return found

    def near(
        self, rate: Slope, step: Step, extension: Sequence[Any], place: Any, is_known: Any
    ) -> Callable[[Any], tuple[Any, Any]]:
        """Return time and state as functions of the part of a step, near a place whose derivatives are wanted.

        The extension of order 1 has no second derivative, that of order 2 no third one: there states move with time by
        the equation, if it is known that anything is to be there. Of higher orders it would amplify errors of states
        in stiff directions (Hessians of times of Robertson's equations at 1e-7 were 11 % off).
        """
        state = interpolate_state(self, step.y, extension, place)
        by_equation = is_known & np.all(stop_gradient(step.slopes[2]) == 0)

        def move(t: Any, y: Any, _: Any) -> Any:
            return at_other_time(rate, stop_gradient(t), t, y)

        def path(part: Any) -> tuple[Any, Any]:
            time, by_extension = step.t + part * step.h, interpolate_state(self, step.y, extension, part)
            return time, cond(by_equation, move, lambda _t, _y, other: other, time, state, by_extension)

        return path

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the differences of a step along a slope."""
        return [h * f, *([0.0 * f] * (HIGHEST - 1))]


def of_order(table: Any, order: Any) -> Any:
    """Return the row of a table for an order, which may be traced."""
    return asarray(table)[order]


def known_sum(table: Any, order: Any, differences: Any) -> Any:
    """Return the sum of differences with the weights of an order."""
    return of_order(table, order) @ differences


def first_differences(slope: Slope, t: Any, y: Any, h: Any) -> Any:
    """Return the differences at a state, of which none before is known, for steps of a size."""
    nothing = np.zeros((HIGHEST + 1, y.shape[0]))
    return np.concatenate([y[None], h * slope(t, y)[None], nothing])


def trial_of(walk: Walk, t1: Any, control: Control) -> BdfTrial:
    """Return the next attempt at a step."""
    memory = walk.memory
    now, size = stop_gradient((walk.t, walk.size))
    direction = np.sign(t1 - now)
    least = least_size(now, direction)
    size = np.where(walk.rejected, size, np.maximum(np.minimum(size, control.max_step), least))
    end = now + size * direction
    over = direction * (end - t1)
    end = np.where(over >= 0, t1, end)
    h = end - now
    h = np.where(h == 0, 1.0, h)  # of lanes that are at the end
    ratio = np.where(over > 0, np.abs(h), size) / memory.length
    equal = np.where(ratio == 1, memory.equal, 0)
    differences = of_other_size(memory.differences, memory.order, ratio)
    return BdfTrial(now, end, h, differences, np.logical_not(size >= least), over > 0, equal, size)


def of_other_size(differences: Any, order: Any, ratio: Any) -> Any:
    """Return the differences that the same polynomial has in steps of another size."""
    columns = np.arange(HIGHEST + 1)

    def products(ratio: Any) -> Any:
        rows = [np.ones(HIGHEST + 1)]
        for i in range(1, HIGHEST + 1):
            rows.append(rows[-1] * (i - 1 - ratio * columns) / i)
        return np.stack(rows)

    inside = of_order(KNOWN, order)[: HIGHEST + 1]
    matrix = (products(ratio) * inside) @ products(1.0)
    matrix = matrix * (inside * inside[:, None]) + np.eye(HIGHEST + 1) * (1.0 - inside)
    matrix = np.where(ratio == 1, np.eye(HIGHEST + 1), matrix)
    return np.concatenate([matrix.T @ differences[: HIGHEST + 1], differences[HIGHEST + 1 :]])


def iterate(
    method: ImplicitMethod, slope: Slope, memory: BdfMemory, trial: BdfTrial, control: Control
) -> CorrectorIteration:
    """Find how far the state at the end of a step is from the predicted one, by Newton's method."""
    tolerance, order = newton_tolerance(control.rtol), memory.order
    t, differences, h = trial.end, stop_gradient(trial.differences), trial.h
    predicted, psi = known_sum(KNOWN, order, differences), known_sum(WEIGHTS, order, differences)
    scale = control.atol + control.rtol * np.abs(predicted)
    c = h / of_order(ALPHA, order)

    def improve(now: CorrectorIteration) -> CorrectorIteration:
        f = stop_gradient(slope(t, predicted + now.change))
        more = method.matrices.substitute(memory.factors, c * f - method.by_mass(psi + now.change))
        norm = root_mean_square(more / scale)
        _, hopeless, converged = newton_progress(norm, now.norm, now.rounds, MOST_ITERATIONS, tolerance)
        failed = hopeless | np.logical_not(np.all(np.isfinite(f)))
        converged = converged & np.logical_not(failed)
        rounds = now.rounds + 1
        over = failed | converged | (rounds >= MOST_ITERATIONS)
        return CorrectorIteration(np.where(failed, now.change, now.change + more), norm, rounds, converged, over)

    start = as_arrays(CorrectorIteration(np.zeros_like(predicted), 0.0, 0, False, False))
    found: CorrectorIteration = while_loop(lambda now: np.logical_not(now.over), improve, start)
    return found


def moving_change(
    method: ImplicitMethod, slope: Slope, trial: BdfTrial, order: Any, change: Any, good: Any, start: Any
) -> Any:
    """Return how far the state is from the predicted one, with the derivatives that the equation of a step gives it.

    Of attempts that are not good these are as if they ended where they start.
    """
    end, start = np.where(good, trial.end, trial.now), stop_gradient(start)
    predicted, psi = known_sum(KNOWN, order, trial.differences), known_sum(WEIGHTS, order, trial.differences)
    c = trial.h / of_order(ALPHA, order)

    def equations(change: Any) -> tuple[Any, Matrices, Any]:
        state = np.where(good, predicted + change, start)
        jacobian = method.matrices.jacobian(slope, end, state)
        missed = method.by_mass(np.where(good, change + psi, 0.0)) - c * slope(end, state)
        return missed, method.matrices, method.mass_like(jacobian) - c * jacobian

    return moving_root(equations, change)


def after_step(differences: Any, change: Any, order: Any) -> Any:
    """Return the differences at the end of a step, whose state is so far from the predicted one."""
    used = np.where(order >= ROWS, differences, np.where(order + 1 == ROWS, change, 0.0))
    sums = np.flip(np.cumsum(np.flip(used, 0), axis=0), 0)
    above = np.concatenate([differences[:1], differences[:-1]])
    return np.where(order + 1 >= ROWS, sums, np.where(order + 2 == ROWS, change - above, differences))


def next_order(differences: Any, order: Any, norm: Any, scale: Any) -> tuple[Any, Any]:
    """Return the order that allows the largest next step, and how many times as large as the last that is."""
    lower = root_mean_square(of_order(ERROR, order - 1) * differences[order] / scale)
    higher = root_mean_square(of_order(ERROR, np.minimum(order + 1, HIGHEST)) * differences[order + 2] / scale)
    lower = np.where(order > 1, lower, np.inf)
    higher = np.where(order < HIGHEST, higher, np.inf)
    norms = np.stack([lower, norm, higher])
    factors = np.where(norms == 0, np.inf, np.where(norms == 0, 1.0, norms) ** (-1.0 / (order + np.arange(3))))
    return order + np.argmax(factors) - 1, np.max(factors)
