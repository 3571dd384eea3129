"""An implicit method for stiff equations: Radau IIA of order 5, with the steps of SciPy's.

The three stages of a step are found by Newton's method, simplified: its matrices have one Jacobian, which serves as
long as the iteration converges fast, and are one real and one complex system of n numbers in place of 3 n. None of that
is differentiated: the stages solve their equations, and move with what these read.

Source: E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, section IV.8; the choice of steps is that
of SciPy's class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.control.cond import cond
from wengert.control.while_loop import while_loop
from wengert.scipy.integrate._methods.adaptive_steps import (
    TOO_MANY,
    TOO_SMALL,
    Control,
    Counts,
    Step,
    Walk,
    as_arrays,
    least_size,
)
from wengert.scipy.integrate._methods.held_factors import moving_root
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod, newton_progress, newton_tolerance
from wengert.scipy.integrate._methods.jacobian_matrices import Matrices
from wengert.scipy.integrate._methods.tableaux import combination, root_mean_square
from wengert.scipy.integrate._methods.visits import Slope
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

ROOT = 6**0.5
PLACES = ((4 - ROOT) / 10, (4 + ROOT) / 10, 1.0)
STAGES = np.array(
    [
        [(88 - 7 * ROOT) / 360, (296 - 169 * ROOT) / 1800, (-2 + 3 * ROOT) / 225],
        [(296 + 169 * ROOT) / 1800, (88 + 7 * ROOT) / 360, (-2 - 3 * ROOT) / 225],
        [(16 - ROOT) / 36, (16 + ROOT) / 36, 1 / 9],
    ]
)
"""What the slopes of stages weigh in the stages."""
ERROR = ((-13 - 7 * ROOT) / 3, (-13 + 7 * ROOT) / 3, -1 / 3)
EIGENVALUE = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
PAIR = 3 + 0.5 * (3 ** (1 / 3) - 3 ** (2 / 3)) - 0.5j * (3 ** (5 / 6) + 3 ** (7 / 6))
"""The eigenvalues of the inverse of `STAGES`: one is real, and of two complex ones the first."""
TO_STAGES = np.array(
    [
        [0.09443876248897524, -0.14125529502095421, 0.03002919410514742],
        [0.25021312296533332, 0.20412935229379994, -0.38294211275726192],
        [1.0, 1.0, 0.0],
    ]
)
FROM_STAGES = np.array(
    [
        [4.17871859155190428, 0.32768282076106237, 0.52337644549944951],
        [-4.17871859155190428, -0.32768282076106237, 0.47662355450055044],
        [0.50287263494578682, -2.57192694985560522, 0.59603920482822492],
    ]
)
"""Its eigenvectors, and their inverse."""
POWERS = np.array(
    [
        [13 / 3 + 7 * ROOT / 3, -23 / 3 - 22 * ROOT / 3, 10 / 3 + 5 * ROOT],
        [13 / 3 - 7 * ROOT / 3, -23 / 3 + 22 * ROOT / 3, 10 / 3 - 5 * ROOT],
        [1 / 3, -8 / 3, 10 / 3],
    ]
)
"""What stages weigh in the coefficients of the continuous extension."""
MOST_ITERATIONS = 6
LARGEST_FACTOR, SMALLEST_FACTOR = 10.0, 0.2


class RadauMemory(NamedTuple):
    """Hold what a step knows from those before; nothing of it is differentiated.

    Attributes:
        jacobian: of the slope by the state.
        current: whether it is that at the present state.
        to_renew: whether it is to be made anew.
        real, pair: the factors of both matrices.
        usable: whether these are those for the next attempt.
        stages: of the last good step, of shape (3, n).
        length: of that step; 0 before there is one.
        start: the size that the present step was begun with.
        size_before, error_before: of the step before, that with which it was begun; 0 if they do not count.
        missed: whether the error of the present step was too large before.
        counts: of evaluations.
    """

    jacobian: Any
    current: Any
    to_renew: Any
    real: Any
    pair: Any
    usable: Any
    stages: Any
    length: Any
    start: Any
    size_before: Any
    error_before: Any
    missed: Any
    counts: Counts


class StageIteration(NamedTuple):
    """Hold where Newton's method is: stages, these by eigenvectors, and how fast it converges."""

    stages: Any
    parts: Any
    norm: Any
    rate: Any
    rounds: Any
    converged: Any
    over: Any


@dataclass(frozen=True)
class Radau(ImplicitMethod):
    """Be the method."""

    @property
    def order(self) -> int:
        """The order by which the first size is chosen."""
        return 3

    def start(self, slope: Slope, walk: Walk, direction: Any, chosen: bool, moves: bool) -> Walk:
        """Return where an integration begins, with what its first step knows."""
        n = walk.y.shape[0]
        jacobian = self.jacobian_at(slope, *stop_gradient((walk.t, walk.y)))
        one = self.matrices.identity(jacobian)
        factors, pair = self.matrices.factors(one), self.matrices.factors(one.astype(complex))
        nothing = (np.zeros((3, n)), 0.0, 0.0, 0.0, 0.0)
        counts = self.first_counts(chosen)
        return walk._replace(memory=RadauMemory(jacobian, True, False, factors, pair, False, *nothing, False, counts))

    def restart(self, slope: Slope, walk: Walk, direction: Any, where: Any) -> Walk:
        """Return where an integration goes on, with what the first step after a change of the state knows."""
        memory = walk.memory
        zeros = [np.where(where, 0.0, x) for x in (memory.stages, memory.length, memory.size_before)]
        known = memory._replace(stages=zeros[0], length=zeros[1], size_before=zeros[2])
        known = known._replace(
            current=known.current & np.logical_not(where),
            to_renew=known.to_renew | where,
            usable=known.usable & np.logical_not(where),
        )
        f = walk.f if self.mass is None else np.where(where, slope(walk.t, walk.y), walk.f)
        return walk._replace(f=f, memory=known)

    def try_step(self, slope: Slope, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Make one attempt at a step; see `wengert.scipy.integrate._methods.adaptive_steps.try_step`."""
        now, bound, state, f, size = stop_gradient((walk.t, t1, walk.y, walk.f, walk.size))
        direction = np.sign(bound - now)
        least = least_size(now, direction)
        known = stop_gradient(walk.memory)  # which is an input where a program goes on from a state
        memory = begin_attempt(known, walk.rejected, size, least, control)
        size = np.where(walk.rejected, size, np.maximum(np.minimum(size, control.max_step), least))
        lost = np.logical_not(size >= least)
        end = now + size * direction
        end = np.where(direction * (end - bound) >= 0, t1, end)
        h = stop_gradient(end) - now
        h = np.where(h == 0, 1.0, h)  # of lanes that are at the end

        def constant_slope(t: Any, y: Any) -> Any:
            return stop_gradient(slope(t, y))

        memory = self.prepare_factors(slope, memory, now, state, h)
        scale = control.atol + np.abs(state) * control.rtol
        found = iterate(self, constant_slope, memory, now, state, h, scale, control.rtol)
        after, norm, factor = judge_attempt(self, constant_slope, memory, found, now, state, f, h, control)
        good = found.converged & (norm <= 1) & np.logical_not(lost)
        done = good & (stop_gradient(end) == bound)
        again = np.logical_not(found.converged) & np.logical_not(memory.current)
        stages = moving_stages(self, slope, walk.t, walk.y, end - walk.t, np.where(good, found.stages, 0.0), good)
        length = np.abs(h)
        grown = np.minimum(LARGEST_FACTOR, factor)
        renew = good & (found.rounds > 2) & (found.rate > 1e-3) & (not self.is_constant)
        kept = good & np.logical_not(renew) & (grown < 1.2)
        shrunk = np.where(factor > SMALLEST_FACTOR, factor, SMALLEST_FACTOR)
        change = np.where(good, np.where(kept, 1.0, grown), np.where(found.converged, shrunk, 0.5))
        ahead = np.where(good, stop_gradient(end), now)
        reached = np.where(good, state + stop_gradient(stages[2]), state)
        after = after._replace(
            to_renew=np.where(good, renew, again),
            current=memory.current if self.is_constant else memory.current & np.logical_not(good),
            usable=kept,
            stages=np.where(good, stop_gradient(stages), memory.stages),
            length=np.where(good, h, memory.length),
            size_before=np.where(good, memory.start, memory.size_before),
            error_before=np.where(good, norm, memory.error_before),
            missed=np.logical_not(good) & (memory.missed | (found.converged & np.logical_not(norm <= 1))),
            counts=after.counts._replace(
                slopes=after.counts.slopes + good, jacobians=after.counts.jacobians + (renew & done)
            ),
        )
        before = known.counts
        after = after._replace(
            counts=Counts(*(np.where(lost, old, new) for old, new in zip(before, after.counts, strict=True)))
        )
        attempts = walk.attempts + np.where(lost, 0, 1)
        failure = np.where(lost, TOO_SMALL, np.where(attempts >= control.most, TOO_MANY, 0))
        last = walk.y + stages[2]
        t, y = np.where(good, end, walk.t), np.where(good, last, walk.y)
        f = np.where(good, constant_slope(ahead, reached), f)
        step = Step(walk.t, walk.y, end - walk.t, last, (stages[0], stages[1], stages[2]))
        size = np.where(again, size, length * change)
        failure = np.where(done, 0, failure)
        largest = np.where(good, np.maximum(walk.largest_error, norm), walk.largest_error)
        return Walk(t, y, f, size, np.logical_not(good), attempts, failure, after, largest), step

    def prepare_factors(self, slope: Slope, memory: RadauMemory, t: Any, y: Any, h: Any) -> RadauMemory:
        """Return the memory with a Jacobian and factors that can be used."""
        jacobian, counts = memory.jacobian, memory.counts
        if not self.is_constant:
            counts = counts._replace(jacobians=counts.jacobians + memory.to_renew)
            jacobian = cond(
                memory.to_renew, lambda t, y, _: self.jacobian_at(slope, t, y), lambda _t, _y, old: old, t, y, jacobian
            )
        real, pair = cond(
            memory.usable,
            lambda *kept: kept[2:],
            lambda h, jacobian, *_: factors_for(self, h, jacobian),
            h,
            jacobian,
            memory.real,
            memory.pair,
        )
        counts = counts._replace(factors=counts.factors + 2 * np.logical_not(memory.usable))
        current = memory.current | memory.to_renew
        return memory._replace(jacobian=jacobian, current=current, real=real, pair=pair, counts=counts)

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""
        return [combination(column, slopes) for column in POWERS.T.tolist()]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        return [x, x * x, x * x * x]

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the stages of a step along a slope."""
        return [place * h * f for place in PLACES]


def begin_attempt(memory: RadauMemory, rejected: Any, size: Any, least: Any, control: Control) -> RadauMemory:
    """Return the memory at the beginning of an attempt: sizes that are bounded say nothing about the next."""
    bounded = np.logical_not(rejected) & ((size > control.max_step) | (size < least))
    return memory._replace(
        start=np.where(rejected, memory.start, size),
        size_before=np.where(bounded, 0.0, memory.size_before),
        missed=memory.missed & rejected,
    )


def factors_for(method: ImplicitMethod, h: Any, jacobian: Any) -> tuple[Any, ...]:
    """Return the factors of both matrices of Newton's method."""
    mass = method.mass_like(jacobian)
    return tuple([method.matrices.factors(value / h * mass - jacobian) for value in (EIGENVALUE, PAIR)])


def iterate(
    method: ImplicitMethod, slope: Slope, memory: RadauMemory, t: Any, y: Any, h: Any, scale: Any, rtol: Any
) -> StageIteration:
    """Find the stages of a step by Newton's method, from those that the last one extends to."""
    tolerance = newton_tolerance(rtol)
    places = np.array(PLACES)[:, None]
    ahead = 1.0 + h * places / np.where(memory.length == 0, 1.0, memory.length)
    powers = np.concatenate([ahead, ahead * ahead, ahead * ahead * ahead], axis=1)
    guess = powers @ (POWERS.T @ memory.stages) - memory.stages[2]
    guess = np.where(memory.length == 0, 0.0, guess)
    real, pair = EIGENVALUE / h, PAIR / h

    def improve(now: StageIteration) -> StageIteration:
        slopes = np.stack([slope(t + h * place, y + now.stages[i]) for i, place in enumerate(PLACES)])
        right = FROM_STAGES @ slopes
        first = method.matrices.substitute(memory.real, right[0] - real * method.by_mass(now.parts[0]))
        both = (right[1] + 1j * right[2]) - pair * method.by_mass(now.parts[1] + 1j * now.parts[2])
        second = method.matrices.substitute(memory.pair, both)
        change = np.stack([first, second.real, second.imag])
        norm = root_mean_square((change / scale).reshape(-1))
        rate, hopeless, converged = newton_progress(norm, now.norm, now.rounds, MOST_ITERATIONS, tolerance)
        failed = hopeless | np.logical_not(np.all(np.isfinite(slopes)))
        parts = np.where(failed, now.parts, now.parts + change)
        converged = converged & np.logical_not(failed)
        rounds = now.rounds + 1
        over = failed | converged | (rounds >= MOST_ITERATIONS)
        return StageIteration(TO_STAGES @ parts, parts, norm, rate, rounds, converged, over)

    start = as_arrays(StageIteration(guess, FROM_STAGES @ guess, 0.0, 0.0, 0, False, False))
    found: StageIteration = while_loop(lambda now: np.logical_not(now.over), improve, start)
    return found


def judge_attempt(
    method: ImplicitMethod,
    slope: Slope,
    memory: RadauMemory,
    found: StageIteration,
    t: Any,
    y: Any,
    f: Any,
    h: Any,
    control: Control,
) -> tuple[RadauMemory, Any, Any]:
    """Return the memory after an attempt, the norm of its error, and the factor for the size of the next."""
    by_stages = method.by_mass(combination(ERROR, list(found.stages))) / h
    error = method.matrices.substitute(memory.real, f + by_stages)
    scale = control.atol + np.maximum(np.abs(y), np.abs(y + found.stages[2])) * control.rtol
    norm = root_mean_square(error / scale)
    once_more = memory.missed & found.converged & (norm > 1)

    def filter_error(error: Any) -> Any:
        right = slope(t, y + error) + by_stages
        return root_mean_square(method.matrices.substitute(memory.real, right) / scale)

    norm = cond(once_more, filter_error, lambda _: norm, error)
    safety = 0.9 * (2 * MOST_ITERATIONS + 1) / (2 * MOST_ITERATIONS + found.rounds)
    known = (memory.size_before > 0) & (norm != 0)
    safe = np.where(norm == 0, 1.0, norm)
    before = np.where(known, memory.size_before, 1.0)
    ratio = np.where(known, np.abs(h) / before * (memory.error_before / safe) ** 0.25, 1.0)
    factor = np.where(norm == 0, np.inf, safety * np.minimum(1.0, ratio) * safe**-0.25)
    counts = memory.counts
    counts = counts._replace(slopes=counts.slopes + 3 * found.rounds + once_more)
    return memory._replace(counts=counts), norm, factor


def moving_stages(method: ImplicitMethod, slope: Slope, t: Any, y: Any, h: Any, stages: Any, good: Any) -> Any:
    """Return the stages of a step with the derivatives that their equations give them, to any order.

    Of attempts that are not good these are as if all stages were where they start, which `stages` has to be, too.
    """
    n, start = y.shape[0], stop_gradient(t)

    def equations(z: Any) -> tuple[Any, Matrices, Any]:
        """Return the residual, and its Jacobian."""
        z = z.reshape(3, n)
        places = [(np.where(good, t + place * h, start), y + z[i]) for i, place in enumerate(PLACES)]
        slopes = np.stack([slope(*place) for place in places])
        jacobians = np.stack([method.matrices.jacobian(slope, *place) for place in places])
        mass = method.mass_like(jacobians[0])
        missed = (method.by_mass(z) - h * (STAGES @ slopes)).reshape(-1)
        return missed, *method.matrices.of_stages(mass, h * STAGES, jacobians)

    return moving_root(equations, stages.reshape(-1)).reshape(3, n)
