"""SciPy's optimisers and solvers of equations, whose results are differentiated: `wengert.scipy.optimize`.

SciPy does the solving, with derivatives that Wengert gives it, and gives its own result. Solutions have the derivatives
that the equations, or the conditions of a minimum, give them, in both modes and to any order: by arguments, and by all
that functions capture.

>>> import numpy as np
>>> import wengert as wg
>>> def cube_root(a):
...     return root(lambda x: x**3 - a, 1.0).x[0]
>>> round(wg.grad(cube_root)(8.0), 6), round(wg.grad(wg.grad(cube_root))(8.0), 6)
(0.083333, -0.006944)
"""

from typing import TYPE_CHECKING

from wengert.scipy.optimize._least_squares import curve_fit, least_squares, lsq_linear, nnls
from wengert.scipy.optimize._linear_programs import linprog
from wengert.scipy.optimize._minimize import minimize, minimize_scalar
from wengert.scipy.optimize._roots import fixed_point, root, root_scalar
from wengert.scipy.optimize._roots_by_method import bisect, brenth, brentq, fsolve, newton, ridder
from wengert.support.hints import names_on_demand

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fsolve",
    "least_squares",
    "linprog",
    "lsq_linear",
    "minimize",
    "minimize_scalar",
    "newton",
    "nnls",
    "ridder",
    "root",
    "root_scalar",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.optimize")
