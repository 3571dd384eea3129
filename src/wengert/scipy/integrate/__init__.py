"""Integration with SciPy's names and signatures: `wengert.scipy.integrate`.

Differential equations are solved by `solve_ivp` and `odeint`, with conditions at both ends by `solve_bvp`, residuals
F(t, y, y') = 0 by `solve_dae`, which SciPy does not have. Functions are integrated by `quad` and its like, where they
need it in small steps, samples by `simpson` and others. All are differentiated by what they depend on, limits and
places included.

>>> import numpy as np
>>> import wengert as wg
>>> round(wg.grad(lambda b: fixed_quad(np.cos, 0.0, b)[0])(1.0), 4) == round(np.cos(1.0), 4)
np.True_
"""

from typing import TYPE_CHECKING

from wengert.numpy._accumulations import trapezoid
from wengert.scipy.integrate._boundary_value import solve_bvp
from wengert.scipy.integrate._initial_value import solve_ivp
from wengert.scipy.integrate._integrals.adaptive import dblquad, nquad, quad, tplquad
from wengert.scipy.integrate._integrals.array_integrals import fixed_quad, quad_vec
from wengert.scipy.integrate._integrals.samples import cumulative_simpson, cumulative_trapezoid, romb, simpson
from wengert.scipy.integrate._odeint import odeint
from wengert.scipy.integrate._residual import solve_dae
from wengert.support.hints import names_on_demand

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "nquad",
    "odeint",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "solve_bvp",
    "solve_dae",
    "solve_ivp",
    "tplquad",
    "trapezoid",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.integrate")
