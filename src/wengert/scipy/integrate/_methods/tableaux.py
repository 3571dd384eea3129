"""Explicit methods by their coefficients: with error estimates and continuous extensions, or steps of one size.

RK23 (P. Bogacki and L. F. Shampine, Appl. Math. Lett. 2, 1989), RK45 (J. R. Dormand and P. J. Prince, J. Comput. Appl.
Math. 6, 1980; continuous extension: L. F. Shampine, Math. Comput. 46, 1986) and DOP853 (E. Hairer, S. P. Norsett and
G. Wanner, *Solving Ordinary Differential Equations I*, 1993, section II.10) have the coefficients of SciPy's classes.
Tsit5: C. Tsitouras, Comput. Math. Appl. 62, 2011.

Steps of one size have Euler's, Heun's, the classical Runge-Kutta method (Hairer, Norsett and Wanner, section II.1) and
Verlet's (E. Hairer, C. Lubich and G. Wanner, Geometric numerical integration illustrated by the Stoermer-Verlet method,
Acta Numerica 12, 2003). Between steps they are extended by cubics through both ends, with the slopes there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.scipy.integrate._methods.coefficients import COEFFICIENTS
from wengert.scipy.integrate._methods.visits import Slope, Stages, Start, Visits
from wengert.support.records import NamedTuple
from wengert.transforms.jacobian import jacfwd

Rows = Sequence[Sequence[float]]


class Tableau(NamedTuple):
    """Hold the coefficients of an explicit method.

    Attributes:
        c: where the stages are, as parts of the step.
        a: their weights, a row for each stage.
        b: the weights of the step.
        error: weights of the error estimate, that of the slope at the end last; of two estimates, a pair; None for
            steps of one size.
        order: of the error estimate.
        extension: weights of the powers 1, 2, ... of the part of the step, a row for each stage.
        more: rows and places of the further stages that the extension of DOP853 has.
    """

    c: Sequence[float]
    a: Rows
    b: Sequence[float]
    error: Any
    order: int
    extension: Any
    more: tuple[Rows, Sequence[float]] | None = None
    mass: Any = None

    @property
    def evaluations(self) -> int:
        """The number of evaluations of the slope in a step, that at its end included."""
        return len(self.b)

    @property
    def places(self) -> Sequence[float]:
        """The parts of a step at which the slope is visited."""
        return (*self.c[1:], 1.0)

    @property
    def jacobians(self) -> int:
        """The number of Jacobians of the slope in a step."""
        return 0

    @property
    def is_adaptive(self) -> bool:
        """Whether there is an estimate of errors."""
        return self.error is not None

    @property
    def is_kept(self) -> bool:
        """Whether reverse mode keeps what steps compute."""
        return True

    def stages(self, visits: Visits, start: Start) -> Stages:
        """Return the slopes of a step, the state at its end, and the slope there, which is the last of them, too."""
        t, y, f, h = start[:4]
        slopes = [f]
        for place, row in zip(self.c[1:], self.a[1:], strict=True):
            slopes.append(visits.visit(t + place * h, y + h * combination(row, slopes)))
        end = y + h * combination(self.b, slopes)
        slopes.append(visits.visit(t + h, end))
        return Stages(slopes, end, slopes[-1])

    def error_norm(self, found: Stages, scale: Any, h: Any) -> Any:
        """Return the norm of the error estimate; below 1 the step is good."""
        if not self.is_adaptive:
            return 0.0
        if not isinstance(self.error[0], Sequence):
            return root_mean_square(h * combination(self.error, found.slopes) / scale)
        third, fifth = (sum_of_squares(combination(weights, found.slopes) / scale) for weights in self.error)
        below = fifth + 0.01 * third
        return np.abs(h) * fifth / np.sqrt(np.where(below == 0, 1.0, below) * max(scale.shape[0], 1))

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""
        if self.more is None:
            columns = np.asarray(self.extension).T.tolist()
            return [h * combination(column, slopes) for column in columns]
        slopes = list(slopes)
        first, last = slopes[0], slopes[-1]
        for row, place in zip(*self.more, strict=True):
            slopes.append(slope(t + place * h, y + h * combination(row, slopes)))
        change = end - y
        higher = [h * combination(row, slopes) for row in self.extension]
        return [change, h * first - change, 2 * change - h * (last + first), *higher]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        count = len(self.extension) + 3 if self.more is not None else len(self.extension[0])
        found = [x]
        for i in range(1, count):
            found.append(found[-1] * (1.0 - x if self.more is not None and i % 2 else x))
        return found

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the slopes of a step along a slope."""
        return [f] * (self.evaluations + 1)


def jacobian_by_state(slope: Slope, t: Any, y: Any) -> Any:
    """Return the Jacobian of a slope by the state; of complex states the complex one, for functions that have it."""
    return jacfwd(lambda state: slope(t, state), holomorphic=y.dtype.kind == "c")(y)


def combination(weights: Sequence[float], values: Sequence[Any]) -> Any:
    """Return the sum of values with weights, without those whose weight is zero."""
    terms = [float(weight) * value for weight, value in zip(weights, values, strict=False) if weight != 0.0]
    return functools.reduce(lambda total, term: total + term, terms)


def sum_of_squares(x: Any) -> Any:
    """Return the sum of the squares of absolute values."""
    return np.sum(x * x) if x.dtype.kind == "f" else np.sum(x.real * x.real + x.imag * x.imag)


def root_mean_square(x: Any) -> Any:
    """Return the norm of steps and errors."""
    return np.sqrt(sum_of_squares(x) / max(x.shape[0], 1))


@functools.cache
def tableau(method: str) -> Tableau:
    """Return the coefficients of a method by its name."""
    return tsitouras() if method == "Tsit5" else Tableau(**COEFFICIENTS[method])


def tsitouras() -> Tableau:
    """Return the coefficients of Tsit5."""
    a = [
        [],
        [0.161],
        [-0.008480655492356989, 0.335480655492357],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
        [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
    ]
    b = [
        0.09646076681806523,
        0.01,
        0.4798896504144996,
        1.379008574103742,
        -3.290069515436081,
        2.324710524099774,
    ]
    lower = [
        0.09468075576583945,
        0.009183565540343254,
        0.4877705284247616,
        1.234297566930479,
        -2.7077123499835256,
        1.866628418170587,
        1 / 66,
    ]
    power = np.polynomial.Polynomial
    x = power([0.0, 1.0])
    weights = [
        -1.0530884977290216 * x * (x - 1.3299890189751412) * (x**2 - 1.4364028541716351 * x + 0.7139816917074209),
        0.1017 * x**2 * (x**2 - 2.1966568338249754 * x + 1.2949852507374631),
        2.490627285651252793 * x**2 * (x**2 - 2.38535645472061657 * x + 1.57803468208092486),
        -16.54810288924490272 * (x - 1.21712927295533244) * (x - 0.61620406037800089) * x**2,
        47.37952196281928122 * (x - 1.203071208372362603) * (x - 0.658047292653547382) * x**2,
        -34.87065786149660974 * (x - 1.2) * (x - 2 / 3) * x**2,
        2.5 * (x - 1) * (x - 0.6) * x**2,
    ]
    extension = [np.pad(p.coef, (0, 5 - len(p.coef)))[1:].tolist() for p in weights]
    error = [high - low for high, low in zip([*b, 0.0], lower, strict=True)]
    return Tableau([0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0], a, b, error, 4, extension)


FIXED = ("Euler", "Heun", "RK4", "Verlet")
PLACES: dict[str, tuple[Sequence[float], Rows, Sequence[float]]] = {
    "Euler": ((0.0,), ((),), (1.0,)),
    "Heun": ((0.0, 1.0), ((), (1.0,)), (0.5, 0.5)),
    "RK4": ((0.0, 0.5, 0.5, 1.0), ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}


def fixed_step_method(name: str) -> Tableau | Verlet:
    """Return a method with steps of one size by its name."""
    if name == "Verlet":
        return Verlet()
    c, a, b = PLACES[name]
    rows = [[0.0, 3 * weight, -2 * weight] for weight in b]
    rows[0] = [1.0, rows[0][1] - 2.0, rows[0][2] + 1.0]
    return Tableau(c, a, b, None, len(b), [*rows, [0.0, -1.0, 1.0]])


class Verlet(NamedTuple):
    """Be the method of Stoermer and Verlet, for states of which one half are positions, one velocities.

    Positions go by the midpoint rule, velocities by the trapezoidal one. Where the slopes of each half depend on the
    other alone, that is the symplectic method. Where they do not, as with friction, what the rules ask of a half before
    it is known is taken along the slope, within O(h^2): so the order is 2 for every equation.
    """

    order: int = 2
    evaluations: int = 3
    jacobians: int = 0
    more: Any = None
    mass: Any = None
    places: Sequence[float] = (0.5, 1.0, 1.0)
    is_adaptive: bool = False
    is_kept: bool = True

    def stages(self, visits: Visits, start: Start) -> Stages:
        """Return the slopes at both ends of a step, the state at its end, and the slope there."""
        t, y, f, h = start[:4]
        half = y.shape[0] // 2
        middle = y + h / 2 * f
        place = y[:half] + h * visits.visit(t + h / 2, middle)[:half]
        ahead = np.concatenate([place, middle[half:] + h / 2 * f[half:]])
        end = np.concatenate([place, middle[half:] + h / 2 * visits.visit(t + h, ahead)[half:]])
        last = visits.visit(t + h, end)
        return Stages([f, last], end, last)

    def error_norm(self, found: Stages, scale: Any, h: Any) -> Any:
        """Return 0, as there is no estimate of errors."""
        return 0.0

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, slopes: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, those of `basis`."""
        first, last, change = h * slopes[0], h * slopes[1], end - y
        return [first, 3 * change - 2 * first - last, first + last - 2 * change]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        return [x, x * x, x * x * x]

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the slopes of a step along a slope."""
        return [f, f]
