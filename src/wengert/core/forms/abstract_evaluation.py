"""Shapes, dtypes and memory order of results: what a primitive gives, without computing it.

A primitive's form tells (see `form`), once for each with the same shapes, dtypes, strides and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from wengert.core.forms.form import Pointwise, form_of
from wengert.core.forms.shape_probes import Avals, Results
from wengert.core.graph.equation import Variable
from wengert.core.graph.identity import identity_of_params
from wengert.core.memory.memory_layout import Joined, Strides, strides_among, strides_of
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_number, strong
from wengert.support.caches import Cache
from wengert.support.records import NamedTuple

LONGEST_KEY = 1024
KNOWN: Cache[Any, Results] = Cache()
"""What was found for a primitive, operands and parameters: the same few shapes occur over and over."""


def abstract(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return shapes and dtypes of a primitive's results; see `avals_and_strides`."""
    return avals_and_strides(primitive, inputs, params)[0]


def avals_and_strides(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
    """Return shapes and dtypes of a primitive's results, and how they lie in memory.

    Inputs are numbers, arrays, variables or anything else with a shape, dtype and strides.

    Raises:
        ShapeError: the shapes do not fit.
        GraphError: the shape depends on elements that are not known.
    """
    if primitive.structured or not primitive.registered:  # made for one call: nothing is remembered of it
        return found_for(primitive, inputs, params)
    pointwise = isinstance(form_of(primitive), Pointwise)
    try:
        operands = tuple(
            [
                (x.shape, x.dtype, x.strides, x.weak) if type(x) is Variable else key_of_operand(x, pointwise)
                for x in inputs
            ]
        )
        key = (primitive, operands, identity_of_params(params))
        known = KNOWN.get(key)
    except TypeError:  # a literal array on whose elements the result may depend
        return found_for(primitive, inputs, params)
    if known is None:
        known = KNOWN[key] = found_for(primitive, inputs, params)
    return known


def key_of_operand(value: Any, pointwise: bool) -> Any:
    """Return what of an operand decides about results: never the elements of what is pointwise.

    Elsewhere literal integers may be indices or counts, so results are remembered for few of them only.
    """
    kind = type(value)
    if kind is float or kind is complex:
        return kind
    if kind is int or kind is bool:
        return kind, value
    if kind is np.ndarray:
        if pointwise or value.dtype.kind in "fc":
            return kind, value.shape, value.dtype, value.strides
        if value.nbytes > LONGEST_KEY:
            raise TypeError
        return kind, value.shape, value.dtype, value.strides, value.tobytes()
    if issubclass(kind, np.generic):
        return kind, value if value.dtype.kind in "biu" and not pointwise else None
    return *aval_of(value), strides_of(value)


def found_for(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
    """Return avals and order by the primitive's form."""
    if any(type(strides_of(x)) is Joined for x in inputs) and not primitive.structured:
        return found_for_each_way(primitive, inputs, params)
    if primitive.firm:
        inputs = [strong(x) if is_number(x) else aval_of(x).firm if getattr(x, "weak", False) else x for x in inputs]
    return form_of(primitive).results(primitive, inputs, params)


class Lying(NamedTuple):
    """Hold what is known of an operand that lies in one of the ways in which it may."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: bool
    strides: Strides


def found_for_each_way(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
    """Return avals and order for operands that lie in one of several ways."""
    choices = [
        [Lying(*aval_of(x), way) for way in strides.ways] if type(strides := strides_of(x)) is Joined else [x]
        for x in inputs
    ]
    found = [found_for(primitive, chosen, params) for chosen in product(*choices)]
    avals = found[0][0]
    ways = zip(*[(None,) * len(avals) if order is None else order for _, order in found], strict=True)
    order = tuple(
        [strides_among(a.shape, a.dtype.itemsize, frozenset(some)) for a, some in zip(avals, ways, strict=True)]
    )
    return avals, None if order.count(None) == len(order) else order
