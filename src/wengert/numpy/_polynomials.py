"""Polynomials with NumPy's signatures: coefficients stand in one row, that of the highest power first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.dispatch import as_tensor, implements
from wengert.core.values.tensor import concrete, is_concrete
from wengert.errors import ShapeError, UsageError
from wengert.numpy._results import drop_zero_imaginary


def as_coefficients(value: Any) -> Any:
    """Return coefficients as a Tensor with one axis at least."""
    return np.atleast_1d(as_tensor(value))


def coefficient_row(name: str, value: Any) -> Any:
    """Return coefficients as a Tensor; what has no axes is refused."""
    found = as_tensor(value)
    if not found.ndim:
        raise ShapeError(name, "one number as coefficients", "a row of them is needed", "Write [p]")
    return found


def degree_change(name: str, m: Any) -> int:
    """Return how often to integrate or differentiate."""
    count = as_whole(name, "m", m)
    if count < 0:
        other = {"polyder": "polyint", "polyint": "polyder"}[name]
        raise UsageError(name, f"m={m}", "a number of at least 0 is needed", f"Use {other}")
    return count


@implements(np.polyval, by="p x")
def polyval(p: Any, x: Any) -> Any:
    """Return the values of a polynomial; see `numpy.polyval`."""
    row, x = coefficient_row("polyval", p), as_tensor(x)
    result: Any = np.zeros_like(x)
    for k in range(row.shape[0]):
        result = result * x + row[k]
    return result


def pad_powers(x: Any, length: int) -> Any:
    """Return coefficients with zeros for higher powers."""
    missing = length - len(x)
    return x if missing <= 0 else np.concatenate([np.zeros(missing, x.dtype), x])


@implements(np.polyadd, by="a1 a2")
def polyadd(a1: Any, a2: Any) -> Any:
    """Return the sum of polynomials; see `numpy.polyadd`."""
    x, y = as_coefficients(a1), as_coefficients(a2)
    return pad_powers(x, len(y)) + pad_powers(y, len(x))


@implements(np.polysub, by="a1 a2")
def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of polynomials; see `numpy.polysub`."""
    x, y = as_coefficients(a1), as_coefficients(a2)
    return pad_powers(x, len(y)) - pad_powers(y, len(x))


def trim_leading_zeros(x: Any) -> Any:
    """Return coefficients from the first that is not zero on; one is left, as NumPy has it."""
    found = np.flatnonzero(np.asarray(concrete("polymul", x, "Convolve the coefficients")))
    return x[found[0] :] if len(found) else x[:1] * 0


@implements(np.polymul, by="a1 a2")
def polymul(a1: Any, a2: Any) -> Any:
    """Return the product of polynomials; see `numpy.polymul`."""
    return np.convolve(trim_leading_zeros(as_coefficients(a1)), trim_leading_zeros(as_coefficients(a2)))


@implements(np.polydiv, by="u v")
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Return quotient and remainder of polynomials; see `numpy.polydiv`."""
    x, y = as_coefficients(u) + 0.0, as_coefficients(v) + 0.0
    dtype = np.result_type(x.dtype, y.dtype)
    steps = max(len(x) - len(y) + 1, 1)
    rest, scale = x.astype(dtype), 1.0 / y[0]
    found = [as_tensor(np.zeros((), dtype))] * steps
    for k in range(len(x) - len(y) + 1):
        found[k] = scale * rest[k]
        rest[k : k + len(y)] -= found[k] * y
    known = np.asarray(concrete("polydiv", rest, "Divide in steps of your own"))
    drop = 0
    while drop < len(known) - 1 and np.allclose(known[drop], 0, rtol=1e-14):
        drop += 1
    return np.stack(found), rest[drop:]


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """Return the derivative of a polynomial; see `numpy.polyder`."""
    x: Any = coefficient_row("polyder", p)
    for _ in range(degree_change("polyder", m)):
        x = x[:-1] * np.arange(len(x) - 1, 0, -1)
    return x


@implements(np.polyint, by="p k")
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the integral of a polynomial; see `numpy.polyint`."""
    x: Any = coefficient_row("polyint", p)
    count = degree_change("polyint", m)
    constants = as_tensor(np.zeros(count)) if k is None else as_coefficients(k)
    if len(constants) == 1 and count > 1:
        constants = np.broadcast_to(constants, (count,))
    if len(constants) < count:
        given = f"{len(constants)} constants of integration for m={m}"
        raise ShapeError("polyint", given, "one, or one for each is needed", "Pass k of that length")
    for i in range(count):
        x = np.concatenate([x / np.arange(len(x), 0, -1), constants[i : i + 1]])
    return x


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """Return the polynomial with some zeros, or with the eigenvalues of a matrix; see `numpy.poly`."""
    zeros = as_coefficients(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif zeros.ndim == 1:
        zeros = zeros.astype(np.mintypecode(zeros.dtype.char))
    else:
        needed = "zeros in one row, or a square matrix, are needed"
        raise ShapeError("poly", f"shape {zeros.shape}", needed, "Reshape it")
    found: Any = as_tensor(np.ones(1, zeros.dtype))
    for i in range(len(zeros)):
        factor = np.stack([np.ones_like(zeros[i]), -zeros[i]])
        found = np.convolve(found, factor)
    if not len(zeros):
        return 1.0
    if found.dtype.kind == "c" and is_concrete(zeros):
        known = np.asarray(concrete("poly", zeros))
        if np.all(np.sort(known) == np.sort(known.conjugate())):
            return np.copy(found.real)
    return found


@implements(np.roots)
def roots(p: Any) -> Any:
    """Return the zeros of a polynomial, the eigenvalues of its companion matrix; see `numpy.roots`."""
    x = as_coefficients(p)
    if x.ndim != 1:
        raise ShapeError("roots", f"shape {x.shape}", "coefficients in one row are needed", "Reshape them")
    places = np.flatnonzero(np.asarray(concrete("roots", x, "Find the eigenvalues of the companion matrix")))
    if not len(places):
        return as_tensor(np.array([]))
    at_zero = len(x) - int(places[-1]) - 1
    x = x[int(places[0]) : int(places[-1]) + 1]
    x = x if x.dtype.kind in "fc" else x.astype(float)
    count = len(x) - 1
    found: Any = as_tensor(np.array([]))
    if count:
        below = np.diag(np.ones(count - 1, x.dtype), -1)[1:]
        found = np.linalg.eigvals(np.concatenate([(-x[1:] / x[0])[None], below]))
        (found,) = drop_zero_imaginary(x, found) if found.dtype.kind == "c" else (found,)
    return np.concatenate([found, np.zeros(at_zero, found.dtype)])


@implements(np.polyfit, by="x y w")
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Return the polynomial of some degree that fits points best; see `numpy.polyfit`."""
    points, values = as_tensor(x) + 0.0, as_tensor(y) + 0.0
    order = fitting_order(deg, points, values)
    rcond = len(points) * np.finfo(points.dtype).eps if rcond is None else rcond
    powers = np.vander(points, order)
    if w is not None:
        weights = as_tensor(w) + 0.0
        if weights.shape != values.shape[:1]:
            given = f"weights of shape {weights.shape} for {values.shape[0]} points"
            raise ShapeError("polyfit", given, "one for each point is needed", "Pass w of that length")
        powers = powers * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt((powers * powers).sum(axis=0))
    powers = powers / scale
    found, residuals, rank, singular = np.linalg.lstsq(powers, values, rcond)
    found = (found.T / scale).T
    if not full and is_concrete(rank) and rank != order:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=user_stacklevel())
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    covariance = np.linalg.inv(np.dot(powers.T, powers)) / np.outer(scale, scale)
    if cov != "unscaled":
        if len(points) <= order:
            needed = f"more than {order} are needed to scale the covariance"
            raise UsageError("polyfit", f"{len(points)} points", needed, "Pass cov='unscaled'")
        factor = residuals / (len(points) - order)
        return found, (covariance if values.ndim == 1 else covariance[:, :, None]) * factor
    return found, covariance if values.ndim == 1 else covariance[:, :, None]


def fitting_order(deg: Any, x: Any, y: Any) -> int:
    """Return the number of coefficients of a polynomial to fit, if the arguments fit together."""
    degree = as_whole("polyfit", "deg", deg)
    if degree < 0:
        raise UsageError("polyfit", f"deg={deg}", "a degree of at least 0 is needed", "Pass another")
    if x.ndim != 1 or not len(x) or y.ndim not in (1, 2) or y.shape[0] != len(x):
        needed = "points in one row, and as many values, in one column or several, are needed"
        raise ShapeError("polyfit", f"shapes {x.shape} and {y.shape}", needed, "Reshape them")
    return degree + 1
