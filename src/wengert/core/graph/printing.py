"""Graphs as text: a Wengert list."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.graph.equation import EquationList, lists_among, require_graph
from wengert.core.graph.variable import Variable
from wengert.core.memory.memory_layout import is_full
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_text


def render(graph: EquationList, *, positions: bool = False, indent: str = "") -> str:
    """Return a graph as a Wengert list.

    Args:
        graph: the graph.
        positions: whether to show where in the user's program each equation was traced.
        indent: what each line begins with.

    Returns:
        Its inputs, an equation a line, and its outputs.

    Raises:
        DtypeError: it is no graph.

    >>> import wengert as wg
    >>> print(render(wg.graph.trace(lambda x: x * x + 1.0)(2.0)))
    graph(x: float)
      v1 = multiply(x, x)  # float
      v2 = add(v1, 1.0)  # float
      return v2
    """
    require_graph("render", graph)
    names = variable_names(graph)
    lines = [f"{indent}graph({', '.join(f'{names[v]}: {aval_text(v)}' for v in graph.inputs)})"]
    for equation in graph.equations:
        bound = ", ".join(names[v] for v in equation.outputs)
        operands = [names[x] if type(x) is Variable else literal_text(x) for x in equation.inputs]
        nested = list(lists_among(equation.params, EquationList))
        hidden = {key.split("[")[0] for key, _ in nested}
        operands += [f"{k}={param_text(v)}" for k, v in equation.params.items() if k not in hidden]
        types = ", ".join(aval_text(v) for v in equation.outputs)
        line = f"{indent}  {bound} = {equation.primitive.name}({', '.join(operands)})  # {types}"
        if positions and equation.position is not None:
            line += f"  {equation.position}"
        lines.append(line)
        for key, inner in nested:
            lines.append(f"{indent}    {key}:")
            lines.append(render(inner, positions=positions, indent=indent + "      "))
    outputs = ", ".join(names[x] if type(x) is Variable else literal_text(x) for x in graph.outputs)
    lines.append(f"{indent}  return {outputs}")
    return "\n".join(lines)


def variable_names(graph: EquationList) -> dict[Variable, str]:
    """Return a name for each variable: the user's, else x1, x2, ... for inputs and v1, v2, ... for the others."""
    names: dict[Variable, str] = {}
    taken = {v.name for v in graph.inputs if v.name}
    for i, variable in enumerate(graph.inputs):
        names[variable] = variable.name or fresh_name(f"x{i + 1}", taken)
    count = 0
    for equation in graph.equations:
        for variable in equation.outputs:
            count += 1
            names[variable] = fresh_name(f"v{count}", taken)
    return names


def fresh_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken yet, and take it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def literal_text(value: Any) -> str:
    """Return a literal as the printer shows it: numbers whole, arrays by shape and dtype if they are long.

    A Python number, whose dtype gives way, is shown as such, a NumPy scalar with its dtype, and an array of one
    element everywhere as `full` of it.
    """
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)
    if value.size > 4 and isinstance(value, np.ndarray) and is_full(value):
        return f"full {value[(0,) * value.ndim].item()!r} {aval_text(value)}"
    if value.size > 4:
        return f"const {aval_text(value)}"
    return repr(value.tolist()) if value.ndim else f"{value.dtype}({value.item()!r})"


def param_text(value: Any) -> str:
    """Return a parameter as the printer shows it."""
    return value.name if isinstance(value, Primitive) else str(value)
