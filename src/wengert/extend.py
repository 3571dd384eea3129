"""Declare primitives from outside, exactly as the library declares its own.

A primitive is declared once, by the kind of its Jacobian: `elementwise` (diagonal), `linear`, `multilinear`, `opaque`
(none of these) or `constant` (zero), and its form: how it runs over its elements (`Pointwise`, which elementwise ones
are without saying so, `Reduction`, `Scan`, `Contraction`, `View`, `Place`, `Routine`, `Selection`). From the
declaration follow forward and reverse mode, power series, shapes, batching, and all their compositions;
`docs/extending.md` shows each kind. A rule is written in NumPy functions, since it runs on arrays, on scalars and on
Tensors, and is linear in its first argument. It may use any primitive, also one that is declared later. Arguments whose
names start with an underscore are not needed by the rule, so they are not saved for the sweep.

The logarithm of the gamma function, and its derivatives of all orders, from SciPy:

>>> import numpy as np
>>> import wengert as wg
>>> from scipy import special
>>> log_gamma = elementwise(
...     "example.log_gamma", special.gammaln, d=lambda t, _out, x: t * apply(polygamma, x, n=0)
... )
>>> polygamma = elementwise(
...     "example.polygamma",
...     lambda x, *, n: special.polygamma(n, x),
...     d=lambda t, _out, x, *, n: t * apply(polygamma, x, n=n + 1),
... )
>>> def gammaln(x):
...     return apply(log_gamma, x)
>>> bool(wg.grad(gammaln)(3.0) == special.digamma(3.0))
True
>>> wg.jvp(gammaln, (np.array([1.0, 3.0]),), (np.ones(2),))[1].round(6)
array([-0.577216,  0.922784])
>>> wg.hessian(lambda x: np.sum(gammaln(x)))(np.array([1.0, 2.0])).round(6)
array([[1.644934, 0.      ],
       [0.      , 0.644934]])
>>> np.round(wg.taylor(gammaln, (1.0,), (1.0,), 3), 6)
array([ 0.      , -0.577216,  0.822467, -0.400686])
>>> wg.vmap(wg.grad(gammaln))(np.array([1.0, 2.0])).round(6)
array([-0.577216,  0.422784])

What the functions of a declaration give is compared with what it says: shapes, numbers of results, real cotangents for
real operands. `wengert.testing.check_rule` compares the rules with differences and the form with a loop over lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from wengert.core.forms.batching import aligned, lead, shift
from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Pointwise, Reduction, Scan
from wengert.core.forms.labels import labelled
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import SIZE, Like, Place, Selection, View
from wengert.core.primitives import primitive
from wengert.core.primitives.declare import constant, elementwise, linear, multilinear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values import dispatch
from wengert.core.values.dispatch import apply
from wengert.errors import DtypeError, RegistrationError, ShapeError, UsageError, describe
from wengert.support.attributes import function_name

__all__ = [
    "PRIMITIVES",
    "SIZE",
    "Contraction",
    "DtypeError",
    "Like",
    "Place",
    "Pointwise",
    "Primitive",
    "Reduction",
    "RegistrationError",
    "Routine",
    "Scan",
    "Selection",
    "ShapeError",
    "UsageError",
    "View",
    "aligned",
    "apply",
    "constant",
    "describe",
    "elementwise",
    "implements",
    "labelled",
    "lead",
    "linear",
    "multilinear",
    "opaque",
    "shift",
]

F = TypeVar("F", bound=Callable[..., Any])

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType(primitive.PRIMITIVES)
"""Every declared primitive by its name, to read."""


def implements(*functions: Any) -> Callable[[F], F]:
    """Enter a function as the meaning of NumPy functions for Tensors.

    Args:
        *functions: what dispatches: ufunc objects, SciPy's among them, pairs (ufunc, method name), or functions with
            NumPy's `__array_function__`.

    Returns:
        A decorator that returns its function unchanged.

    Raises:
        UsageError: a function does not dispatch, so it would never learn of its meaning.

    >>> import numpy as np
    >>> import wengert as wg
    >>> twice = np.frompyfunc(lambda x: 2 * x, 1, 1)
    >>> @implements(twice)
    ... def twice_of_tensor(x):
    ...     return 2 * x
    >>> twice(wg.tensor(3.0))
    tensor(6.)
    """
    for function in functions:
        if not _dispatches(function):
            name = function_name(function)
            given = f"{name}, which does not dispatch on its arguments"
            needed = "a ufunc, or a function with NumPy's __array_function__, is needed"
            raise UsageError("implements", given, needed, "Call a function of your own in its place, which calls apply")
    return dispatch.implements(*functions)


def _dispatches(function: Any) -> bool:
    """Tell whether NumPy asks Tensors about calls of a function."""
    if isinstance(function, tuple):
        return len(function) == 2 and isinstance(function[0], np.ufunc) and hasattr(np.ufunc, str(function[1]))
    by_like = getattr(function, "__module__", None) == "numpy"  # `eye` and `ones`, which are written in Python
    return isinstance(function, np.ufunc | type(np.sum)) or by_like
