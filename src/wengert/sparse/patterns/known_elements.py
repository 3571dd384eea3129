"""What is known of the elements of values that are not known as a whole, such as the zeros of padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Pointwise, form_of
from wengert.core.forms.view_forms import Place
from wengert.core.graph.equation import Equation
from wengert.core.maps.coordinates import Array
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of

MOST_ELEMENTS = 1 << 20
"""Of larger arrays nothing is looked for: it would take longer than computing them."""


def has_elements(value: Any) -> bool:
    """Tell whether a value is an array or a number."""
    return isinstance(value, np.ndarray | np.generic | float | int)


def known_elements(equation: Equation, operands: Sequence[Any]) -> Array | None:
    """Return what is known of the elements of a result; None if nothing is.

    Args:
        equation: what computes it.
        operands: their elements, NaN for those that are not known; None where nothing is.

    Returns:
        An array, with NaN for what is not known.
    """
    if len(equation.outputs) != 1:  # a branch that only raises has none
        return None
    (out,) = equation.outputs
    if out.dtype.kind not in "fb" or math.prod(out.shape) > MOST_ELEMENTS:
        return None
    primitive, form = equation.primitive, form_of(equation.primitive)
    is_linear = isinstance(primitive, Linear)
    if not is_linear and not isinstance(form, Pointwise | Contraction):
        return None
    if all(x is None for x in operands) and not isinstance(form, Place):
        return None
    avals = [aval_of(v) for v in equation.inputs]
    if any(math.prod(aval.shape) > MOST_ELEMENTS for aval in avals):
        return None
    unknown = [
        np.full(aval.shape, np.nan) if x is None else np.asarray(x) for aval, x in zip(avals, operands, strict=True)
    ]
    if isinstance(primitive, Linear) and not primitive.variadic:
        constants = unknown[len(primitive.transposes) :]
        if any(np.isnan(x).any() for x in constants):  # which may say where elements go, as those of a histogram do
            return None
    with np.errstate(all="ignore"):
        if isinstance(form, Contraction) and not is_linear:
            found = zeros_of_products(primitive, unknown, equation.params)
        elif not is_linear:
            found = known_at_points(primitive, unknown, avals, equation.params)
        elif all(x.dtype == aval.dtype or aval.dtype.kind == "f" for x, aval in zip(unknown, avals, strict=True)):
            # a sum of which an element is not known is not, either
            found = np.asarray(primitive.evaluate(*[x[()] for x in unknown], **equation.params), float)
        else:
            return None
    return None if np.isnan(found).all() else found


def zeros_of_products(primitive: Primitive, operands: Sequence[Array], params: Any) -> Array:
    """Return which elements of sums of products are zero: those of which each product has a factor that is."""
    may_be_other = [np.asarray(x != 0, float) for x in operands]
    return np.where(np.asarray(primitive.evaluate(*may_be_other, **params)) == 0, 0.0, np.nan)


def known_at_points(primitive: Primitive, operands: Sequence[Array], avals: Sequence[Aval], params: Any) -> Array:
    """Return what is known of an elementwise result: where all operands are, and a product where a factor is zero."""
    missing, values = np.zeros((), bool), []
    for x, aval in zip(operands, avals, strict=True):
        unknown = np.isnan(x)
        missing = missing | unknown
        values.append(np.where(unknown, 0, x).astype(aval.dtype)[()])  # primitives take no arrays without axes
    found = np.where(missing, np.nan, np.asarray(primitive.evaluate(*values, **params), float))
    if len(primitive.scales) == 2:
        found = np.where((operands[0] == 0) | (operands[1] == 0), 0.0, found)
    return found
