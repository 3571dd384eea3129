"""Text of operations and values: `v2 * x1`, `sum(v1, axis=0)`, `(100, 64) [0.1, 0.2, 0.3, ..., 0.9]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "complex_product": "*",
    "power": "**",
    "pow": "**",
    "matmul": "@",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
PREFIX = {"negative": "-", "positive": "+", "invert": "~"}
RENAMED = {"absolute": "abs", "complex_size": "abs"}
OPERANDS = 8  # operands of one operation that are all shown
SHORT = 6  # elements of an array that are all shown
EXACT = 100  # elements of a result that are shown with all their digits
PARAMETER = 40  # characters of a parameter's text

Names = Sequence[str]
Params = Mapping[str, Any]


def formula(name: str, operands: Names, shapes: Sequence[tuple[int, ...]], params: Params) -> str:
    """Return an operation as a user would write it.

    >>> formula("multiply", ["v1", "2.0"], [(), ()], {})
    'v1 * 2.0'
    >>> formula("sum", ["v1"], [(3, 4)], {"axis": (0,), "keepdims": False})
    'sum(v1, axis=0)'
    """
    if name in INFIX and len(operands) == 2 and not params:
        return f"{enclosed(operands[0])} {INFIX[name]} {enclosed(operands[1])}"
    if name in PREFIX and len(operands) == 1:
        return PREFIX[name] + enclosed(operands[0])
    special = SPECIAL.get(name)
    if special is not None:
        return special(operands, params)
    if len(operands) > OPERANDS:
        operands = [*operands[: OPERANDS - 2], f"... ({len(operands) - OPERANDS + 2} more)"]
    options = [f"{key}={text}" for key, text in parameters(params, shapes[0] if shapes else ())]
    return f"{RENAMED.get(name, name)}({', '.join([*operands, *options])})"


def enclosed(operand: str) -> str:
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
        found.append((key, shortened(" ".join(text.split()))))
    return found


def shortened(text: str) -> str:
    """Return a text with its end cut off if it is long."""
    return text if len(text) <= PARAMETER else text[: PARAMETER - 3] + "..."


def read(operands: Names, params: Params) -> str:
    """Return `x[index]`."""
    return f"{operands[0]}[{index_text(params['index'], operands[1:])}]"


def written(operands: Names, params: Params) -> str:
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


SPECIAL: dict[str, Callable[[Names, Params], str]] = {"getitem": read, "assign": written}


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
        return nested(value)
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
        return kind + nested(array)
    flat = array.ravel()
    shown = [number(x) for x in flat[:3]]
    if flat.size:
        shown += ["...", number(flat[-1])]
    return f"{kind}{array.shape} [{', '.join(shown)}]"


def exact_text(value: Any) -> str:
    """Return a final result: with all digits unless it is a large array."""
    array = np.asarray(value)
    return str(array.tolist()) if array.size <= EXACT else value_text(array)


def nested(array: Any) -> str:
    """Return a small array as nested lists of short numbers."""
    if array.ndim == 0:
        return number(array[()])
    return f"[{', '.join(nested(part) for part in array)}]"


def number(element: Any) -> str:
    """Return an element of an array with six digits."""
    if element.dtype.kind != "f":
        return str(element) if element.dtype.kind in "biu" else f"{element:.6g}"
    text = f"{element:.6g}"
    return text if any(c in text for c in ".en") else f"{text}.0"  # e: exponent; n: inf, nan
