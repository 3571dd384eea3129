"""Distributions of vectors and matrices, with SciPy's parameters and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from wengert import random
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError
from wengert.primitives.linear_algebra import least_squares
from wengert.scipy import linalg
from wengert.scipy._distributions import FrozenDistribution, numbers, require_key
from wengert.scipy._piecewise import all_of, either, select_defined
from wengert.scipy._special import multigammaln
from wengert.scipy._univariate import CONTINUOUS

LOG_TWO_PI = math.log(2 * math.pi)
LOG_TWO = math.log(2.0)


def shape_of_draws(size: Any) -> tuple[int, ...]:
    """Return the shape of draws."""
    return (size,) if isinstance(size, int) else tuple(size)


class Multivariate:
    """Be a distribution of arrays."""

    name: str

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> FrozenDistribution:
        """Return the distribution with its parameters fixed."""
        return FrozenDistribution(self, args, kwds)


class WithDensity(Multivariate):
    """Be one with a density."""

    logpdf: Callable[..., Any]

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density at x."""
        return np.exp(self.logpdf(x, *args, **kwds))


class WithProbabilities(Multivariate):
    """Be one of single values, each with its probability."""

    logpmf: Callable[..., Any]

    def pmf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of x."""
        return np.exp(self.logpmf(x, *args, **kwds))


def check_by_scipy(distribution: Any, method: str, *values: Any) -> None:
    """Raise SciPy's error about arguments whose elements are known."""
    if all(map(is_concrete, values)):
        getattr(distribution, method)(*map(raw, values))


# Vectors of probabilities


class Dirichlet(WithDensity):
    """The Dirichlet distribution: components along the first axis of x, the last of which may be left out."""

    name = "dirichlet"

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Return the logarithm of the density at x."""
        x, alpha = map(as_tensor, numbers("dirichlet.logpdf", x, alpha))
        check_by_scipy(scipy.stats.dirichlet, "logpdf", x, alpha)
        if x.shape[0] != alpha.shape[0]:
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        return np.sum(sp.xlogy(alpha - 1, x.T).T, axis=0) - self.log_norm(alpha)

    def rvs(self, alpha: Any, *, key: Any = None, size: Any = ()) -> Any:
        """Return random shares along the last axis: gamma numbers over their sum, implicitly differentiable."""
        require_key("dirichlet", key)
        alpha = self.as_parameters(alpha)
        found = CONTINUOUS["gamma"].rvs(alpha, key=key, size=(*shape_of_draws(size), alpha.shape[0]))
        return found / np.sum(found, axis=-1, keepdims=True)

    def log_norm(self, alpha: Any) -> Any:
        """Return the logarithm of the beta function of several arguments."""
        return np.sum(sp.gammaln(alpha)) - sp.gammaln(np.sum(alpha))

    def as_parameters(self, alpha: Any) -> Any:
        """Return the parameters as a Tensor, which must be positive."""
        (alpha,) = map(as_tensor, numbers("dirichlet", alpha))
        check_by_scipy(scipy.stats.dirichlet, "mean", alpha)
        return alpha

    def mean(self, alpha: Any) -> Any:
        """Return the mean."""
        alpha = self.as_parameters(alpha)
        return alpha / np.sum(alpha)

    def var(self, alpha: Any) -> Any:
        """Return the variances of the components."""
        alpha = self.as_parameters(alpha)
        total = np.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1))

    def cov(self, alpha: Any) -> Any:
        """Return the covariances of the components."""
        alpha = self.as_parameters(alpha)
        total = np.sum(alpha)
        share = alpha / total
        return (np.diag(share) - np.outer(share, share)) / (total + 1)

    def entropy(self, alpha: Any) -> Any:
        """Return the differential entropy."""
        alpha = self.as_parameters(alpha)
        total = np.sum(alpha)
        rest = (total - alpha.shape[0]) * sp.digamma(total) - np.sum((alpha - 1) * sp.digamma(alpha))
        return self.log_norm(alpha) + rest


def require_probabilities(name: str, p: Any) -> None:
    """Raise a ShapeError if an array of probabilities has no axis of them."""
    if not p.ndim or not p.shape[-1]:
        needed = "a vector of probabilities is needed"
        raise ShapeError(name, f"p of shape {p.shape}", needed, "Give that of each outcome, along the last axis")


class Categorical(WithProbabilities):
    """The distribution of one of the numbers 0, 1, ..., whose probabilities stand along the last axis of p.

    SciPy has none; PyTorch's is alike.
    """

    name = "categorical"

    def logpmf(self, k: Any, p: Any) -> Any:
        """Return the logarithm of the probability of k."""
        k, p = map(as_tensor, numbers("categorical.logpmf", k, p))
        require_probabilities("categorical.logpmf", p)
        inside = all_of(k >= 0, k < p.shape[-1], np.floor(k) == k)
        shape = np.broadcast_shapes(k.shape, p.shape[:-1])
        places = np.broadcast_to(np.where(inside, k, 0).astype(np.int64), shape)[..., np.newaxis]
        chosen = np.take_along_axis(np.broadcast_to(p, (*shape, p.shape[-1])), places, axis=-1)[..., 0]
        return either(np.broadcast_to(inside, shape), np.log(chosen), -np.inf)

    def entropy(self, p: Any) -> Any:
        """Return the entropy."""
        (p,) = map(as_tensor, numbers("categorical.entropy", p))
        require_probabilities("categorical.entropy", p)
        return np.sum(sp.entr(p), axis=-1)


class Multinomial(WithProbabilities):
    """The multinomial distribution: counts along the last axis."""

    name = "multinomial"

    def as_parameters(self, method: str, n: Any, p: Any, *x: Any) -> list[Any]:
        """Return the arguments as Tensors, and where n and p are valid."""
        found = [as_tensor(v) for v in numbers(f"multinomial.{method}", n, p, *x)]
        n, p = found[:2]
        require_probabilities(f"multinomial.{method}", p)
        valid = all_of(n >= 0, np.all(p >= 0, axis=-1), np.all(p <= 1, axis=-1))
        return [valid, *found]

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the logarithm of the probability of the counts x."""
        valid, n, p, x = self.as_parameters("logpmf", n, p, x)
        if not x.ndim or x.shape[-1] != p.shape[-1]:
            given = f"counts of shape {x.shape} and probabilities of shape {p.shape}"
            needed = "as many counts as probabilities are needed"
            raise ShapeError("multinomial.logpmf", given, needed, "Check the last axis")
        inside = all_of(np.all((x >= 0) & (np.floor(x) == x), axis=-1), np.sum(x, axis=-1) == n)
        counts = either(inside[..., np.newaxis] & (x >= 0), x, 0.0)
        found = sp.gammaln(n + 1) + np.sum(sp.xlogy(counts, p) - sp.gammaln(counts + 1), axis=-1)
        moving = [np.sum(x, axis=-1), n, np.sum(p, axis=-1)]
        return select_defined(valid, either(inside, found, -np.inf), moving)

    def mean(self, n: Any, p: Any) -> Any:
        """Return the mean counts."""
        valid, n, p = self.as_parameters("mean", n, p)
        valid, n = valid[..., np.newaxis], n[..., np.newaxis]
        return select_defined(valid, n * p, [n, p])

    def cov(self, n: Any, p: Any) -> Any:
        """Return the covariances of the counts."""
        valid, n, p = self.as_parameters("cov", n, p)
        covariance = p[..., :, np.newaxis] * (np.eye(p.shape[-1]) - p[..., np.newaxis, :])
        valid, n = valid[..., np.newaxis, np.newaxis], n[..., np.newaxis, np.newaxis]
        return select_defined(valid, n * covariance, [n, covariance])


# Vectors


def locate_points(name: str, location: Any, shape: Any, x: Any = None) -> list[Any]:
    """Return the dimension, location and matrix that SciPy makes of them, and x less the location.

    A matrix may be a number or a diagonal, and location zero.
    """
    matrix: Any = as_tensor(numbers(name, shape)[0])
    centre: Any = None if location is None else np.atleast_1d(as_tensor(numbers(name, location)[0]))
    dimension = matrix.shape[0] if matrix.ndim else 1 if centre is None else centre.shape[0]
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dimension)
    elif matrix.ndim == 1:
        matrix = np.diag(matrix)
    centre = np.zeros(dimension) if centre is None else centre
    if matrix.shape != (dimension, dimension) or centre.shape != (dimension,):
        given = f"a location of shape {centre.shape} and a matrix of shape {matrix.shape}"
        raise ShapeError(name, given, "a vector and a square matrix as large are needed", "Check the shapes")
    if x is None:
        return [dimension, centre, matrix]
    x = as_tensor(numbers(name, x)[0])
    if x.ndim == 0:
        x = x[np.newaxis]
    elif x.ndim == 1:
        x = x[:, np.newaxis] if dimension == 1 else x[np.newaxis, :]
    if x.shape[-1] != dimension:
        given = f"points of shape {x.shape} in {dimension} dimensions"
        raise ShapeError(name, given, "the last axis needs to have one entry each", "Check the shape of x")
    return [dimension, centre, matrix, x - centre]


def cholesky_factor(matrix: Any) -> tuple[Any, Any]:
    """Return the Cholesky factor of a positive definite matrix, and the logarithm of its determinant."""
    root = np.linalg.cholesky(matrix)
    return root, 2 * np.sum(np.log(np.diagonal(root)))


def distances(root: Any, deviations: Any) -> Any:
    """Return the squares of Mahalanobis' distances."""
    flat = deviations.reshape(-1, deviations.shape[-1])
    scaled = linalg.solve_triangular(root, flat.T, lower=True, check_finite=False)  # NaN stays with its point
    return np.sum(scaled * scaled, axis=0).reshape(deviations.shape[:-1])


def singular_density(matrix: Any, deviations: Any) -> Any:
    """Return logarithms of the density of a normal distribution on the space that its covariance matrix spans."""
    w = np.linalg.eigvalsh(matrix)
    kept = w > least_squares.smallest_eigenvalue(w)
    log_determinant = np.sum(np.log(np.where(kept, w, 1.0)))
    flat = deviations.reshape(-1, deviations.shape[-1])
    limit = least_squares.smallest_eigenvalue(np.ones(1, matrix.dtype)).item()
    inverse = np.linalg.pinv(matrix, rcond=limit, hermitian=True)
    found = -0.5 * (np.sum(kept) * LOG_TWO_PI + log_determinant + np.sum((flat @ inverse) * flat, axis=-1))
    inside = np.all(kept) | apply(least_squares.in_support, matrix, flat)
    return np.where(inside, found, -np.inf).reshape(deviations.shape[:-1])


class MultivariateNormal(WithDensity):
    """The normal distribution of vectors along the last axis.

    With `allow_singular` the covariance matrix may be singular; derivatives are then those of constant rank.
    """

    name = "multivariate_normal"

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the logarithm of the density at x."""
        dimension, _, matrix, deviations = locate_points("multivariate_normal.logpdf", mean, cov, x)
        if allow_singular:
            if is_concrete(matrix):  # let SciPy say what is wrong with it
                scipy.stats.multivariate_normal.logpdf(np.zeros(dimension), None, raw(matrix), allow_singular=True)
            return np.squeeze(singular_density(matrix, deviations))
        root, log_determinant = cholesky_factor(matrix)
        return np.squeeze(-0.5 * (dimension * LOG_TWO_PI + log_determinant + distances(root, deviations)))

    def rvs(self, mean: Any = None, cov: Any = 1, *, key: Any = None, size: Any = ()) -> Any:
        """Return random vectors along the last axis, differentiable in mean and covariance."""
        require_key("multivariate_normal", key)
        dimension, centre, matrix = locate_points("multivariate_normal.rvs", mean, cov)
        return centre + random.normal(key, size=(*shape_of_draws(size), dimension)) @ cholesky_factor(matrix)[0].T

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """Return the differential entropy."""
        dimension, _, matrix = locate_points("multivariate_normal.entropy", mean, cov)
        return 0.5 * (dimension * (LOG_TWO_PI + 1) + cholesky_factor(matrix)[1])


class MultivariateStudent(WithDensity):
    """Student's distribution of vectors along the last axis."""

    name = "multivariate_t"

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the logarithm of the density at x."""
        dimension, _, matrix, deviations = locate_points("multivariate_t.logpdf", loc, shape, x)
        (df,) = numbers("multivariate_t.logpdf", df)
        root, log_determinant = cholesky_factor(matrix)
        half = 0.5 * (df + dimension)
        found = sp.gammaln(half) - sp.gammaln(0.5 * df) - dimension / 2.0 * np.log(df * np.pi) - 0.5 * log_determinant
        return np.squeeze(found - half * np.log1p(distances(root, deviations) / df))

    def rvs(self, loc: Any = None, shape: Any = 1, df: Any = 1, *, key: Any = None, size: Any = ()) -> Any:
        """Return random vectors along the last axis, differentiable in all parameters."""
        require_key("multivariate_t", key)
        first, second = random.split(key)
        scale = CONTINUOUS["chi2"].rvs(df, key=first, size=shape_of_draws(size)) / df
        _, centre, _ = locate_points("multivariate_t.rvs", loc, shape)
        normal = MultivariateNormal().rvs(None if loc is None else centre * 0, shape, key=second, size=size)
        return centre + normal / np.sqrt(scale)[..., np.newaxis]

    def entropy(self, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the differential entropy."""
        dimension, _, matrix = locate_points("multivariate_t.entropy", loc, shape)
        (df,) = numbers("multivariate_t.entropy", df)
        both, half = 0.5 * (dimension + df), 0.5 * df
        found = sp.gammaln(half) - sp.gammaln(both) + 0.5 * dimension * np.log(df * np.pi)
        return found + both * (sp.digamma(both) - sp.digamma(half)) + 0.5 * cholesky_factor(matrix)[1]


# Matrices


class Wishart(WithDensity):
    """Wishart's distribution of positive definite matrices, of which further axes come last, as in SciPy."""

    name = "wishart"

    def as_parameters(self, method: str, df: Any, scale: Any) -> list[Any]:
        """Return the degrees of freedom, the scale matrix and its size."""
        size, _, matrix = locate_points(f"wishart.{method}", None, scale)
        (df,) = numbers(f"wishart.{method}", df)
        if is_concrete(df) and np.any(raw(df) <= size - 1):
            given = f"{raw(df)} degrees of freedom"
            raise UsageError(f"wishart.{method}", given, f"more than {size - 1} are needed", "Check df")
        return [df, matrix, size]

    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Return the logarithm of the density at x."""
        df, matrix, size = self.as_parameters("logpdf", df, scale)
        x = as_tensor(numbers("wishart.logpdf", x)[0])
        x = x.reshape(size, size, -1) if x.ndim < 3 else x
        if x.shape[:2] != (size, size):
            given = f"matrices of shape {x.shape[:2]}"
            raise ShapeError("wishart.logpdf", given, f"{size} by {size} is needed", "Check x and scale")
        root, log_scale = cholesky_factor(matrix)
        stack = np.moveaxis(x, -1, 0)
        log_x = 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(stack), axis1=-2, axis2=-1)), axis=-1)
        inverse = linalg.cho_solve((root, True), np.eye(size))
        trace = np.sum(inverse * stack, axis=(-2, -1))
        norm = 0.5 * df * size * LOG_TWO + 0.5 * df * log_scale + multigammaln(0.5 * df, size)
        return np.squeeze(0.5 * (df - size - 1) * log_x - 0.5 * trace - norm)

    def mean(self, df: Any, scale: Any) -> Any:
        """Return the mean."""
        df, matrix, _ = self.as_parameters("mean", df, scale)
        return np.squeeze(df * matrix)

    def var(self, df: Any, scale: Any) -> Any:
        """Return the variances of the entries."""
        df, matrix, _ = self.as_parameters("var", df, scale)
        diagonal = np.diagonal(matrix)
        return np.squeeze(df * (matrix**2 + np.outer(diagonal, diagonal)))

    def entropy(self, df: Any, scale: Any) -> Any:
        """Return the differential entropy."""
        df, matrix, size = self.as_parameters("entropy", df, scale)
        slopes = sum(sp.digamma(0.5 * (df - i)) for i in range(size))
        found = 0.5 * (size + 1) * cholesky_factor(matrix)[1] + 0.5 * size * (size + 1) * LOG_TWO
        return found + multigammaln(0.5 * df, size) - 0.5 * (df - size - 1) * slopes + 0.5 * df * size


MULTIVARIATE = {
    kind.name: kind()
    for kind in (Categorical, Dirichlet, Multinomial, MultivariateNormal, MultivariateStudent, Wishart)
}
