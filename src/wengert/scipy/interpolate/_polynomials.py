"""One polynomial through all samples."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, describe
from wengert.numpy._shapes import add_axes
from wengert.scipy.interpolate._piecewise import move_place_axes, numbers, samples


def place_row(name: str, value: Any) -> Any:
    """Return places in one row."""
    x = numbers(value)
    if x.ndim != 1 or not x.shape[0]:
        raise ShapeError(name, f"places of shape {x.shape}", "a row of them is needed", "Reshape them")
    return x


class BarycentricInterpolator:
    """Be the polynomial through samples; see `scipy.interpolate.BarycentricInterpolator`.

    Values are p(x) = y_m + d sum_j w_j (y_j - y_m) / (x - x_j) / (w_m + d sum_j w_j / (x - x_j)), where x_m is the
    nearest place, d = x - x_m, and sums are over the others: the second barycentric formula times d, which needs no
    exceptions at the places, nor do its derivatives (J.-P. Berrut and L. N. Trefethen, Barycentric Lagrange
    interpolation, 2004, equation 4.2).

    Args:
        xi: the places of samples, no two of which are equal.
        yi: samples; those of `set_yi` if they are not given.
        axis: the axis of samples.
        wi: the weights, if they are known.
        rng: not needed: the order of products is that of the places.

    Raises:
        ShapeError: there are not as many samples.

    >>> BarycentricInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])([1.0, 1.5])
    tensor([1.  , 2.25])
    """

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None) -> None:
        self.xi = place_row("BarycentricInterpolator", xi)
        self.wi = self.weights() if wi is None else numbers(wi)
        if self.wi.shape != self.xi.shape:
            given = f"wi of shape {self.wi.shape} for places of shape {self.xi.shape}"
            raise ShapeError("BarycentricInterpolator", given, "a weight for each place is needed", "Leave wi out")
        self.axis = axis
        self.yi: Any = None
        self.set_yi(yi, axis)

    def weights(self) -> Any:
        """Return one over the products of distances to the other places, over the capacity of the interval."""
        scale = 4.0 / (np.max(self.xi) - np.min(self.xi)) if self.xi.shape[0] > 1 else 1.0
        distances = scale * (self.xi[:, None] - self.xi) + np.eye(self.xi.shape[0])
        products = np.prod(distances, axis=1)
        if is_concrete(products) and not np.all(raw(products)):
            needed = "places that differ are needed"
            raise ValueError(describe("BarycentricInterpolator", "two equal places", needed, "Leave one out"))
        return 1.0 / products

    def set_yi(self, yi: Any, axis: int | None = None) -> None:
        """Set the samples."""
        if yi is not None:
            self.yi, self.axis = samples("BarycentricInterpolator", yi, axis or 0, self.xi.shape[0])

    def __call__(self, x: Any) -> Any:
        """Return values."""
        places = numbers(x)
        apart = places[..., None] - self.xi
        nearest = np.argmin(np.abs(apart), axis=-1)
        own = nearest[..., None] == np.arange(self.xi.shape[0])
        shares = np.where(own, 0.0, self.wi / np.where(own, 1.0, apart))
        d = places - self.xi[nearest]
        height = self.yi[nearest]
        scale = d / (self.wi[nearest] + d * np.sum(shares, axis=-1))
        flat = self.yi.reshape(self.yi.shape[0], -1)
        sums = np.matmul(shares[..., None, :], flat[..., None, :, :] if flat.ndim > 2 else flat)
        sums = sums.reshape(height.shape) - height * add_axes(np.sum(shares, axis=-1), height)
        return move_place_axes(height + add_axes(scale, height) * sums, places.ndim, self.axis)

    def slopes(self) -> Self:
        """Return the polynomial that is the derivative, through its values at the places."""
        apart = self.xi[:, None] - self.xi + np.eye(self.xi.shape[0])
        matrix = self.wi / (apart * self.wi[:, None]) * (1.0 - np.eye(self.xi.shape[0]))
        heights = self.yi.reshape(self.yi.shape[0], -1)
        risen = matrix @ heights - np.sum(matrix, axis=1)[:, None] * heights
        made = object.__new__(type(self))
        made.xi, made.wi, made.axis, made.yi = self.xi, self.wi, self.axis, risen.reshape(self.yi.shape)
        return made

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return values of a derivative."""
        found = self
        for _ in range(der):
            found = found.slopes()
        return found(x)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """Return values and derivatives, as many as there are samples or as are asked for, along the first axis."""
        found, values = self, [self(x)]
        for _ in range((self.xi.shape[0] if der is None else der) - 1):
            found = found.slopes()
            values.append(found(x))
        return np.stack(values)


def evaluate_derivatives(found: Any, x: Any, der: Any) -> Any:
    """Return values of a polynomial, of a derivative, or of several."""
    if np.ndim(der) == 0:
        return found.derivative(x, der) if der else found(x)
    return found.derivatives(x, max(der) + 1)[np.asarray(der)]


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """Return values of the polynomial through samples; see `scipy.interpolate.barycentric_interpolate`.

    >>> barycentric_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 1.5)
    tensor(2.25)
    """
    return evaluate_derivatives(BarycentricInterpolator(xi, yi, axis), x, der)


class KroghInterpolator:
    """Be the polynomial through samples and derivatives; see `scipy.interpolate.KroghInterpolator`.

    Args:
        xi: the places of samples; one that is repeated has derivatives behind its sample. Where the elements are
            unknown, in a trace or between lanes, no two are taken for equal.
        yi: samples.
        axis: the axis of samples.

    Raises:
        ShapeError: there are not as many samples.

    >>> KroghInterpolator([0.0, 0.0, 1.0], [0.0, 2.0, 0.0])(0.5)
    tensor(0.5)
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        self.xi = place_row("KroghInterpolator", xi)
        self.yi, self.axis = samples("KroghInterpolator", yi, axis, self.xi.shape[0])
        self.c = self.divided_differences()

    def divided_differences(self) -> list[Any]:
        """Return Newton's coefficients (F. T. Krogh, Efficient algorithms for polynomial interpolation, 1970)."""
        count = self.xi.shape[0]
        known = np.asarray(raw(self.xi)) if is_concrete(self.xi) else np.arange(count)
        found = [self.yi[0]]
        row = [0.0] * count  # the last one: places that are repeated go on with it
        for k in range(1, count):
            repeats = 0
            while repeats < k and known[k - repeats - 1] == known[k]:
                repeats += 1
            row[0] = self.yi[k] / float(math.factorial(repeats))
            for i in range(k - repeats):
                if known[i] == known[k]:
                    needed = "those that are equal side by side are needed"
                    raise ValueError(describe("KroghInterpolator", "equal places apart", needed, "Sort them"))
                row[i + 1] = ((row[i + 1] if repeats else found[i]) - row[i]) / (self.xi[i] - self.xi[k])
            found.append(row[k - repeats])
        return found

    def __call__(self, x: Any) -> Any:
        """Return values."""
        places = numbers(x)
        like = self.yi[0][(None,) * places.ndim]
        product, found = 1.0, self.c[0] + add_axes(np.zeros(places.shape), like)
        for k in range(1, len(self.c)):
            product = (places - self.xi[k - 1]) * product
            found = found + add_axes(product, like) * self.c[k]
        return move_place_axes(found, places.ndim, self.axis)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """Return values and derivatives, as many as there are samples or as are asked for, along the first axis."""
        places = numbers(x)
        count = len(self.c) if der is None else der
        like = self.yi[0][(None,) * places.ndim]
        found: list[Any] = [add_axes(np.zeros(places.shape), like) * self.yi[0]] * count
        for k in reversed(range(len(self.c))):
            apart = add_axes(places - self.xi[k], like)
            found = [found[j] * apart + (found[j - 1] if j else self.c[k]) for j in range(count)]
        values = [value * float(math.factorial(j)) for j, value in enumerate(found)]
        return np.stack([move_place_axes(value, places.ndim, self.axis) for value in values])

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return values of a derivative."""
        return self.derivatives(x, der + 1)[der]


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return values of the polynomial through samples; see `scipy.interpolate.krogh_interpolate`.

    >>> krogh_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 1.5, der=1)
    tensor(3.)
    """
    return evaluate_derivatives(KroghInterpolator(xi, yi, axis), x, der)
