"""Evaluation of primitives on ndarrays and numbers; what NumPy warns of meanwhile names the user's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numpy import ndarray

from wengert.core.diagnostics.numpy_warnings import at_users_line, call_with_warnings
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import NUMBERS, check_broadcast, strong
from wengert.core.values.python_numbers import calculate
from wengert.native.threads.elementwise import LARGE
from wengert.support.deferred_warnings import require_warning, unregister

unregister(globals())


def evaluate_primitive(primitive: Primitive, values: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Evaluate a primitive on ndarrays and numbers; only operators between Python numbers give one."""
    evaluate = primitive.strict
    if primitive.evaluate_large is not None:
        for value in values:
            if type(value) is ndarray and value.size >= LARGE:
                evaluate = primitive.strict_large
                break
    if primitive.firm:
        for value in values:
            if type(value) in NUMBERS:
                values = list(map(strong, values))
                break
    elif primitive.operator is not None and type(values[0]) in NUMBERS and type(values[-1]) in NUMBERS:
        return calculate(primitive.name, primitive.operator, partial(at_users_line, evaluate), values)
    try:
        out = evaluate(*values, **params)
    except ValueError:
        if primitive.kind == "elementwise":
            check_broadcast(primitive.name, values)
        raise
    except TypeError as error:
        require_warning(error)
        out = call_with_warnings(evaluate, values, params)
    return strong(out) if type(out) in NUMBERS and not primitive.gives_number else out
