"""Methods with steps of one size: Euler's, Heun's, the classical Runge-Kutta method, and Verlet's.

Between steps they are extended by cubics through both ends, with the slopes there.

Sources: E. Hairer, S. P. Norsett and G. Wanner, *Solving Ordinary Differential Equations I*, 1993, section II.1;
E. Hairer, C. Lubich and G. Wanner, Geometric numerical integration illustrated by the Stoermer-Verlet method, Acta
Numerica 12, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.scipy.integrate._methods.tableaux import Rows, Slope, Tableau

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
    is_adaptive: bool = False

    def stages(self, slope: Slope, t: Any, y: Any, f: Any, h: Any) -> tuple[list[Any], Any, Any]:
        """Return the slopes at both ends of a step, the state at its end, and the slope there."""
        half = y.shape[0] // 2
        middle = y + h / 2 * f
        place = y[:half] + h * slope(t + h / 2, middle)[:half]
        ahead = np.concatenate([place, middle[half:] + h / 2 * f[half:]])
        end = np.concatenate([place, middle[half:] + h / 2 * slope(t + h, ahead)[half:]])
        last = slope(t + h, end)
        return [f, last], end, last

    def error_norm(self, slopes: Sequence[Any], scale: Any, h: Any) -> Any:
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
