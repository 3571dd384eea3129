"""Integrals of functions that give arrays: `quad_vec`, and `fixed_quad`, by values at places fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.core.diagnostics.argument_checks import as_whole, require_callable
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_concrete, raw
from wengert.creation import asarray
from wengert.errors import UsageError
from wengert.scipy.integrate._integrals.adaptive import in_double, integral_between
from wengert.scipy.integrate._integrals.meshes import Accuracy, gauss_rule

NAME = "quad_vec"


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: int = 10000,
    workers: Any = 1,
    points: Sequence[float] | None = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> tuple[Any, Any]:
    """Return the integral of a function that gives an array, and an estimate of its error; see SciPy's `quad_vec`.

    It is differentiated as `quad` is, and evaluates the function for many places at once. All elements are integrated
    on one mesh, until the norm of their errors is as small as wanted; so are derivatives.

    Args:
        f: `f(x, *args)` returns an array, of the same shape at all places.
        a: the lower limit, as of `quad`.
        b: the upper limit.
        epsabs: the error wanted.
        epsrel: the error wanted as a share of the norm of the integral; the larger of both counts.
        norm: "2" or "max", of errors and of the integral.
        cache_size: not needed, as nothing is computed twice.
        limit: how many intervals there may be between limits and points.
        workers: not needed, as places are evaluated together.
        points: known places where the function is not smooth.
        quadrature: None; the rule is that of `quad`.
        full_output: False; there is no further output.
        args: further arguments of the function, a tuple.

    Returns:
        (integral of the shape of what `f` gives, norm of its error).

    Raises:
        UsageError: `quadrature` or `full_output` is asked for, there is no such norm, or points are given for an
            infinite interval.
        DtypeError, ShapeError: a limit is no real number.

    >>> import numpy as np
    >>> import wengert as wg
    >>> moments = lambda k: quad_vec(lambda x: np.exp(-k * x) * x ** np.arange(3), 0.0, np.inf)[0]
    >>> moments(2.0).round(9), wg.jacobian(moments)(2.0).round(9)
    (array([0.5 , 0.25, 0.25]), array([-0.25 , -0.25 , -0.375]))
    """
    require_callable(NAME, f, "f")
    if norm not in ("2", "max"):
        raise UsageError(NAME, f"norm={norm!r}", "'2' or 'max' is needed", "Leave it out")
    for what, value, needed in (("full_output", full_output, False), ("quadrature", quadrature, None)):
        if value:
            action = "Leave it out, or call scipy.integrate.quad_vec"
            raise UsageError(NAME, f"{what}={value!r}", f"{needed} is needed", action)
    shapes: list[tuple[int, ...]] = []

    def vector_of(value: Any) -> Any:
        found = asarray(value)
        shapes.append(found.shape)
        return in_double(found.reshape(-1))

    wanted = Accuracy(epsabs, epsrel, as_whole(NAME, "limit", limit, least=1), norm, 1)
    further = args if isinstance(args, tuple) else (args,)
    value, error = integral_between(NAME, f, a, b, further, points, wanted, vector_of)
    return np.reshape(value, shapes[-1]), wanted.sizes(error)[0]


def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5) -> tuple[Any, None]:
    """Return the integral of a function by Gauss's quadrature, and None; see `scipy.integrate.fixed_quad`.

    Args:
        func: a function of many places at once, the last axis.
        a: the lower limit.
        b: the upper limit.
        args: further arguments of the function.
        n: the number of places.

    Raises:
        UsageError: a limit is infinite.

    >>> fixed_quad(lambda x: x**2, 0.0, 3.0)[0]
    tensor(9.)
    """
    places, weights = gauss_rule(n)
    low, high = as_tensor(a), as_tensor(b)
    if any(is_concrete(end) and np.any(np.isinf(raw(end))) for end in (low, high)):
        needed, remedy = "finite ones are needed", "Substitute a variable that stays finite, as t / (1 - t)"
        raise UsageError("fixed_quad", "an infinite limit", needed, remedy)
    values = func((high - low) * (places + 1) / 2.0 + low, *own_copies(args))
    return (high - low) / 2.0 * np.sum(weights * values, axis=-1), None
