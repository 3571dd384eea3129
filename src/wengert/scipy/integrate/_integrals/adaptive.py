"""Integrals of functions over intervals that are cut where the function needs it: `quad`, `dblquad`, `nquad`.

An integral whose function reads what is being traced is an operation, `_integral.integral`, whose derivatives are
integrals again. To it are added those over short intervals at limits that are differentiated, from where they are to
where they go: nothing in value, and the integrand there in derivatives. So every mode differentiates to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_within
from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_one_number
from wengert.core.graph.graph import evaluate
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.creation import asarray
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.implicit.attaching import reaches_traced
from wengert.scipy.integrate._integrals.integral import NAME, integral, warn_if_inexact
from wengert.scipy.integrate._integrals.meshes import Accuracy, gauss_rule, integrate
from wengert.scipy.integrate._left_to_scipy import integrate_or_leave_to_scipy
from wengert.support.refusals import forgive, refusal_count
from wengert.transforms.reverse import stop_gradient
from wengert.transforms.tracing import trace_converting
from wengert.transforms.vmap import vmap

Function = Callable[[Any], Any]


def number_of(value: Any) -> Any:
    """Return what the user's function gave, which is one number, in double precision."""
    found = asarray(value)
    if found.size != 1:
        given, action = f"func returned shape {found.shape}", "Integrate by quad_vec"
        raise ShapeError(NAME, given, "one number is needed", action)
    return in_double(found.reshape(1))


def in_double(found: Any) -> Any:
    """Return numbers in double precision."""
    return found.astype(complex if found.dtype.kind == "c" else float)


def of_places(func: Callable[..., Any], further: Sequence[Any], form: Function) -> Function:
    """Return a user's function as one of many places, which sees them as lanes, with a row of components for each."""
    return vmap(lambda place: form(func(place, *own_copies(further))))


def graph_of_places(func: Callable[..., Any], further: Sequence[Any], form: Function) -> Function:
    """Return a user's function as one of a place, or many, which has been traced, and converted if it decides."""

    def trace(function: Callable[..., Any], reach: Reach) -> Any:
        return trace_within(reach, lambda x: [form(function(x, *own_copies(further)))], [0.0], NAME)

    (graph, captured), _ = trace_converting(NAME, func, trace)

    def function(x: Any) -> Any:
        if np.ndim(x):
            return vmap(lambda place: evaluate(graph, (place, *captured))[0])(x)
        return evaluate(graph, (x, *captured))[0]

    return function


def integral_over(line: Function, wanted: Accuracy) -> tuple[Any, Any]:
    """Return the integral of a traced function over the unit interval, and its error, with their derivatives."""
    graph, captured = trace_within(Reach(NAME, line), lambda s: [line(s)], [0.0], NAME)
    errors = [x if type(x) is Tensor else float(x) for x in wanted[:2]]
    found = apply(
        integral, *errors, *captured, integrand=graph, limit=wanted.limit, norm=wanted.norm, groups=wanted.groups
    )
    return found[0], found[1]


def value_over(line: Function, wanted: Accuracy) -> tuple[Any, Any]:
    """Return the integral of a function over the unit interval, and its error; nothing of it is being traced."""
    found = integrate(line, wanted)
    warn_if_inexact(found, wanted.limit)
    return found[0], found[1]


def over_line(function: Callable[[Any], Any], a: Any, b: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return a function of places in the unit interval that has the integral of another one from a to b, and a sign.

    Places are closer together towards limits, as s**2, so that an integrand that is infinite there as 1 / sqrt(x), or
    has a root, is smooth.
    """
    if not (is_concrete(a) and is_concrete(b)):
        return over_unknown_line(function, a, b)
    low, high = end_of(a), end_of(b)

    def over_segment(s: Any) -> Any:
        return function(a + (b - a) * (s * s * (3.0 - 2.0 * s))) * column((b - a) * 6.0 * s * (1.0 - s))

    if low == high and low:
        return lambda s: np.zeros_like(function(0.0 * s)), 1.0
    if low > high:
        inner, sign = over_line(function, b, a)
        return inner, -sign
    if not low and not high:
        return over_segment, 1.0

    def over_ray(s: Any) -> Any:
        far, width = s * s / (1.0 - s), s * (2.0 - s) / (1.0 - s) ** 2
        if low and high:
            return (function(far) + function(-far)) * column(width)
        return function(b - far if low else a + far) * column(width)

    return over_ray, 1.0


def column(weights: Any) -> Any:
    """Return weights of places, or that of one, as those of all components."""
    return np.expand_dims(weights, -1)


def over_unknown_line(function: Callable[[Any], Any], a: Any, b: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return what `over_line` does, for limits of which nobody knows whether they are infinite; lanes may differ."""
    low, high, turned = np.minimum(a, b), np.maximum(a, b), a > b
    is_low, is_high = np.isinf(low), np.isinf(high)
    begin, end = np.where(is_low, 0.0, low), np.where(is_high, 0.0, high)

    def place_and_weight(s: Any) -> Any:
        finite = begin + (end - begin) * (s * s * (3.0 - 2.0 * s)), (end - begin) * 6.0 * s * (1.0 - s)
        far, width = s * s / (1.0 - s), s * (2.0 - s) / (1.0 - s) ** 2
        side = np.abs(2.0 * s - 1.0)  # of the whole line each half begins in the middle
        whole = np.sign(2.0 * s - 1.0) * side * side / (1.0 - side), 2.0 * side * (2.0 - side) / (1.0 - side) ** 2
        place = np.where(is_low, np.where(is_high, whole[0], end - far), np.where(is_high, begin + far, finite[0]))
        share = np.where(is_low & is_high, whole[1], np.where(is_low | is_high, width, finite[1]))
        return function(place) * column(np.where(low == high, 0.0, share))

    return place_and_weight, np.where(turned, -1.0, 1.0)


def end_of(limit: Any) -> float:
    """Return the sign of an infinite limit; 0 for others, those that are traced among them."""
    return float(np.sign(raw(limit))) if is_concrete(limit) and np.isinf(raw(limit)) else 0.0


def at_limit(function: Callable[[Any], Any], limit: Any, other: Any) -> Any:
    """Return the integral from where a limit is to where it goes, which is 0 and has all derivatives of the integral.

    Those up to the eighth are exact, since so is the rule for the polynomials that they are of. Where a limit is
    infinite, derivatives by it are 0; there the integrand is called for a place that is between it and the other one.
    """
    if type(limit) is not Tensor or limit._trace is None:
        return 0.0
    places, weights = gauss_rule(4)
    here, there = stop_gradient(limit), stop_gradient(other)
    is_finite = np.isfinite(here)
    way = np.where(is_finite, limit, 0.0) - np.where(is_finite, here, 0.0)
    inside = np.where(np.isfinite(there), there, 0.0) + np.sign(here)
    begin: Any = np.where(is_finite, here, inside)
    return way * ((weights / 2.0) @ function(begin + way * (places + 1.0) / 2.0))


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Sequence[float] | None = None,
) -> tuple[Any, Any]:
    """Return the integral of a function of one variable, and an estimate of its error; see `scipy.integrate.quad`.

    It is differentiated by the limits, `args`, and what `func` captures, to any order, and runs under `jit` and `vmap`.
    The interval is cut where the function needs it, as QUADPACK does. `func` is called for many places at once, by
    `vmap`; under `jit`, where it is differentiated, and where it decides by its place, it is traced. Derivatives are
    integrals of the integrand's, each cut where it needs it, and as exact as is asked for here. Where it jumps at a
    place that depends on what is differentiated, they miss the jump. A function that cannot be traced is integrated by
    SciPy itself, where no derivative is taken.

    Args:
        func: `func(x, *args)` returns a number.
        a: the lower limit; -numpy.inf is allowed, also where it is traced, or of some lanes alone. Derivatives by an
            infinite limit are 0.
        b: the upper limit, likewise.
        args: further arguments of `func`, a tuple; one that is no tuple is the only one.
        full_output: 0; there is no further output.
        epsabs: the absolute error wanted.
        epsrel: the relative error wanted; the larger of both counts.
        limit: how many intervals there may be between limits and points.
        points: known places where the function is not smooth.

    Returns:
        (integral, error).

    Raises:
        UsageError: `full_output` is asked for, or points are given for an infinite interval.
        DtypeError, ShapeError: a limit is no real number.

    >>> import numpy as np
    >>> import wengert as wg
    >>> value, error = quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, args=(2.0,))
    >>> round(float(value), 12), bool(error < 1e-8)
    (0.5, True)
    >>> round(float(wg.grad(lambda k: quad(lambda x: np.exp(-k * x), 0.0, np.inf)[0])(2.0)), 12)
    -0.25
    """
    require_callable("quad", func)
    if full_output:
        raise UsageError("quad", f"full_output={full_output}", "0 is needed", "Call scipy.integrate.quad for details")
    wanted = Accuracy(epsabs, epsrel, as_whole("quad", "limit", limit, least=1))
    further = args if isinstance(args, tuple) else (args,)

    def integrate() -> tuple[Any, Any]:
        value, error = integral_between("quad", func, a, b, further, points, wanted, number_of)
        return value[0], error[0]

    names = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    found: tuple[Any, Any] = integrate_or_leave_to_scipy("quad", integrate, (func,), (func, a, b, further), names)
    return found


def integral_between(
    name: str,
    func: Callable[..., Any],
    a: Any,
    b: Any,
    further: tuple[Any, ...],
    points: Sequence[float] | None,
    wanted: Accuracy,
    form: Function,
) -> tuple[Any, Any]:
    """Return the integrals of all components of a function, and estimates of their errors.

    Args:
        name: what the user called.
        func: the user's function.
        a: the lower limit.
        b: the upper limit.
        further: arguments of the function.
        points: places where it is not smooth.
        wanted: how exact integrals are to be.
        form: makes a vector of what the function gives.
    """
    for what, end in (("a", a), ("b", b)):
        require_one_number(name, what, end)
    held = stop_gradient(a), stop_gradient(b)
    inner = sorted(points) if points is not None else []
    if inner and any(map(end_of, held)):
        action = "Integrate the finite part with points, and the rest without"
        raise UsageError(name, "points for an infinite interval", "a finite one is needed", action)
    ends = [held[0], *inner, held[1]]

    def over_all(function: Function, over: Callable[..., tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        lines = [over_line(function, low, high) for low, high in pairwise(ends)]
        parts = [(sign, over(line, wanted)) for line, sign in lines]
        return [(sign * value, np.abs(error)) for sign, (value, error) in parts]

    known = not any(type(x) is Tensor and x._trace is not None for x in flatten((further, a, b, *wanted[:2]))[0])
    found = None
    if known and not reaches_traced(name, func):
        found = try_evaluate(over_all, of_places(func, further, form))
    if found is None:
        function = graph_of_places(func, further, form)
        found = over_all(function, integral_over)
        moved = at_limit(function, b, a) - at_limit(function, a, b)
        found.append((moved, 0.0))
    value, error = (sum(parts) for parts in zip(*found, strict=True))
    return value, error


def try_evaluate(over_all: Callable[..., Any], function: Function) -> Any:
    """Return integrals of which nothing is being traced; None if the function decides by its place."""
    before = refusal_count()
    try:
        return over_all(function, value_over)
    except GraphError:
        forgive(before)
        return None


def nquad(func: Callable[..., Any], ranges: Sequence[Any], args: Any = (), opts: Any = None) -> tuple[Any, Any]:
    """Return the integral of a function of several variables, and an estimate of its error; see SciPy's `nquad`.

    It is differentiated as `quad` is, by what ranges depend on, too.

    Args:
        func: `func(x0, ..., xn, *args)` returns a number; x0 is the variable of the innermost integral.
        ranges: for each variable its pair of limits, or a function of the variables after it, and `args`, that returns
            them.
        args: further arguments, a tuple.
        opts: keywords for `quad`: a dictionary for all variables, or one for each.

    Returns:
        (integral, error of the outermost integral).

    Raises:
        UsageError: there is no range, or there are not as many options.

    >>> import numpy as np
    >>> round(float(nquad(lambda y, x: x * y, [lambda x: (0.0, x), (0.0, 2.0)])[0]), 12)
    2.0
    """
    require_callable("nquad", func)
    further = args if isinstance(args, tuple) else (args,)
    count = len(ranges)
    each = [opts or {}] * count if opts is None or isinstance(opts, dict) else list(opts)
    if not count or len(each) != count:
        given = f"{count} ranges and {len(each)} options"
        raise UsageError("nquad", given, "a range, and options or none, for each variable are needed", "Pass as many")

    def level(i: int, outer: tuple[Any, ...]) -> tuple[Any, Any]:
        low, high = ranges[i](*own_copies((*outer, *further))) if callable(ranges[i]) else ranges[i]

        def function(x: Any) -> Any:
            return func(*own_copies((x, *outer, *further))) if i == 0 else level(i - 1, (x, *outer))[0]

        return quad(function, low, high, **each[i])

    return level(count - 1, ())


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """Return the integral of a function over an area, and an estimate of its error; see `scipy.integrate.dblquad`.

    Args:
        func: `func(y, x, *args)` returns a number.
        a: the lower limit of x.
        b: the upper limit of x.
        gfun: the lower limit of y, a number or a function of x.
        hfun: the upper limit of y, likewise.
        args: further arguments, a tuple.
        epsabs: the absolute error wanted.
        epsrel: the relative error wanted.

    Returns:
        (integral, error).

    Raises:
        DtypeError: `func` cannot be called.

    >>> round(float(dblquad(lambda y, x: x * y, 0.0, 2.0, 0.0, lambda x: x)[0]), 12)
    2.0
    """
    options = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [lambda x, *_: (at(gfun, x), at(hfun, x)), (a, b)], args, options)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """Return the integral of a function over a volume, and an estimate of its error; see `scipy.integrate.tplquad`.

    Args:
        func: `func(z, y, x, *args)` returns a number.
        a: the lower limit of x.
        b: the upper limit of x.
        gfun: the lower limit of y, a number or a function of x.
        hfun: the upper limit of y, likewise.
        qfun: the lower limit of z, a number or a function of x and y.
        rfun: the upper limit of z, likewise.
        args: further arguments, a tuple.
        epsabs: the absolute error wanted.
        epsrel: the relative error wanted.

    Returns:
        (integral, error).

    Raises:
        DtypeError: `func` cannot be called.

    >>> round(float(tplquad(lambda z, y, x: x * y * z, 0.0, 1.0, 0.0, 2.0, 0.0, 1.0)[0]), 12)
    0.5
    """
    options = {"epsabs": epsabs, "epsrel": epsrel}
    ranges = [
        lambda y, x, *_: (at(qfun, x, y), at(rfun, x, y)),
        lambda x, *_: (at(gfun, x), at(hfun, x)),
        (a, b),
    ]
    return nquad(func, ranges, args, options)


def at(limit: Any, *places: Any) -> Any:
    """Return a limit that may be a function of the other variables."""
    return limit(*places) if callable(limit) else limit
