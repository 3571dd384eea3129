"""Samples of SciPy's special functions: one call of two elements each, in the middle of the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

import wengert.scipy.special as wsp
from tests.samples.base import Sample, fixed, sample
from tests.samples.elementwise import special as primitive
from wengert.primitives.special.declaration import OF_SCIPY


def of(ufunc: np.ufunc, *points: Any, order: int = 2) -> Sample:
    """Return the sample of a ufunc: numbers in lists are differentiated, others are not."""
    args = [np.array(x) if isinstance(x, list) else fixed(x) for x in points]
    return sample(OF_SCIPY[ufunc].name, ufunc, *args, order=order)


def derivative(name: str, *points: Any, **params: Any) -> Sample:
    """Return the sample of a primitive that is the derivative of another, or has parameters."""
    args = [np.array(x) if isinstance(x, list) else fixed(x) for x in points]
    return sample(name, primitive(name, **params), *args)


def through(name: str, mine: Callable[..., Any], scipys: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is SciPy's for arrays, which knows no Tensors, and Wengert's for them."""

    def function(*args: Any) -> Any:
        plain = all(isinstance(x, np.ndarray | np.generic | float | int) for x in args)
        return (scipys if plain else mine)(*args)

    function.__name__ = name
    return function


ERROR = [
    *(of(ufunc, [0.3, -1.2]) for ufunc in (sp.erf, sp.erfc, sp.erfcx, sp.erfi, sp.dawsn, sp.ndtr, sp.log_ndtr)),
    sample("erf", sp.erf, np.array([0.3 + 0.2j])),
    of(sp.erfinv, [0.3, -0.6]),
    of(sp.erfcinv, [0.3, 1.6]),
    of(sp.ndtri, [0.3, 0.9]),
    of(sp.ndtri_exp, [-0.3, -2.0]),
    of(sp.owens_t, [0.3, -1.2], [0.5, 0.8]),
    of(sp.fresnel, [0.3, -1.2]),
    sample("wofz", sp.wofz, np.array([0.3 + 0.2j, -1.2 + 0.1j])),
    derivative("erfcx_derivative", [0.3, -1.2], order=1),
    derivative("dawsn_derivative", [0.3, -1.2], order=1),
]
GAMMA = [
    *(of(ufunc, [0.3, -1.2]) for ufunc in (sp.gamma, sp.digamma, sp.gammaln, sp.rgamma)),
    of(sp.loggamma, [0.3, 2.2]),
    of(sp.gammasgn, [0.3, -1.2], order=1),
    of(sp.poch, [0.6, 2.2], [0.5, 1.5]),
    of(sp.binom, [3.6, 2.2], [0.5, 1.5]),
    of(sp._ufuncs._zeta, 2.5, [0.5, 1.5]),
    sample("polygamma", through("polygamma", wsp.polygamma, sp.polygamma), fixed(1), np.array([0.6, 2.2])),
    derivative("polygamma_difference", [1.3, 2.2], [0.3, 2.2], order=0),
]

SAMPLES = [*ERROR, *GAMMA]
