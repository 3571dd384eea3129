"""Common sub-expressions: each is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import identity, identity_of_params
from wengert.core.memory.memory_layout import is_full
from wengert.passes.equations import Known, everywhere, rename_known

MOST_COMPARED = 1 << 16
"""Bytes of a literal array up to which its elements are compared."""


@everywhere
def merge_common(graph: Graph) -> Graph:
    """Compute each expression once: primitives are functions, so equal operands give equal results.

    Variables are told apart by identity. Literals are equal if their bits and dtypes are; a Python number differs from
    a NumPy one, whose dtype is stronger.
    """
    seen: dict[Any, tuple[Variable, ...]] = {}
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
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
    if not known:
        return graph
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def literal_key(value: Any) -> Any:
    """Return what tells literals apart: their bits, or if these are many their place in memory."""
    if type(value) is np.ndarray and value.nbytes > MOST_COMPARED and not is_full(value):
        return "memory", value.ctypes.data, value.shape, value.strides, value.dtype
    return identity(value)
