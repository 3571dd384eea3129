"""Samples of SciPy's special functions: one call of two elements each, in the middle of the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

import wengert.scipy.special as wsp
from tests.samples.base import Sample, fixed, normal, sample
from tests.samples.elementwise import special as primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.shares import shares_of_sum
from wengert.primitives.special.bessel import SPHERICAL
from wengert.primitives.special.declaration import OF_SCIPY


def of(ufunc: np.ufunc, *points: Any, order: int = 2) -> Sample:
    """Return the sample of a ufunc: numbers in lists are differentiated, others are not."""
    args = [np.array(x) if isinstance(x, list) else fixed(x) for x in points]
    return sample(OF_SCIPY[ufunc].name, ufunc, *args, order=order)


def shares_in_rows(x: Any) -> Any:
    """Return the parts of a sum of exponentials."""
    return apply(shares_of_sum, np.logaddexp.reduce(x, axis=1, keepdims=True), x, axis=(-1,))


def derivative(name: str, *points: Any, **params: Any) -> Sample:
    """Return the sample of a primitive that is the derivative of another, or has parameters."""
    args = [np.array(x) if isinstance(x, list) else fixed(x) for x in points]
    return sample(name, primitive(name, **params), *args)


def sum_with_sign(a: Any, b: Any) -> Any:
    """Return the logarithm of the absolute value of a weighted sum of exponentials, and its sign."""
    scipys = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return tuple((sp if scipys else wsp).logsumexp(a, b=b, return_sign=True))


def through(name: str, mine: Callable[..., Any], scipys: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is SciPy's for arrays, which knows no Tensors, and Wengert's for them."""

    def function(*args: Any) -> Any:
        plain = all(isinstance(x, np.ndarray | np.generic | float | int) for x in args)
        return (scipys if plain else mine)(*args)

    function.__name__ = name
    return function


POLYNOMIALS = (
    *("legendre", "sh_legendre", "chebyt", "chebyu", "sh_chebyt", "sh_chebyu", "chebyc", "chebys"),
    *("hermite", "hermitenorm", "laguerre"),
)
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
    derivative("wofz_derivative", [0.3 + 0.2j, -8.2 + 0.1j], order=1),
]
GAMMA = [
    *(of(ufunc, [0.3, -1.2]) for ufunc in (sp.gamma, sp.digamma, sp.gammaln, sp.rgamma)),
    of(sp.loggamma, [0.3, 2.2]),
    of(sp.gammasgn, [0.3, -1.2], order=1),
    of(sp.poch, [0.6, 2.2], [0.5, 1.5]),
    of(sp.binom, [3.6, 2.2, 2.0, 0.5], [0.5, 1.5, 3.0, -1.3]),
    of(sp._ufuncs._zeta, [2.5, 1.4], [0.5, 1.5]),
    of(sp._ufuncs._riemann_zeta, [2.5, -1.4]),
    derivative("zeta_derivative", [2.5, 1.4], [0.5, 1.5], order=1),
    sample("polygamma", through("polygamma", wsp.polygamma, sp.polygamma), fixed(1), np.array([0.6, 2.2])),
    derivative("polygamma_difference", [1.3, 2.2], [0.3, 2.2], order=0),
    derivative("complex_polygamma", [1.3 + 0.4j, -2.2 - 0.3j], order=1),
    *(of(ufunc, [0.6 + 0.4j, 2.2 - 0.3j]) for ufunc in (sp.gamma, sp.digamma, sp.rgamma, sp.loggamma)),
]
INCOMPLETE = [
    *(of(ufunc, [0.6, 2.2], [0.5, 1.5]) for ufunc in (sp.beta, sp.betaln)),
    *(of(ufunc, [0.6, 2.2], [0.5, 1.5]) for ufunc in (sp.gammainc, sp.gammaincc, sp.chdtr, sp.chdtrc, sp.stdtr)),
    *(of(ufunc, [0.6, 2.2], [0.5, 0.7]) for ufunc in (sp.gammaincinv, sp.gammainccinv, sp.chdtri)),
    of(sp.stdtrit, [0.9, 2.2], [0.3, 0.7]),
    *(of(ufunc, [0.6, 2.2], [1.5, 0.7], [0.3, 0.6]) for ufunc in (sp.betainc, sp.betaincc)),
    *(of(ufunc, [0.6, 2.2], [1.5, 0.7], [0.3, 0.6]) for ufunc in (sp.betaincinv, sp.betainccinv)),
    *(of(ufunc, [0.6, 2.2], [1.5, 0.7], [0.3, 0.6]) for ufunc in (sp.gdtr, sp.gdtrc, sp.fdtr, sp.fdtrc, sp.fdtri)),
    *(of(ufunc, 2.0, [0.6, 2.2]) for ufunc in (sp.pdtr, sp.pdtrc)),
    derivative("faded_product", [0.6, -2.2], [0.5, 1.5]),
    derivative("f_place", [0.6, 2.2], [1.5, 0.7], [0.3, 6.0]),
    derivative("f_density", [0.6, 2.2], [1.5, 0.7], [0.3, 6.0]),
    derivative("gaussian", [0.6, -2.2], over=1.0),
    derivative("student_body", [0.6, 3.2], [0.5, -1.5]),
    derivative("gamma_density", [0.6, 2.2], [0.5, 1.5], by_shape=1, by_place=1),
    derivative("beta_density", [0.6, 2.2], [1.5, 0.7], [0.3, 0.6], i=1, j=0, by_place=1),
    derivative("gammainc_derivative", [0.6, 2.2], [0.5, 1.5], order=1),
    derivative("betainc_derivative", [0.6, 2.2], [1.5, 0.7], [0.3, 0.6], i=1, j=0),
    derivative("gammainc_by_shape", [0.6, 2.2], [0.5, 1.5], order=1),
    derivative("betainc_by_shapes", [0.6, 2.2], [1.5, 0.7], [0.3, 0.6], i=1, j=0),
    derivative("betainc_by_shapes", [0.6], [1.5], [0.3], i=1, j=1),
]
ELEMENTARY = [
    *(of(ufunc, [0.3, -1.2]) for ufunc in (sp.expit, sp.log_expit, sp.exp2, sp.exp10, sp.expm1, sp.cosm1, sp.exprel)),
    *(of(ufunc, [0.3, -1.2]) for ufunc in (sp.wrightomega, sp.sindg)),
    *(of(ufunc, [25.0, -70.0]) for ufunc in (sp.tandg, sp.cotdg)),
    *(of(ufunc, [0.3, 1.2]) for ufunc in (sp.log1p, sp.cbrt, sp.entr, sp.spence)),
    of(sp.logit, [0.3, 0.8]),
    of(sp.round, [0.3, -1.2], order=1),
    of(sp.cosdg, [70.0, -110.0]),
    *(of(ufunc, [0.6, -1.3], [0.5, 1.5]) for ufunc in (sp.xlogy, sp.xlog1py)),
    *(of(ufunc, [0.6, 1.3], [0.5, 1.5]) for ufunc in (sp.rel_entr, sp.kl_div, sp.powm1)),
    *(of(ufunc, [0.6, 1.3], [0.4, -1.5]) for ufunc in (sp.huber, sp.pseudo_huber)),
    *(of(ufunc, [0.6, 1.3], [0.5, -0.4]) for ufunc in (sp.boxcox, sp.boxcox1p, sp.inv_boxcox, sp.inv_boxcox1p)),
    derivative("exprel_derivative", [0.3, -4.2], order=1),
    derivative("sinhc_derivative", [0.3, -4.2], order=1),
    derivative("normal_hazard", [0.3, -1.2]),
    derivative("skewnorm_cdf", [0.3, -1.2], [0.5, 1.4]),
    *(derivative(f"skewnorm_{name}", [0.3, 0.8], [0.5, -1.4]) for name in ("ppf", "isf")),
    *(derivative(f"invgauss_{name}", [0.3, 0.8], [0.5, 1.4]) for name in ("ppf", "isf")),
    *(derivative(f"vonmises_{name}", [0.3, 0.8], [0.5, 7.0]) for name in ("ppf", "isf")),
    derivative("log1p_ratio", [0.3, 2.2], order=1),
    derivative("log_ratio", [0.3, 2.2], order=1),
    derivative("part", [0.3, 2.2]),
    derivative("log_quotient", [0.3, 2.2], [0.4, 5.0]),
    of(sp.spence, [0.3 + 0.2j, 1.1 - 0.4j]),
]
BESSEL = [
    *(of(ufunc, 1.5, [0.6, 2.3]) for ufunc in (sp.jv, sp.yv, sp.iv, sp.kv, sp.jve, sp.yve, sp.ive, sp.kve)),
    *(of(ufunc, 1.5, [0.6, 2.3]) for ufunc in (sp.struve, sp.modstruve)),
    *(of(ufunc, 2, [0.6, 2.3]) for ufunc in (sp.yn, sp.kn)),
    *(of(ufunc, [0.6, 2.3]) for ufunc in (sp.j0, sp.j1, sp.y0, sp.y1, sp.i0, sp.i1, sp.k0, sp.k1)),
    *(of(ufunc, [0.6, 2.3]) for ufunc in (sp.i0e, sp.i1e, sp.k0e, sp.k1e, sp.airy)),
    *(
        sample(ufunc.__name__, ufunc, fixed(1.5), np.array([0.6 + 0.2j, 2.3 - 0.1j]))
        for ufunc in (sp.hankel1, sp.hankel2)
    ),
    derivative("scaled_bessel", 1.5, [0.6, 40.0], kind="k", order=1),
    derivative("struve_derivative", 1.5, [0.6, 14.0], modified=False, order=1),
    *(derivative(name, 2, [0.6, 2.3], derivative=False) for name in SPHERICAL),
]
INTEGRALS = [
    *(of(ufunc, [0.6, 2.3]) for ufunc in (sp.expi, sp.exp1, sp.sici, sp.shichi)),
    of(sp.shichi, [0.6 + 0.3j, 2.3 - 0.2j]),
    of(sp.expn, 2, [0.6, 2.3]),
    *(of(ufunc, [0.6, 0.2]) for ufunc in (sp.ellipk, sp.ellipkm1, sp.ellipe)),
    *(of(ufunc, [0.6, 2.2], [0.6, -0.2]) for ufunc in (sp.ellipkinc, sp.ellipeinc)),
    derivative("exponential_over", [0.6, -2.3]),
    derivative("elliptic_derivative", [0.6, 0.2], second=True, order=1),
    derivative("incomplete_elliptic_derivative", [0.6, 2.2], [0.6, -0.2], second=False, order=1),
]
HYPERGEOMETRIC = [
    of(sp.hyp0f1, 1.5, [0.6, -0.3]),
    of(sp.hyp1f1, 0.5, 1.5, [0.6, -0.3]),
    of(sp.hyperu, 0.5, 1.5, [0.6, 1.3]),
    of(sp.hyp2f1, 0.5, 1.5, 2.2, [0.6, -0.3]),
    *(of(getattr(sp, f"eval_{name}"), 3, [0.6, -0.3]) for name in POLYNOMIALS),
    of(sp.eval_gegenbauer, 3, 0.5, [0.6, -0.3]),
    of(sp.eval_genlaguerre, 3, 0.5, [0.6, -0.3]),
    of(sp.eval_jacobi, 3, 0.5, 1.5, [0.6, -0.3]),
    derivative("lambertw", [0.6 + 0.1j], k=0, tol=1e-8),
]
SUMS = [
    derivative("logsumexp", [[0.3, -1.2, 0.5], [1.0, 0.2, 0.1]], axis=(1,), keepdims=False),
    derivative("weighted_logsumexp", [0.3, -1.2, 0.5], [0.7, 1.1, 0.2], axis=(0,), keepdims=False, signed=False),
    derivative("weighted_logsumexp", [0.3, -1.2, 0.5], [0.7, 1.1, -2.2], axis=(0,), keepdims=False, signed=True),
    sample("weighted_logsumexp", sum_with_sign, np.array([0.3 + 0.2j, -1.2, 0.5]), np.array([0.7, 1.1j, -2.2])),
    derivative("logsumexp_sign", [0.3, -1.2, 0.5], [0.7, 1.1, -2.2], axis=(0,), keepdims=False),
    derivative("softmax_product", [[0.2, -0.7, 1.1], [0.4, 0.1, 0.3]], [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], axis=(-1,)),
    derivative("softmax_product", [[0.2, -0.7], [0.4, 0.1]], [[0.5, 0.3], [0.1, 0.1]], axis=(-2, -1)),
    derivative("log_softmax_transposed", [[0.2, -0.7, 1.1]], [[-0.9, -1.3, -1.7]], axis=(-1,)),
    derivative("log_softmax_product", [[0.2, -0.7, 1.1]], [[-0.9, -1.3, -1.7]], axis=(-1,)),
    sample("shares_of_sum", shares_in_rows, normal(2, 3)),
    derivative("softmax", [[0.3, -1.2, 0.5], [1.0, 0.2, 0.1]], axis=1),
    derivative("log_softmax", [[0.3, -1.2, 0.5], [1.0, 0.2, 0.1]], axis=1),
]

SAMPLES = [*ERROR, *GAMMA, *INCOMPLETE, *ELEMENTARY, *BESSEL, *INTEGRALS, *HYPERGEOMETRIC, *SUMS]
