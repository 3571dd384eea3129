"""Common sub-expressions: each is computed once."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import Elements, identity, identity_of_params
from wengert.core.memory.memory_layout import is_full
from wengert.passes.equations import Known, everywhere, rename_known

LARGE = 1 << 16
"""Bytes of a literal array from which those of the same elements become one array, which is known by its place then."""
SAMPLE = 64
"""Elements of a large literal that tell most apart."""


@everywhere
def merge_common(graph: Graph) -> Graph:
    """Compute each expression once: primitives are functions, so equal operands give equal results.

    Variables are told apart by identity. Literals are equal if their bits and dtypes are; a Python number differs from
    a NumPy one, whose dtype is stronger. Large ones that are equal become one, so that programs hold, read and keep
    the identity that a function and its gradient multiply by once.
    """
    arrays: dict[Any, Any] = {}
    seen: dict[Any, tuple[Variable, ...]] = {}
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = share_large(arrays, rename_known(known, equation.inputs))
        key = (
            equation.primitive,
            identity_of_params(equation.params),
            *[x if type(x) is Variable else literal_key(x) for x in inputs],
        )
        earlier = seen.setdefault(key, equation.outputs)
        if earlier is not equation.outputs:
            known.update(zip(equation.outputs, earlier, strict=True))
        else:
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
    if len(kept) == len(graph.equations) and all(map(is_, kept, graph.equations)):
        return graph
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def share_large(arrays: dict[Any, Any], operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands with the first array of the same elements for each large literal; the same tuple if these are."""
    if not any(map(is_large, operands)):
        return operands
    shared = tuple([arrays.setdefault(elements_key(x), x) if is_large(x) else x for x in operands])
    return operands if all(map(is_, shared, operands)) else shared


def is_large(value: Any) -> bool:
    """Tell whether an operand is a literal whose elements it takes long to digest."""
    return type(value) is np.ndarray and value.nbytes > LARGE and not is_full(value)


def elements_key(array: Any) -> tuple[Any, ...]:
    """Return what large literals share that may take each other's place: their elements, where they lie alike."""
    return array.strides, array.flat[:: array.size // SAMPLE].tobytes(), Elements(array)


def literal_key(value: Any) -> Any:
    """Return what tells literals apart: their bits, or of large ones which array they are."""
    return ("array", id(value)) if is_large(value) else identity(value)
