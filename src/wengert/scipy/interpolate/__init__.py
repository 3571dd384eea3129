"""Interpolation with SciPy's names and signatures: `wengert.scipy.interpolate`.

Interpolants are differentiated by the samples they go through, by the places of these (the knots), and by where they
are evaluated. Values are SciPy's to rounding. Whether places increase is looked at where their elements are known.

>>> import numpy as np
>>> import wengert as wg
>>> x, y = np.linspace(0.0, 3.0, 7), np.linspace(0.0, 3.0, 7) ** 2
>>> round(wg.grad(lambda t: CubicSpline(x, y)(t))(1.3), 12)
2.6
"""

from typing import TYPE_CHECKING

from wengert.scipy.interpolate._bsplines import (
    BSpline,
    InterpolatedUnivariateSpline,
    make_interp_spline,
    make_lsq_spline,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)
from wengert.scipy.interpolate._cubic import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    pchip_interpolate,
)
from wengert.scipy.interpolate._grids import RectBivariateSpline, RegularGridInterpolator, interp1d, interpn
from wengert.scipy.interpolate._piecewise import PPoly
from wengert.scipy.interpolate._polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
)
from wengert.support.hints import names_on_demand

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RectBivariateSpline",
    "RegularGridInterpolator",
    "barycentric_interpolate",
    "interp1d",
    "interpn",
    "krogh_interpolate",
    "make_interp_spline",
    "make_lsq_spline",
    "pchip",
    "pchip_interpolate",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]

pchip = PchipInterpolator  # SciPy's other name of it

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.interpolate")
