"""Derivatives of what solves equations: of roots, fixed points, optima and linear systems, whoever finds them.

The solver is called once, on plain arrays; it may be SciPy's, or a program of another language. Derivatives of what it
found follow from the equations, in both modes and to any order (the implicit function theorem).

>>> import numpy as np
>>> import wengert as wg
>>> from scipy import optimize
>>> @custom_root(lambda x, a: x - a * np.cos(x))
... def solve(a):
...     return optimize.brentq(lambda x: x - a * np.cos(x), 0.0, 2.0)
>>> round(wg.grad(solve)(1.0), 6)
0.441611
"""

from typing import TYPE_CHECKING

from wengert.implicit.bounded_equations import complementarity
from wengert.implicit.linear import linear_solve
from wengert.implicit.optima import stationary
from wengert.implicit.quadratic_programs.quadratic import QuadraticSolution, qp
from wengert.implicit.roots import custom_fixed_point, custom_root
from wengert.support.hints import names_on_demand

__all__ = [
    "QuadraticSolution",
    "complementarity",
    "custom_fixed_point",
    "custom_root",
    "linear_solve",
    "qp",
    "stationary",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.implicit")
