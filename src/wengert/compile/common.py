"""Common sub-expressions: each is computed once."""

from __future__ import annotations

from typing import Any

from wengert.compile.equations import Known, everywhere, renamed
from wengert.core.abstract import key_of_params
from wengert.core.graph import Equation, Graph, Variable, hashable

__all__ = ["merge_common"]


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
        inputs = renamed(known, equation.inputs)
        params = params_key(equation) if equation.params else None
        key = (equation.primitive, params, *[x if type(x) is Variable else hashable(x) for x in inputs])
        earlier = seen.setdefault(key, equation.outputs)
        if earlier is not equation.outputs:
            known.update(zip(equation.outputs, earlier, strict=True))
        else:
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
    if not known:
        return graph
    return Graph(graph.inputs, kept, renamed(known, graph.outputs))


def params_key(equation: Equation) -> Any:
    """Return what tells parameters apart; graphs by their structure and arrays by their bits."""
    try:
        return key_of_params(equation.params)
    except TypeError:
        return tuple([(name, hashable(value)) for name, value in sorted(equation.params.items())])
