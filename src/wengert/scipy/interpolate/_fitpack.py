"""FITPACK's names for splines: by knots, coefficients and degree, and as an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole, require_one_number, require_real, shown
from wengert.errors import UsageError
from wengert.numpy._shapes import add_axes
from wengert.scipy.interpolate._bsplines import BSpline, make_interp_spline
from wengert.scipy.interpolate._piecewise import as_places, numbers, require_within


def as_spline(tck: Any) -> BSpline:
    """Return a spline given by knots, coefficients and degree."""
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, tuple | list) or len(tck) != 3:
        given = f"{shown(tck)} as a spline"
        raise UsageError("tck", given, "knots, coefficients and degree are needed", "Pass what splrep gives")
    return BSpline(*tck)


def interpolating_spline(name: str, x: Any, y: Any, k: Any) -> BSpline:
    """Return the spline of a degree from 1 to 5 through real samples."""
    degree = as_whole(name, "k", k, 1)
    if degree > 5:
        raise UsageError(name, f"k={k}", "a degree from 1 to 5 is needed", "Use make_interp_spline")
    heights = numbers(y)
    require_real(name, "samples", heights.dtype)
    return make_interp_spline(x, heights, degree, check_finite=False)


def pad_coefficients(spline: BSpline) -> tuple[Any, Any, int]:
    """Return knots, as many coefficients, and degree."""
    more = np.zeros((spline.t.shape[0] - spline.c.shape[0], *spline.c.shape[1:]))
    return spline.t, np.concatenate([spline.c, more]), spline.k


def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> tuple[Any, Any, int]:
    """Return the knots, coefficients and degree of the spline through samples; see `scipy.interpolate.splrep`.

    Only splines that go through all samples are made: those that smooth choose their knots by the samples.

    Args:
        x: the places of samples, which increase.
        y: samples.
        w: not supported, as all but `k` and `quiet`.
        xb: not supported.
        xe: not supported.
        k: the degree.
        task: 0.
        s: 0, if it is given.
        t: not supported.
        full_output: 0.
        per: 0.
        quiet: whether nothing is printed.

    Raises:
        UsageError: one of them is given.

    >>> splev(1.5, splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0]))
    tensor(3.375)
    """
    if s is not None:
        require_one_number("splrep", "s", s)
    given = {"w": w, "xb": xb, "xe": xe, "t": t, "s": s or None, "task": task or None, "per": per or None}
    for name, value in {**given, "full_output": full_output or None}.items():
        if value is not None:
            text = f"{name}={value!r:.40}"
            raise UsageError("splrep", text, "its default is needed", "Use make_interp_spline")
    return pad_coefficients(interpolating_spline("splrep", x, y, k))


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return values of a spline, or of a derivative; see `scipy.interpolate.splev`.

    Args:
        x: places.
        tck: knots, coefficients and degree, or a `BSpline`.
        der: which derivative.
        ext: what holds outside: 0 the first and last polynomials, 1 zero, 2 an error, 3 the values at the ends.

    Raises:
        UsageError: `ext` is another.

    >>> splev([0.5, 3.0], ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1), ext=1)
    tensor([0.5, 0. ])
    """
    spline, places = as_spline(tck), as_places("splev", x)
    der = as_whole("splev", "der", der, 0)
    first, last = spline.t[spline.k], spline.t[spline.count]
    if ext not in (0, 1, 2, 3):
        raise UsageError("splev", f"ext={ext!r:.40}", "0, 1, 2 or 3 is needed", "Leave it out")
    if ext == 2:
        places = require_within("splev", places, first, last)
    if ext == 3:
        places = np.clip(places, first, last)
    found = spline(places, der, True)
    inside = (places >= first) & (places <= last)
    return np.where(add_axes(inside, found), found, 0.0) if ext == 1 else found


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Return the integral of a spline, zero outside of its knots; see `scipy.interpolate.splint`.

    Args:
        a: the lower limit.
        b: the upper limit.
        tck: knots, coefficients and degree, or a `BSpline`.
        full_output: 0.

    >>> splint(0.0, 1.0, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1))
    tensor(0.5)
    """
    if full_output:
        given = f"full_output={full_output!r:.40}"
        raise UsageError("splint", given, "0 is needed", "Use BSpline.basis_element for B-splines")
    return as_spline(tck).integrate(a, b, extrapolate=False)


def splder(tck: Any, n: int = 1) -> Any:
    """Return a derivative of a spline as one; see `scipy.interpolate.splder`.

    >>> splder(([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1))[1]
    tensor([ 1., -1.,  0.])
    """
    found = as_spline(tck).derivative(n)
    return found if isinstance(tck, BSpline) else pad_coefficients(found)


def splantider(tck: Any, n: int = 1) -> Any:
    """Return the integral of a spline from its first knot on as one; see `scipy.interpolate.splantider`.

    >>> splev(2.0, splantider(([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1)))
    tensor(1.)
    """
    found = as_spline(tck).antiderivative(n)
    return found if isinstance(tck, BSpline) else pad_coefficients(found)


class InterpolatedUnivariateSpline:
    """Go through samples; see `scipy.interpolate.InterpolatedUnivariateSpline`.

    Args:
        x: the places of samples, which increase.
        y: samples.
        w: not supported.
        bbox: not supported.
        k: the degree.
        ext: what holds outside: 0 the first and last polynomials, 1 zero, 2 an error, 3 the values at the ends; or
            "extrapolate", "zeros", "raise", "const".
        check_finite: not needed.

    Raises:
        UsageError: what is not supported is given.

    >>> InterpolatedUnivariateSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])(1.5)
    tensor(3.375)
    """

    EXT = ("extrapolate", "zeros", "raise", "const")

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Sequence[Any] = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        if w is not None or any(end is not None for end in bbox):
            raise UsageError("InterpolatedUnivariateSpline", "weights or bounds", "none are needed", "Leave them out")
        self.spline = interpolating_spline("InterpolatedUnivariateSpline", x, y, k)
        self.ext = self.EXT.index(ext) if ext in self.EXT else ext

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Return values, or those of a derivative."""
        beyond = self.ext if ext is None else self.EXT.index(ext) if ext in self.EXT else ext
        return splev(x, self.spline, nu, beyond)

    def of(self, spline: BSpline) -> Self:
        """Return another spline with the same rule outside."""
        made = object.__new__(type(self))
        made.spline, made.ext = spline, self.ext
        return made

    def derivative(self, n: int = 1) -> Self:
        """Return a derivative."""
        return self.of(self.spline.derivative(n))

    def antiderivative(self, n: int = 1) -> Self:
        """Return the integral from the first place on."""
        return self.of(self.spline.antiderivative(n))

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral from a to b, zero outside."""
        return splint(a, b, self.spline)

    def derivatives(self, x: Any) -> Any:
        """Return the value and all derivatives at a place."""
        return np.stack([self(x, nu) for nu in range(self.spline.k + 1)])

    def get_knots(self) -> Any:
        """Return the knots, those at the ends once."""
        k = self.spline.k
        return self.spline.t[k : self.spline.t.shape[0] - k]

    def get_coeffs(self) -> Any:
        """Return the coefficients."""
        return self.spline.c
