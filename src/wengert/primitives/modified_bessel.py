"""The modified Bessel function that NumPy has, its derivatives, and what kernels compute of those of orders 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import apply
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.scalar_polynomials import in_double, polynomial


def bessel_i_at(v: int, scaled: bool = False) -> Callable[..., Any]:
    """Return I_v(x) at a point, or exp(-|x|) times it; infinity is NaN to SciPy, too."""
    near, far = (coefficients.I1, coefficients.I1_FAR) if v else (coefficients.I0, coefficients.I0_FAR)

    def expression(x: Any) -> Any:
        size = np.absolute(x)
        left, right = polynomial(x * x, near), polynomial(8 / size, far) / np.sqrt(size)
        left, right = (x * left + 0, np.copysign(right, x)) if v else (left, right)  # of -0.0, too, it is 0.0
        if scaled:
            return np.where(size <= 8, np.exp(-size) * left, right)
        return np.where(size <= 8, left, np.exp(size) * right)

    return in_double(expression)


def i0_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of the modified Bessel function I0; the first one is I1."""
    from scipy import special  # only here, because importing it takes longer than importing Wengert

    value = special.i1(x) if order == 1 else special.ivp(0, x, order)
    return value.astype(np.result_type(x))


i0_derivative: Elementwise = elementwise(
    "i0_derivative",
    i0_derivative_value,
    d=lambda t, _out, x, *, order: t * apply(i0_derivative, x, order=order + 1),
    scalar=lambda x, *, order: bessel_i_at(1)(x) if order == 1 else None,
    cost=100,
)
i0 = elementwise(
    "numpy.i0",
    np.i0,
    d=lambda t, _out, x: t * apply(i0_derivative, x, order=1),
    scalar=bessel_i_at(0),
    cost=100,
)
