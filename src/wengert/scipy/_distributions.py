"""What distributions have in common: arguments, supports, location and scale.

A distribution is a table of formulas for its standard form, composed of NumPy's and SciPy's functions, which are given
points inside the support and shape parameters that are valid. Methods and what they give outside are SciPy's.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import scipy.special as sp

from wengert import random
from wengert.control.while_loop import fori_loop
from wengert.core.diagnostics.argument_checks import require_real
from wengert.core.values.dispatch import as_tensor, strengthen
from wengert.core.values.tensor import Tensor, concrete, is_concrete, raw
from wengert.errors import UsageError
from wengert.scipy._piecewise import (
    FAINT,
    all_of,
    all_positive,
    either,
    known_truth,
    level_at_end,
    level_at_infinity,
    log_of_smaller,
    select_defined,
)
from wengert.support.hints import hint_parameters, hints
from wengert.traces.operands import operand
from wengert.transforms.reverse import stop_gradient

Formula = Callable[..., Any]

MOST = 1e8
"""The number of terms above which no entropy is summed."""

BLOCK = 256.0
"""The number of terms that are summed at once where their number is not known while tracing."""

NEAR = 2.0**-6
"""Nearer to an end of its support a density is computed as the power of the distance that it is there."""

LEAST = 2.0**-54
"""The least of the evenly distributed numbers of which quantiles are taken: that of 0 may be infinite."""


def numbers(name: str, *values: Any) -> list[Any]:
    """Return arguments as arrays or Tensors of float64, as SciPy has them: none stands for a Python number."""
    found = [operand(name, x) for x in values]
    return [strengthen(x) if getattr(x, "dtype", None) == np.float64 else as_double(name, x) for x in found]


def as_double(name: str, x: Any) -> Any:
    """Return real numbers of another dtype as float64."""
    require_real(name, "a parameter or point", x.dtype if hasattr(x, "dtype") else np.dtype(type(x)))
    return x.astype(np.float64) if type(x) is Tensor else np.float64(x)


def number_or_array(name: str, value: Any) -> Any:
    """Return an argument likewise, but Python's numbers as such: with them arithmetic takes the short ways."""
    return float(value) if type(value) in (int, float) else numbers(name, value)[0]


def standardise(x: Any, loc: Any, scale: Any) -> Any:
    """Return (x - loc) / scale."""
    moved = x if type(loc) is float and loc == 0 else x - loc
    return moved if type(scale) is float and scale == 1 else moved / scale


def tail_over_density(formulas: dict[str, Formula], name: str) -> Formula | None:
    """Return the tail that `log_of_smaller` takes; None if there is no formula for it.

    The formula gives where it holds, and the logarithm of the tail over the density, or over that of a whole number.
    """
    if name not in formulas:
        return None
    density = formulas.get("logpdf") or formulas["logpmf"]

    def tail(x: Any, *shapes: Any) -> tuple[Any, Any]:
        usable, found = formulas[name](x, *shapes)
        return usable, density(x, *shapes) + found

    return tail


class Distribution:
    """Be a distribution with shape parameters, a location, and unless it is discrete a scale.

    Args:
        name: its name in SciPy.
        sample: valid shape parameters, which stand in for those that are not; 1 for each, if it is not given.
        lower: the least value, or a function of the shape parameters.
        upper: the greatest value, likewise.
        valid: tells where shape parameters are valid; where they are positive, if it is not given.
        symmetric: whether x and -x are equally probable, so that `sf`, `logsf` and `isf` follow.
        open_below: whether the density is 0 at the least value itself.
        **formulas: by the names of methods, functions of a point, if the method has one, and of the shape parameters,
            which have their names from the logarithm of the density; `lower_tail` and `upper_tail` give where they
            hold, and the logarithm of `cdf` and `sf` over the density, where these are faint.
    """

    optional: ClassVar[dict[str, float]]

    def __init__(
        self,
        name: str,
        *,
        sample: tuple[float, ...] = (),
        lower: Any = -math.inf,
        upper: Any = math.inf,
        valid: Formula = all_positive,
        symmetric: bool = False,
        open_below: bool = False,
        **formulas: Formula,
    ) -> None:
        density = formulas.get("logpdf") or formulas["logpmf"]
        self.name, (_, *self.shapes) = name, inspect.signature(density).parameters
        self.sample = [np.float64(x) for x in sample or (1.0,) * len(self.shapes)]
        self.lower, self.upper, self.valid = lower, upper, valid
        self.open_below = open_below
        self.formulas = {**self.derive_formulas(formulas, symmetric), **formulas}

    def derive_formulas(self, given: dict[str, Formula], symmetric: bool) -> dict[str, Formula]:
        """Return the formulas that follow from others."""
        found: dict[str, Formula] = {}
        if "cdf" in given:
            mirrored = {"sf": lambda x, *shapes: given["cdf"](-x, *shapes)}
            found["sf"] = mirrored["sf"] if symmetric else lambda x, *shapes: 1.0 - given["cdf"](x, *shapes)
            if symmetric and "lower_tail" in given:
                found["upper_tail"] = lambda x, *shapes: given["lower_tail"](-x, *shapes)
            both = {**found, **given}
            lower, upper = (tail_over_density(both, name) for name in ("lower_tail", "upper_tail"))
            found["logcdf"] = lambda x, *shapes: log_of_smaller(both["cdf"], both["sf"], x, shapes, lower)
            found["logsf"] = lambda x, *shapes: log_of_smaller(both["sf"], both["cdf"], x, shapes, upper)
        if symmetric and "logcdf" in given:
            found["logsf"] = lambda x, *shapes: given["logcdf"](-x, *shapes)
        if "ppf" in given:
            found["isf"] = lambda q, *shapes: -given["ppf"](q, *shapes) if symmetric else given["ppf"](1.0 - q, *shapes)
        if "logpmf" in given:
            found["pmf"] = lambda k, *shapes: np.exp(given["logpmf"](k, *shapes))
        return found

    def formula(self, method: str) -> Formula:
        """Return the formula of a method; a UsageError is raised if there is none."""
        if method not in self.formulas:
            needed = "one that can be differentiated is needed"
            action = f"Use scipy.stats.{self.name}.{method} on plain arrays"
            raise UsageError(f"{self.name}.{method}", "a method without a formula", needed, action)
        return self.formulas[method]

    if not TYPE_CHECKING:  # checkers know the methods

        def __getattr__(self, name: str) -> NoReturn:
            written = hints("attributes", "distribution").get(name)
            said = f"; write {written}" if written else ""
            raise AttributeError(f"the distribution {vars(self).get('name')} has no attribute {name!r}{said}")

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> FrozenDistribution:
        """Return the distribution with its parameters fixed."""
        return FrozenDistribution(self, args, kwds)

    def parameters(self, method: str, args: Sequence[Any], kwds: dict[str, Any]) -> list[Any]:
        """Return all parameters in their order: shapes, location, scale."""
        names = (*self.shapes, *self.optional)
        found = {**self.optional, **kwds, **dict(zip(names, args, strict=False))}
        if len(args) > len(names) or found.keys() != set(names) or set(names[: len(args)]) & set(kwds):
            given = f"{len(args)} parameters" + "".join(f", {name}=" for name in kwds)
            needed = f"{', '.join(names)} are needed"
            raise UsageError(f"{self.name}.{method}", given, needed, "Pass them in this order, or by name")
        shapes = numbers(f"{self.name}.{method}", *[found[name] for name in self.shapes])
        return shapes + [number_or_array(f"{self.name}.{method}", found[name]) for name in self.optional]

    def ends(self, shapes: Sequence[Any]) -> tuple[Any, Any]:
        """Return the least and the greatest value."""
        lower, upper = (end(*shapes) if callable(end) else end for end in (self.lower, self.upper))
        return lower, upper

    def safe(self, valid: Any, shapes: Sequence[Any]) -> list[Any]:
        """Return shape parameters with valid ones in place of others."""
        return [either(valid, shape, sample) for shape, sample in zip(shapes, self.sample, strict=True)]

    def scaled_moment(self, method: str, args: Sequence[Any], kwds: dict[str, Any], finish: Callable[..., Any]) -> Any:
        """Return a function of the parameters, NaN where they are not valid; `finish(value, location, scale)`."""
        parameters = *shapes, loc, scale = self.all_parameters(method, args, kwds)
        placed = True if type(loc) is float and not math.isnan(loc) else ~np.isnan(loc)
        valid = all_of(self.valid(*shapes), scale > 0, placed)
        found = self.formula(method)(*self.safe(valid, shapes))
        finished = finish(found, loc, either(scale > 0, scale, 1.0))
        return as_tensor(select_defined(valid, finished, parameters))

    def all_parameters(self, method: str, args: Sequence[Any], kwds: dict[str, Any]) -> list[Any]:
        """Return shapes, location and scale."""
        raise NotImplementedError

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """Return the mean."""
        return self.scaled_moment("mean", args, kwds, lambda found, loc, scale: found * scale + loc)

    def var(self, *args: Any, **kwds: Any) -> Any:
        """Return the variance."""
        return self.scaled_moment("var", args, kwds, lambda found, _loc, scale: found * scale * scale)

    def std(self, *args: Any, **kwds: Any) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwds))


def require_key(name: str, key: Any) -> None:
    """Raise a UsageError of draws without a key."""
    if key is None:
        needed = "a key of wengert.random is needed"
        raise UsageError(f"{name}.rvs", "no key", needed, "Pass key=wengert.random.key(seed)")


class FrozenDistribution:
    """Be a distribution with its parameters fixed."""

    def __init__(self, distribution: Any, args: Sequence[Any], kwds: dict[str, Any]) -> None:
        self.distribution, self.args, self.kwds = distribution, args, kwds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.distribution, name)
        if name in ("mean", "var", "std", "cov", "entropy"):
            return functools.partial(method, *self.args, **self.kwds)
        if name == "rvs":
            return lambda **options: method(*self.args, **self.kwds, **options)
        return lambda x: method(x, *self.args, **self.kwds)


class Continuous(Distribution):
    """Be a continuous distribution."""

    optional: ClassVar[dict[str, float]] = {"loc": 0.0, "scale": 1.0}

    def all_parameters(self, method: str, args: Sequence[Any], kwds: dict[str, Any]) -> list[Any]:
        """Return shapes, location and scale."""
        return self.parameters(method, args, kwds)

    def at(self, method: str, x: Any, args: Sequence[Any], kwds: dict[str, Any], below: float, above: float) -> Any:
        """Return a formula inside the support, what there is below and above it, NaN where parameters are not valid."""
        parameters = *shapes, loc, scale = self.parameters(method, args, kwds)
        (x,) = numbers(self.name, x)
        positive = scale > 0
        valid = all_of(self.valid(*shapes), positive)
        scale = either(positive, scale, 1.0)
        shapes = self.safe(valid, shapes)
        lower, upper = self.ends(shapes)
        bounded = not (is_infinite(lower) and is_infinite(upper))
        density = method in ("logpdf", "pdf")
        finite = density or ~np.isinf(x)  # SciPy's densities there are what the formulas give
        known_finite = known_truth(finite) is True
        y = standardise(x if known_finite else either(finite, x, 0.0), loc, scale)
        if bounded or not known_finite:
            valid = all_of(valid, ~np.isnan(y))
            over = y > lower if self.open_below or not density else y >= lower
            inside = all_of(over, y <= upper if density else y < upper, known_finite or finite)
            left = y <= lower if known_finite else np.where(finite, y <= lower, x < 0)
            y, outer = either(inside, y, inner_point(lower, upper)), either(left, below, above)
        found = self.formula(method)(y, *shapes)
        if density and not (type(scale) is float and scale == 1):
            logarithm = math.log(scale) if type(scale) is float else np.log(scale)
            found = found - logarithm if method == "logpdf" else found / scale
        if bounded and method == "logpdf":
            found = level_at_end(found, y, lower, upper)
        if bounded or not known_finite:  # what is infinite or outside has no derivative, of any order
            found = either(inside, found, outer)
        return as_tensor(select_defined(valid, found, [x, *parameters]))

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density at x; where that is infinite at an end, without a slope."""
        return self.at("logpdf", x, args, kwds, -np.inf, -np.inf)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density at x; at infinity, and where it vanishes to all orders, no derivative is left of it.

        At an end of the support it is a power of the distance, which has derivatives there; its logarithm has not.
        """
        found = self.logpdf(x, *args, **kwds)
        moves = found._trace is not None  # else there are no slopes to keep the digits of
        near = moves and "pdf" in self.formulas and self.is_near_end(x, args, kwds)
        if known_truth(near) is False and is_concrete(found):
            values = raw(found)
            if (np.isfinite(values) & (values > FAINT)).all():  # as most are
                return np.exp(found)
        gone = (found <= FAINT) | near
        if not (is_infinite(self.lower) and is_infinite(self.upper)):
            gone = gone | np.isinf(numbers(self.name, x)[0])
        density = np.exp(np.where(gone, stop_gradient(found), found))
        if near is False:
            return density
        return either(near, level_at_infinity(self.at("pdf", x, args, kwds, 0.0, 0.0)), density)

    def is_near_end(self, x: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        """Tell where slopes of the density's logarithm are so large that in those of the density digits cancel."""
        *shapes, loc, scale = self.parameters("pdf", args, kwds)
        lower, upper = self.ends(self.safe(self.valid(*shapes), shapes))
        y = standardise(numbers(self.name, x)[0], loc, scale)
        return np.minimum(y - lower, upper - y) < NEAR

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of no more than x."""
        return self.at("cdf", x, args, kwds, 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of more than x."""
        return self.at("sf", x, args, kwds, 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of no more than x; where that is 0, without a slope."""
        return level_at_infinity(self.at("logcdf", x, args, kwds, -np.inf, 0.0))

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of more than x; where that is 0, without a slope."""
        return level_at_infinity(self.at("logsf", x, args, kwds, 0.0, -np.inf))

    def quantile(self, method: str, q: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Any:
        """Return the quantile of a probability: at 0 and 1 the ends of the support."""
        parameters = *shapes, loc, scale = self.parameters(method, args, kwds)
        (q,) = numbers(self.name, q)
        valid = all_of(self.valid(*shapes), scale > 0, q >= 0, q <= 1)
        shapes = self.safe(valid, shapes)
        inside = all_of(q > 0, q < 1)
        found = self.formula(method)(either(inside, q, 0.5), *shapes)
        if known_truth(inside) is not True:
            found = either(inside, found, np.where((q <= 0) == (method == "ppf"), *self.ends(shapes)))
        return as_tensor(select_defined(valid, found * scale + loc, [q, *parameters]))

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the value below which the probability is q."""
        return self.quantile("ppf", q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the value above which the probability is q."""
        return self.quantile("isf", q, args, kwds)

    @hint_parameters("rvs")
    def rvs(self, *args: Any, key: Any = None, size: Any = None, **kwds: Any) -> Any:
        """Return random numbers: quantiles of evenly distributed ones, which makes them differentiable in parameters.

        For distributions without another way that is implicit reparametrisation (Figurnov, Mohamed & Mnih 2018,
        "Implicit reparameterization gradients", NeurIPS 31).

        Args:
            *args: the parameters, as for other methods.
            key: a key of `wengert.random`.
            size: the shape; that of the parameters, broadcast, if it is not given.
            **kwds: parameters by name.

        Raises:
            UsageError: there is no key.
        """
        require_key(self.name, key)
        parameters = self.parameters("rvs", args, kwds)
        shape = np.broadcast_shapes(*map(np.shape, parameters)) if size is None else size
        return self.quantile("ppf", random.uniform(key, LEAST, 1.0, size=shape), parameters, {})

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the differential entropy."""
        return self.scaled_moment("entropy", args, kwds, lambda found, _loc, scale: found + np.log(scale))


def is_infinite(end: Any) -> bool:
    """Tell whether the end of a support is infinity whatever the parameters."""
    return isinstance(end, float) and math.isinf(end)


def inner_point(lower: Any, upper: Any) -> Any:
    """Return a point inside of a support, whose ends may be infinite, also for some parameters only."""
    if is_infinite(upper):
        return 0.0 if is_infinite(lower) else lower + 1.0
    below, above = np.isinf(lower), np.isinf(upper)
    lower, upper = either(below, 0.0, lower), either(above, 0.0, upper)
    return either(below | above, lower + upper + (1.0 * above - below), (lower + upper) / 2)


class Discrete(Distribution):
    """Be a distribution of whole numbers, with formulas as those of `Continuous`."""

    optional: ClassVar[dict[str, float]] = {"loc": 0.0}

    def all_parameters(self, method: str, args: Sequence[Any], kwds: dict[str, Any]) -> list[Any]:
        """Return shapes and location; there is no scale."""
        return [*self.parameters(method, args, kwds), np.float64(1.0)]

    def at(self, method: str, k: Any, args: Sequence[Any], kwds: dict[str, Any], below: float, above: float) -> Any:
        """Return a formula inside the support, what there is below and above it, NaN where parameters are not valid."""
        parameters = *shapes, loc = self.parameters(method, args, kwds)
        (k,) = numbers(self.name, k)
        valid = self.valid(*shapes)
        shapes = self.safe(valid, shapes)
        at_point = method in ("logpmf", "pmf")
        y = k - loc if at_point else np.floor(k - loc)
        lower, upper = self.ends(shapes)
        inside = all_of(y >= lower, *([y <= upper, np.floor(y) == y] if at_point else [y < upper]))
        found = self.formula(method)(either(inside, y, lower), *shapes)
        found = either(inside, found, either(y < lower, below, above))
        return as_tensor(select_defined(all_of(valid, ~np.isnan(y)), found, [k, *parameters]))

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of k."""
        return self.at("logpmf", k, args, kwds, -np.inf, -np.inf)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of k."""
        return self.at("pmf", k, args, kwds, 0.0, 0.0)

    def cdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of no more than k."""
        return self.at("cdf", k, args, kwds, 0.0, 1.0)

    def sf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of more than k."""
        return self.at("sf", k, args, kwds, 1.0, 0.0)

    def logcdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of no more than k."""
        return self.at("logcdf", k, args, kwds, -np.inf, 0.0)

    def logsf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of more than k."""
        return self.at("logsf", k, args, kwds, 0.0, -np.inf)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the least number that the probability q does not exceed; it is constant between jumps."""
        import scipy.stats

        plain = [concrete(f"{self.name}.ppf", x) for x in self.parameters("ppf", args, kwds)]
        return as_tensor(getattr(scipy.stats, self.name).ppf(concrete(f"{self.name}.ppf", q), *plain))

    def formula(self, method: str) -> Formula:
        """Return the formula of a method; entropies are sums, if nothing else is said."""
        return (
            self.summed_entropy if method == "entropy" and "entropy" not in self.formulas else super().formula(method)
        )

    def summed_entropy(self, *shapes: Any) -> Any:
        """Return the entropy, summed over all numbers whose probability counts."""
        if not all(map(is_concrete, shapes)):
            return self.entropy_in_blocks(*shapes)
        import scipy.stats

        plain = [raw(shape) for shape in shapes]
        distribution = getattr(scipy.stats, self.name)(*plain)
        most = np.ceil(np.max(distribution.isf(1e-12) + 5 * distribution.std() + 30))
        if not most < MOST:
            needed = "a sum that ends is needed"
            action = "Use the entropy of a normal distribution"
            raise UsageError(f"{self.name}.entropy", "a distribution over more than 1e8 numbers", needed, action)
        return self.entropy_among(np.arange(most), *shapes)

    def entropy_among(self, points: Any, *shapes: Any) -> Any:
        """Return the entropy's terms of some numbers, summed."""
        columns = [np.expand_dims(shape, -1) for shape in shapes]
        lower, upper = self.ends(columns)
        inside = all_of(points >= lower, points <= upper)
        points = np.where(inside, points, lower)
        found = self.formula("pmf")(points, *columns)
        logarithm = self.formula("logpmf")(points, *[stop_gradient(column) for column in columns])
        lost = (found == 0) & np.isfinite(logarithm)  # slopes of their terms would be infinite
        counts = inside & ~lost
        return np.sum(np.where(counts, sp.entr(np.where(counts, found, 1.0)), 0.0), axis=-1)

    def entropy_in_blocks(self, *shapes: Any) -> Any:
        """Return the entropy of parameters that are not known yet, NaN where the sum is over more than 1e8 numbers.

        The tails of what has no other formula fall as those of normal numbers, and then as exp(-k mean / variance).
        """
        mean, variance = (stop_gradient(self.formula(moment)(*shapes)) for moment in ("mean", "var"))
        dispersion = variance / np.where(mean > 0, mean, 1.0)
        most = np.max(mean + 12 * np.sqrt(variance) + 40 * (1 + dispersion))
        blocks = np.ceil(np.where(most < MOST, most, 0.0) / BLOCK).astype(int)
        start = np.zeros(np.shape(sum(shapes)))
        found = fori_loop(0, blocks, lambda i, x: x + self.entropy_among(i * BLOCK + np.arange(BLOCK), *shapes), start)
        return np.where(most < MOST, found, np.nan)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the entropy."""
        return self.scaled_moment("entropy", args, kwds, lambda found, _loc, _scale: found)
