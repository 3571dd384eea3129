"""The compact paths of functions of one operand that have parameters: sums, reshapes, extrema.

They are to these what `operators` is to arithmetic: the type tests, the evaluation, one node. Whatever is no ndarray
under a plain Tensor or one of a live tape goes the general way of `apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.dispatch import apply, dispatch
from wengert.core.primitive import Primitive
from wengert.core.source import caller
from wengert.core.tensor import Tensor
from wengert.core.views import ALIAS, Step, View, is_window, resolved
from wengert.traces.modes import SPECIAL
from wengert.traces.tape import NUMBERS, Single

__all__ = ["single_function"]

Params = dict[str, Any]
ndarray = np.ndarray


def single_function(primitive: Primitive) -> Callable[[Tensor, Params], Any]:
    """Return a function of a Tensor and the parameters of a primitive of one operand."""
    return single_view(primitive) if primitive.view else single_result(primitive)


def single_result(primitive: Primitive) -> Callable[[Tensor, Params], Any]:
    """Return the function for a primitive whose results have memory of their own."""
    evaluate = primitive.evaluate
    constant = primitive.kind == "constant"
    keeps_out, keeps = (False, bool) if constant else primitive.saved((True,))
    keeps_x = keeps(0)

    def operate(a: Tensor, params: Params) -> Any:
        trace = a._trace
        x = a._value
        if type(x) is not ndarray or (trace is not None and (SPECIAL or not trace.fast)):
            return resolved(operate, a, params) if trace is ALIAS else apply(primitive, a, **params)
        out = evaluate(x, **params)
        result = Tensor()
        result._value = out
        if trace is None or constant or out.dtype.kind not in "fc":
            result._trace = result._node = None
            result._kept = False
            return result
        node = Single()
        node.number = next(NUMBERS)
        node.primitive = primitive
        node.shape = out.shape
        node.dtype = out.dtype
        node.hooks = None
        node.parent = a._node
        node.keywords = params
        node.code, node.offset = caller(3)
        if keeps_x:
            node.x = x
            a._kept = True
        else:
            node.x = None
        node.out = out if keeps_out else None
        result._trace = trace
        result._node = node
        result._kept = keeps_out
        return result

    return operate


def single_view(primitive: Primitive) -> Callable[[Tensor, Params], Any]:
    """Return the function for a linear primitive whose results are windows on the operand's memory, or copies."""
    evaluate = primitive.evaluate

    def operate(a: Tensor, params: Params) -> Any:
        base = source = a
        path: tuple[Step, ...] = ()
        if a._trace is ALIAS:
            view = a._value
            base, path, source = view.base, view.path, view.current()
        trace = source._trace
        x = source._value
        if type(x) is not ndarray or (trace is not None and (SPECIAL or not trace.fast)):
            return apply(primitive, a, **params)
        out = evaluate(x, **params)
        result = Tensor()
        result._value = out
        result._kept = False
        if trace is None or out.dtype.kind not in "fc":
            result._trace = result._node = None
        else:
            node = Single()
            node.number = next(NUMBERS)
            node.primitive = primitive
            node.shape = out.shape
            node.dtype = out.dtype
            node.hooks = None
            node.parent = source._node
            node.keywords = params
            node.x = node.out = None
            node.code, node.offset = caller(3)
            result._trace = trace
            result._node = node
        if not is_window(out, x):
            return result
        handle = Tensor()
        handle._value = View(dispatch, base, (*path, (primitive, tuple(params.items()))), result)
        handle._trace = ALIAS
        handle._node = None
        handle._kept = False
        return handle

    return operate
