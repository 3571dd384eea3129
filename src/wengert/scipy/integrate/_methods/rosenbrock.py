"""A linearly implicit method for stiff equations: Rodas5P, of order 5.

With y' = f(t, y), or M y' = f(t, y), each of eight stages solves one linear system with the matrix M / (h gamma) - J,
J = df/dy at the beginning of the step, which is computed exactly: there is no iteration to differentiate through.

Source: G. Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia
Differential Equations package, BIT Numer. Math. 63:27, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.scipy.integrate._methods.jacobian_matrices import Matrices
from wengert.scipy.integrate._methods.tableaux import Rows, combination, root_mean_square
from wengert.scipy.integrate._methods.visits import Slope, Stages, Start, Visits
from wengert.support.records import NamedTuple
from wengert.transforms.forward import jvp

GAMMA = 0.21193756319429014
PLACES = (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0)
TIMES = (
    *(0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069),
    *(0.0, 0.0, 0.0),
)
LAST = (
    *(-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
    *(1.0, 1.0),
)
STATES: Rows = (
    (),
    (3.0,),
    (2.849394379747939, 0.45842242204463923),
    (-6.954028509809101, 2.489845061869568, -10.358996098473584),
    (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
    LAST[:5],
    LAST[:6],
    LAST,
)
SLOPES: Rows = (
    (),
    (-14.155112264123755,),
    (-17.97296035885952, -2.859693295451294),
    (147.12150275711716, -1.41221402718213, 71.68940251302358),
    (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
    (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
    (
        *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623),
        -28.087943162872662,
    ),
    (
        *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002),
        *(-54.66780262877968, -9.48861652309627),
    ),
)
EXTENSION: Rows = (
    (
        *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073),
        *(1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
    ),
    (
        *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044),
        *(15.98066361424651, -6.789040303419874, -6.710236069923372),
    ),
    (
        *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654),
        *(-59.78993625266729, -0.15582684282751913, 4.883087185713722),
    ),
)
OVERFLOW = 1e100
"""What stands for slopes that overflow, in attempts that are rejected: cotangents of zero times infinity are NaN."""


class Rosenbrock(NamedTuple):
    """Be the method.

    Attributes:
        matrices: how the Jacobian is held.
        mass: the matrix M, None for that of ones.
    """

    matrices: Matrices
    mass: Any = None
    order: int = 4
    evaluations: int = 8
    jacobians: int = 1
    places: Sequence[float] = PLACES[1:]
    more: Any = None
    is_adaptive: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether reverse mode keeps what steps compute, and does not compute it again."""
        return self.matrices.are_kept

    def stages(self, visits: Visits, start: Start) -> Stages:
        """Return the increments of a step, the state at its end, and what stands for the slope there."""
        found = self.increments(visits, start)
        return Stages(found, start.y + combination((*LAST, 1.0), found), start.f)

    def increments(self, visits: Visits, start: Start) -> list[Any]:
        """Return the increments of a step."""
        matrices, (t, y, _, h, own, _) = self.matrices, start
        by_state = matrices.jacobian(visits, t, y)
        by_time = jvp(lambda time: visits(time, y), (t,), (np.ones(()),))[1]
        by_time = np.where(np.isinf(by_time), 0.0, by_time)  # of sqrt(t) at 0: errors tell what is lost without it
        mass = matrices.identity(by_state) if own is None else matrices.of_mass(own)
        rate = 1.0 / h  # multiplied by: a division takes four times as long, and there were ten in each attempt
        matrix = mass * (rate / GAMMA) - by_state
        known = matrices.prepare(matrix)
        found: list[Any] = []
        for place, time, states, slopes in zip(PLACES, TIMES, STATES, SLOPES, strict=True):
            if not found:
                right = visits(t, y) + time * h * by_time
            else:
                change = combination(slopes, found) * rate
                right = visits.visit(t + place * h, y + combination(states, found))
                right = right + (change if own is None else matrices.by_mass(own, change))
                right = right + time * h * by_time if time else right
                right = np.where(np.abs(right) < np.inf, right, OVERFLOW)
            found.append(matrices.solve_many(known, matrix, right))
        return found

    def error_norm(self, found: Stages, scale: Any, h: Any) -> Any:
        """Return the norm of the error estimate, which is the last increment."""
        return root_mean_square(found.slopes[-1] / scale)

    def extend(self, slope: Slope, t: Any, y: Any, end: Any, h: Any, stages: Sequence[Any]) -> list[Any]:
        """Return the coefficients of the continuous extension, of order 4."""
        return [end - y, *(combination(row, stages) for row in EXTENSION)]

    def basis(self, x: Any) -> list[Any]:
        """Return the functions of the part of a step that the continuous extension is a sum of."""
        return [x, x * (1.0 - x), x * x * (1.0 - x), x * x * x * (1.0 - x)]

    def at_rest(self, f: Any, h: Any) -> list[Any]:
        """Return the increments of a step along a slope."""
        return [0.0 * f] * self.evaluations
