"""Graphs as text: a Wengert list, and operations and values in it: `v2 * x1`, `sum(v1, axis=0)`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import EquationList, Variable, lists_among, require_graph
from wengert.core.memory.memory_layout import is_full
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
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


SIGNS: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.neg: "-",
    operator.pos: "+",
}
"""How Python writes the operators that primitives state."""
UNSTATED = {"matmul": "@", "invert": "~"}
"""Those that do not serve Python's numbers as they are."""
RENAMED = {"absolute": "abs", "complex_size": "abs"}
OPERANDS = 8  # operands of one operation that are all shown
SHORT = 6  # elements of an array that are all shown
EXACT = 100  # elements of a result that are shown with all their digits
PARAMETER = 40  # characters of a parameter's text

Names = Sequence[str]
Params = Mapping[str, Any]


def sign_of(name: str) -> str:
    """Return the sign of the operator that a primitive is; nothing if it is none."""
    primitive = PRIMITIVES.get(name)
    stated = SIGNS.get(primitive.operator) if primitive is not None else None
    return stated or UNSTATED.get(name, "")


def formula(name: str, operands: Names, shapes: Sequence[tuple[int, ...]], params: Params) -> str:
    """Return an operation as a user would write it.

    >>> formula("multiply", ["v1", "2.0"], [(), ()], {})
    'v1 * 2.0'
    >>> formula("sum", ["v1"], [(3, 4)], {"axis": (0,), "keepdims": False})
    'sum(v1, axis=0)'
    """
    sign = sign_of(name)
    if sign and len(operands) == 2 and not params:
        return f"{enclose_negative(operands[0])} {sign} {enclose_negative(operands[1])}"
    if sign and len(operands) == 1:
        return sign + enclose_negative(operands[0])
    special = SPECIAL.get(name)
    if special is not None:
        return special(operands, params)
    if len(operands) > OPERANDS:
        operands = [*operands[: OPERANDS - 2], f"... ({len(operands) - OPERANDS + 2} more)"]
    options = [f"{key}={text}" for key, text in parameters(params, shapes[0] if shapes else ())]
    return f"{RENAMED.get(name, name)}({', '.join([*operands, *options])})"


def enclose_negative(operand: str) -> str:
    """Put a negative constant into parentheses."""
    return f"({operand})" if operand.startswith("-") else operand


def parameters(params: Params, shape: tuple[int, ...]) -> list[tuple[str, str]]:
    """Return names and texts of the parameters that do not have their usual values."""
    found = []
    for key, value in params.items():
        if value is None or value is False or (key, value) == ("order", "C"):
            continue
        if key == "axis" and isinstance(value, tuple):
            if len(value) == len(shape):  # all of them
                continue
            value = value[0] if len(value) == 1 else value
        text = getattr(value, "__name__", None) or str(value)
        found.append((key, shorten_text(" ".join(text.split()))))
    return found


def shorten_text(text: str) -> str:
    """Return a text with its end cut off if it is long."""
    return text if len(text) <= PARAMETER else text[: PARAMETER - 3] + "..."


def item_text(operands: Names, params: Params) -> str:
    """Return `x[index]`."""
    return f"{operands[0]}[{index_text(params['index'], operands[1:])}]"


def assignment_text(operands: Names, params: Params) -> str:
    """Return an assignment to part of an array: a new value of it, in a list where each value has its own name."""
    base, value, *arrays = operands
    steps = "".join(
        f"[{index_text(dict(options)['index'], ())}]" if primitive.name == "getitem" else f".{primitive.name}"
        for primitive, options in params["path"]
    )
    sign = "+=" if params["add"] else "="
    return f"{base} with {steps}[{index_text(params['index'], arrays)}] {sign} {value}"


def index_text(index: Sequence[Any], arrays: Names) -> str:
    """Return an index as it is written between brackets; `arrays` are the texts of the arrays in it."""
    rest = iter(arrays)
    entries = []
    for entry in index:
        if isinstance(entry, slice):
            parts = ["" if part is None else str(part) for part in (entry.start, entry.stop)]
            entries.append(":".join(parts if entry.step is None else [*parts, str(entry.step)]))
        elif entry is Ellipsis:
            entries.append("...")
        elif entry is None or isinstance(entry, int):
            entries.append(str(entry))
        else:
            entries.append(next(rest, str(entry)))
    return ", ".join(entries) or "()"


SPECIAL: dict[str, Callable[[Names, Params], str]] = {"getitem": item_text, "assign": assignment_text}


def constant_text(value: Any) -> str:
    """Return a constant as it stands in a formula.

    >>> constant_text(2.0), constant_text(np.zeros((64, 10)))
    ('2.0', '<64x10 array>')
    """
    if not isinstance(value, np.ndarray):
        return str(value)
    if value.ndim == 0:
        return str(value[()])
    if value.size <= SHORT:
        return nested_text(value)
    return f"<{'x'.join(map(str, value.shape))} array>"


def value_text(value: Any) -> str:
    """Return a value in short: a number with all its digits, an array by its shape and a few elements.

    >>> value_text(np.float64(0.1)), value_text(np.arange(100.0).reshape(4, 25))
    ('0.1', '(4, 25) [0.0, 1.0, 2.0, ..., 99.0]')
    """
    array = np.asarray(value)
    kind = "" if array.dtype in (np.float64, np.int64, np.bool_) else f"{array.dtype} "
    if array.ndim == 0:
        return kind + str(array[()])
    if 0 < array.size <= SHORT:
        return kind + nested_text(array)
    flat = array.ravel()
    shown = [number(x) for x in flat[:3]]
    if flat.size:
        shown += ["...", number(flat[-1])]
    return f"{kind}{array.shape} [{', '.join(shown)}]"


def exact_text(value: Any) -> str:
    """Return a final result: with all digits unless it is a large array."""
    array = np.asarray(value)
    return str(array.tolist()) if array.size <= EXACT else value_text(array)


def nested_text(array: Any) -> str:
    """Return a small array as nested lists of short numbers."""
    if array.ndim == 0:
        return number(array[()])
    return f"[{', '.join(nested_text(part) for part in array)}]"


def number(element: Any) -> str:
    """Return an element of an array with six digits."""
    if element.dtype.kind != "f":
        return str(element) if element.dtype.kind in "biu" else f"{element:.6g}"
    text = f"{element:.6g}"
    return text if any(c in text for c in ".en") else f"{text}.0"  # e: exponent; n: inf, nan
