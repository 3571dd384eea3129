"""What SciPy's special functions mean for Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp
from numpy.lib.array_utils import normalize_axis_index
from scipy.special._ufuncs import _lambertw

from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.tensor import Tensor, concrete, is_concrete, raw
from wengert.numpy._contractions import array
from wengert.numpy._namespace import document_as
from wengert.numpy._reductions import axes
from wengert.numpy._ufuncs import ufunc_function
from wengert.primitives.conversion import barrier
from wengert.primitives.special import bessel, gamma, hypergeometric, sums
from wengert.primitives.special.declaration import OF_SCIPY
from wengert.traces.eager import eager
from wengert.traces.operands import operand

sum_exponentials = eager(sums.logsumexp)
normalise = eager(sums.softmax)
normalise_log = eager(sums.log_softmax)

OF_UFUNCS = {ufunc: ufunc_function(ufunc, primitive, "scipy.special") for ufunc, primitive in OF_SCIPY.items()}
for _ufunc, _function in OF_UFUNCS.items():
    implements(_ufunc)(_function)

zeta_of_two = OF_UFUNCS[sp._ufuncs._zeta]
riemann_zeta = OF_UFUNCS[sp._ufuncs._riemann_zeta]


@implements(sp.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Return the zeta function of Riemann, or with q of Hurwitz; see `scipy.special.zeta`."""
    return riemann_zeta(x, out=out) if q is None else zeta_of_two(x, q, out=out)


@implements(sp.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """Return derivatives of the digamma function; see `scipy.special.polygamma`."""
    return apply(gamma.polygamma, operand("polygamma", n), operand("polygamma", x))


@implements(sp.multigammaln)
def multigammaln(a: Any, d: Any) -> Any:
    """Return the logarithm of the gamma function of d dimensions; see `scipy.special.multigammaln`."""
    if type(a) is not Tensor or is_concrete(a):
        sp.multigammaln(raw(a), d)  # which says what is wrong with them
    steps = np.stack([a - (j - 1.0) / 2 for j in range(1, d + 1)] or [a])[: max(d, 0)]
    return d * (d - 1) * 0.25 * np.log(np.pi) + np.sum(sp.gammaln(steps), axis=0)


# Bessel functions


def spherical_function(name: str) -> Any:
    """Return a spherical Bessel function with SciPy's signature."""

    @document_as(name, "Return the spherical Bessel function, or its derivative", "scipy.special")
    def function(n: Any, z: Any, derivative: bool = False) -> Any:
        n, z = operand(name, n), operand(name, z)
        return apply(bessel.SPHERICAL[name], n, z, derivative=bool(derivative))

    return function


for _name in bessel.SPHERICAL:
    implements(getattr(sp, _name))(spherical_function(_name))


@implements(sp.lambertw, _lambertw)  # the ufunc that SciPy's function calls
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Return Lambert's function, which is complex; see `scipy.special.lambertw`."""
    branch, error = (concrete("lambertw", x) if type(x) is Tensor else x for x in (k, tol))
    x, shape = operand("lambertw", z), np.broadcast_shapes(np.shape(branch), np.shape(error))
    if shape:
        x = np.broadcast_to(as_tensor(x), np.broadcast_shapes(shape, np.shape(x)))
    return apply(hypergeometric.lambertw, x, k=branch, tol=error)


# Combinations


@implements(sp.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:  # noqa: N803 - SciPy's name
    """Return the number of combinations, of integers exactly where asked for; see `scipy.special.comb`."""
    if exact:
        return sp.comb(N, k, exact=True, repetition=repetition)
    things, chosen = operand("comb", N), operand("comb", k)
    if repetition:
        return np.where((chosen == 0) & (things >= 0), 1.0, sp.binom(things + chosen - 1, chosen))
    return np.where((chosen <= things) & (things >= 0) & (chosen >= 0), sp.binom(things, chosen), 0.0)


@implements(sp.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Return gamma(n + 1), by default 0 for n < 0; see `scipy.special.factorial`."""
    if exact or extend != "zero":
        return sp.factorial(n, exact=exact, extend=extend)
    n = operand("factorial", n)
    return np.where(n < 0, 0.0, sp.gamma(n + 1.0))


@implements(sp.softplus)
def softplus(x: Any, **options: Any) -> Any:
    """Return log(1 + exp(x)); see `scipy.special.softplus`."""
    return np.logaddexp(0, operand("softplus", x), **options)


# Exponentials along axes


@implements(sp.logsumexp)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials, with weights; see `scipy.special.logsumexp`."""
    a = array("logsumexp", a)
    a = a if a.dtype.kind in "fc" else a * 1.0
    a = a if a.ndim else a.reshape(1)
    if b is None and not return_sign:
        params = {"axis": axes(axis, a.ndim), "keepdims": bool(keepdims)}
        return sum_exponentials(a, params) if a.size else sp.logsumexp(np.empty(a.shape), **params)
    a, b = np.broadcast_arrays(a, np.ones(()) if b is None else array("logsumexp", b) * 1.0)
    params = {"axis": axes(axis, a.ndim), "keepdims": bool(keepdims)}
    found = apply(sums.weighted_logsumexp, a, b, **params, signed=bool(return_sign))
    if not return_sign:
        return found
    sign = apply(sums.logsumexp_sign, a, b, **params)
    if sign.dtype.kind == "c":  # SciPy's values change as the parts of the complex logarithm do
        logarithm = apply(sums.weighted_logsumexp, a, b, **params, signed=False)
        logarithm = np.where(np.isfinite(logarithm), logarithm, 0.0)
        change = logarithm - apply(barrier, logarithm)
        return apply(barrier, found) + np.real(change), sign * np.exp(1j * np.imag(change))
    return found, sign


@implements(sp.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """Return exponentials divided by their sum; see `scipy.special.softmax`."""
    x = array("softmax", x)
    if x.ndim and (type(axis) is int or (axis is None and x.ndim == 1)):
        return normalise(x, {"axis": normalize_axis_index(-1 if axis is None else axis, x.ndim)})
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


@implements(sp.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of softmax; see `scipy.special.log_softmax`."""
    x = array("log_softmax", x)
    if x.ndim and (type(axis) is int or (axis is None and x.ndim == 1)):
        return normalise_log(x, {"axis": normalize_axis_index(-1 if axis is None else axis, x.ndim)})
    largest = np.max(x, axis=axis, keepdims=True)
    shifted = x - np.where(np.isfinite(largest), largest, 0.0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
