"""Steps of adaptive one-step methods: what is differentiated are the steps taken, whose sizes are held.

The controller of the step size is SciPy's, so that the steps are. It is not differentiated: with respect to it a
solution moves within its tolerance only, while derivatives through it cost twice the time and are less accurate (P.
Eberhard and C. Bischof, Math. Comput. 68, 1999). So are the times at which steps end; the first begins at t0 and the
last ends at t1, which makes the derivatives by these what they are: f(t1), and that by the initial state times -f(t0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.values.dispatch import as_tensor
from wengert.scipy.integrate._methods.tableaux import root_mean_square
from wengert.scipy.integrate._methods.visits import Slope, Stages, Start, Trial, Visits
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

SAFETY, SMALLEST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0
ROUNDING = 1e-9
"""The part of steps of one size that is left out at the end, as that of rounding errors of times."""
TOO_SMALL, TOO_MANY, INCONSISTENT, NOT_FINITE, INCONSISTENT_RESET, MISSED, SINGULAR, GAVE_UP = 1, 2, 5, 6, 7, 8, 9, -1
"""What ended an integration before its end, or before it began."""


class Method(Protocol):
    """Be a method with a continuous extension of its steps."""

    @property
    def order(self) -> int:
        """The order of the error estimate, by which the first size is chosen."""

    @property
    def more(self) -> Any:
        """Further stages that the continuous extension has, and where these are; None if there are none."""

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return what the stages of a step along a slope would give."""


class OneStepMethod(Method, Protocol):
    """Be a method whose steps know nothing of those before, and whose error estimate alone tells how they go on."""

    @property
    def is_adaptive(self) -> bool:
        """Whether there is an estimate of errors, by which sizes of steps are chosen."""

    @property
    def evaluations(self) -> int:
        """The number of evaluations of the slope in a step."""

    @property
    def jacobians(self) -> int:
        """The number of Jacobians of the slope in a step, each with factors of a matrix."""

    @property
    def places(self) -> Sequence[float]:
        """The parts of a step at which the slope is visited, in their order."""

    @property
    def is_kept(self) -> bool:
        """Whether reverse mode keeps what steps compute, and does not compute it again."""

    @property
    def mass(self) -> Any:
        """The mass matrix, None if there is none."""

    def stages(self, visits: Visits, start: Start) -> Stages:
        """Return what a step computes."""

    def error_norm(self, found: Stages, scale: Any, h: Any) -> Any:
        """Return the norm of the error estimate; below 1 the step is good."""


class Control(NamedTuple):
    """Hold the numbers that the choice of steps depends on; or the steps, where another library has taken them."""

    rtol: Any
    atol: Any
    max_step: Any
    first_step: Any
    most: Any
    record: Any = ()


class Walk(NamedTuple):
    """Hold where an integration is.

    Attributes:
        t, y, f: the time, the state and its slope.
        size: of the next step, in absolute value.
        rejected: whether the last attempt was.
        attempts: how many there were.
        failure: what ended the integration, 0 if nothing has.
        memory: what else a method knows from the steps before.
        largest_error: that of a good step so far, as a part of what it may be.
        rejections: where attempts were rejected, of an integration that is watched for jumps.
    """

    t: Any
    y: Any
    f: Any
    size: Any
    rejected: Any
    attempts: Any
    failure: Any
    memory: Any = ()
    largest_error: Any = 0.0
    rejections: Any = ()


class Counts(NamedTuple):
    """Hold how often the slope, its Jacobian and factors of matrices were computed."""

    slopes: Any
    jacobians: Any
    factors: Any


class Step(NamedTuple):
    """Hold the last step: where it began, its size, its end, and the slopes of its stages."""

    t: Any
    y: Any
    h: Any
    end: Any
    slopes: tuple[Any, ...]


def first_size(slope: Slope, walk: Walk, t1: Any, order: int, control: Control) -> Any:
    """Return the size of the first step (E. Hairer et al., section II.4), as SciPy chooses it."""
    t, y, f = walk.t, walk.y, walk.f
    length = np.abs(t1 - t)
    direction = np.sign(t1 - t)
    if not y.shape[0]:
        return np.minimum(length, control.max_step)
    scale = control.atol + np.abs(y) * control.rtol
    d0, d1 = root_mean_square(y / scale), root_mean_square(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    trial = np.minimum(np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1)), length)
    there = slope(t + trial * direction, y + trial * direction * f)
    d2 = root_mean_square((there - f) / scale) / np.where(trial == 0, 1.0, trial)
    top = np.maximum(d1, d2)
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    size = np.where(flat, np.maximum(1e-6, trial * 1e-3), (0.01 / np.where(flat, 1.0, top)) ** (1.0 / (order + 1)))
    return np.minimum(np.minimum(100 * trial, size), np.minimum(length, control.max_step))


def begin(slope: Slope, rate: Slope, method: Method, t0: Any, t1: Any, y0: Any, control: Control, chosen: bool) -> Walk:
    """Return where an integration begins; `chosen` says that the user gave the size of the first step.

    How the state changes tells `rate`, which is `slope` unless there is a mass matrix.
    """
    walk = Walk(t0, y0, slope(t0, y0), control.first_step, False, 0, 0)
    if chosen:
        return walk
    held = stop_gradient(walk if rate is slope else walk._replace(f=rate(t0, y0)))
    return walk._replace(size=stop_gradient(first_size(rate, held, stop_gradient(t1), method.order, control)))


def as_arrays(carried: Any) -> Any:
    """Return what a loop begins with as arrays: from numbers it would take the dtypes by tracing its body once more.

    Loops in it would do so in each of these: 24 instead of two times for the stages of an implicit step.
    """
    return map_leaves(as_tensor, carried)


def least_size(t: Any, direction: Any) -> Any:
    """Return the size of the smallest step that numbers allow."""
    return 10.0 * np.abs(np.nextafter(t, direction * np.inf) - t)


def try_step(slope: Slope, method: OneStepMethod, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
    """Take a step, which is accepted or not; return where that leads, and the step."""
    now, bound = stop_gradient(walk.t), stop_gradient(t1)
    direction = np.sign(bound - now)
    least = least_size(now, direction)
    size = stop_gradient(walk.size)
    size = np.where(walk.rejected, size, np.maximum(np.minimum(size, control.max_step), least))
    lost = ~(size >= least)  # of NaN, too
    end = now + size * direction
    over = direction * (end - bound)
    end = np.where(over >= (0.0 if method.is_adaptive else -ROUNDING * size), t1, end)
    h = end - walk.t
    trial = Trial(slope, method.stages, Start(walk.t, walk.y, walk.f, h, method.mass), method.places)
    state, length = trial.found.state, stop_gradient(h)
    scale = control.atol + np.maximum(np.abs(stop_gradient(walk.y)), np.abs(state)) * control.rtol
    norm = method.error_norm(trial.found, scale, length)
    good = (norm < 1) & ~lost
    failure: Any = 0
    if method.is_adaptive:
        size = np.abs(length) * change_of_size(norm, walk.rejected, method.order)
    else:
        good = good & np.all(np.isfinite(state))
        failure = np.where(good, 0, NOT_FINITE)
    slopes, state, last = trial.moving(good, method.is_kept)[:3]
    t, y, f = (np.where(good, new, old) for new, old in ((end, walk.t), (state, walk.y), (last, walk.f)))
    attempts = walk.attempts + np.where(lost, 0, 1)
    failure = np.where(lost, TOO_SMALL, np.where((failure == 0) & (attempts >= control.most), TOO_MANY, failure))
    done = good & (stop_gradient(end) == bound)
    step = Step(walk.t, walk.y, h, state, tuple(slopes))
    largest = np.where(good, np.maximum(walk.largest_error, norm), walk.largest_error)
    return Walk(t, y, f, size, ~good, attempts, np.where(done, 0, failure), (), largest), step


def change_of_size(norm: Any, rejected: Any, order: int) -> Any:
    """Return the factor from a step's size to that of the next; sizes do not grow right after a rejection."""
    factor = SAFETY * np.where(norm == 0, 1.0, norm) ** (-1.0 / (order + 1))
    grown = np.where(norm == 0, LARGEST_FACTOR, np.minimum(LARGEST_FACTOR, factor))
    grown = np.where(rejected, np.minimum(1.0, grown), grown)
    shrunk = np.where(factor > SMALLEST_FACTOR, factor, SMALLEST_FACTOR)  # which NaN gives, too
    return np.where(norm < 1, grown, shrunk)


def goes_on(walk: Walk, until: Any, direction: Any) -> Any:
    """Tell whether an integration has to go on to get to a time."""
    return (direction * (until - walk.t) > 0) & (walk.failure == 0)


def known_or_nan(known: Any, value: Any) -> Any:
    """Return a value where it is known, else NaN.

    So are its derivatives then, unless nobody asks for them: those of a selection are zeros, which pass for a minimum.
    """
    return value / np.where(known, 1.0, np.nan)


def interpolate_state(method: Method, y: Any, coefficients: Sequence[Any], part: Any) -> Any:
    """Return the state at a part of a step; a basis may be one vector, whose coefficients are rows."""
    total = y
    for weight, coefficient in zip(method.basis(part), coefficients, strict=True):
        is_vector = coefficient.ndim > total.ndim
        total = total + (weight @ coefficient if is_vector else weight * coefficient)
    return total
