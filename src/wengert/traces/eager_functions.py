"""The compact paths of functions that have parameters, of one operand (sums, reshapes) and of several (joining).

They are to these what `eager_operators` is to arithmetic: the type tests, the evaluation, one node. Whatever is no
ndarray (or scalar) under a plain Tensor or one of a live tape goes the general way of `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import caller
from wengert.core.memory.buffers import lend, lent
from wengert.core.memory.views import (
    ALIAS,
    Derivation,
    Path,
    extend_path,
    is_window,
    path_of,
    window_on,
    with_views_resolved,
    would_share_memory,
)
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.core.values.interop import undispatched
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, constant_tensor, plain_tensor, unwrapped, wrapped_constant
from wengert.support.deferred_warnings import require_warning, unregister
from wengert.traces.batch import Batch, make_batched
from wengert.traces.nodes import NOTHING, GeneralResiduals, Node, new_node, new_result, record_result

unregister(globals())  # what would warn goes by `apply`, and warns there
Operator = Callable[[Any, Any], Any]
Params = dict[str, Any]
ndarray, generic, float64 = np.ndarray, np.generic, np.float64
ONE, BOTH = (True,), (True, True)
NO_PARAMS: Params = {}
REAL = "fiub"
"""The kinds of dtypes of the ndarrays that the compact paths take as they are."""


def eager_single(primitive: Primitive) -> Callable[[Any, Params], Tensor]:
    """Return a function of the operand and the parameters of a primitive; views are of Tensors alone."""
    return single_view(primitive) if primitive.view else single_result(primitive)


def single_result(primitive: Primitive) -> Callable[[Tensor, Params], Any]:
    """Return the function for a primitive whose results have memory of their own."""
    evaluate = undispatched(primitive.strict)
    constant = primitive.kind == "constant"
    keeps_out, keeps = (False, bool) if constant else primitive.saved((True,))
    keeps_x = keeps(0)

    def operate(a: Any, params: Params) -> Any:
        if type(a) is not Tensor:
            return apply(primitive, a, **params)
        trace = a._trace
        x = a._value
        kind = type(x)
        if (trace is not None and (SPECIAL or not trace.fast)) or WATCHES:
            if type(trace) is Batch and (lanes := trace.of_arrays(primitive, (x,), ONE, params)) is not None:
                return make_batched(lanes, trace)
            if trace is not None and (found := trace.of_array(primitive, a, params)) is not None:
                return found
            return with_views_resolved(operate, a, params) if trace is ALIAS else apply(primitive, a, **params)
        if kind is ndarray or kind is float64:
            try:
                out = evaluate(x, **params)
            except TypeError as error:
                require_warning(error)
                return apply(primitive, a, **params)
            if type(out) is not ndarray and not isinstance(out, generic):  # an object, which is refused there
                return apply(primitive, a, **params)
        elif kind is Tensor and not constant:
            out = unwrapped(operate(x, params))
        else:
            return apply(primitive, a, **params)
        if kind is Tensor and out.dtype.kind not in "fc":
            return wrapped_constant(out)
        if trace is None or constant or out.dtype.kind not in "fc":
            return plain_tensor(out)
        if keeps_x:
            a._kept = True
        return record_result(
            out, trace, primitive, (a._node,), params, (x,) if keeps_x else NOTHING[1], keeps_out, caller(3)
        )

    return operate


def eager_results(primitive: Primitive, together: Callable[..., Any]) -> Callable[[Any, Params], Any]:
    """Return a function of the operand and the parameters of a primitive with several results.

    Args:
        primitive: the operation, whose results have memory of their own.
        together: what makes one of the results, NumPy's named tuple for example.
    """
    evaluate = primitive.strict
    keeps_out, keeps = primitive.saved(ONE)
    keeps_x = keeps(0)

    def operate(a: Any, params: Params) -> Any:
        x = a._value if type(a) is Tensor else None
        if type(x) is not ndarray or (trace := a._trace) is None or not trace.fast or SPECIAL or WATCHES:
            return together(*apply(primitive, a, **params))
        try:
            outs = evaluate(x, **params)
        except TypeError as error:
            require_warning(error)
            return together(*apply(primitive, a, **params))
        if keeps_x:
            a._kept = True
        node = new_node(primitive, (a._node,), params, (x,) if keeps_x else NOTHING[1], caller(3))
        node.out = outs if keeps_out else None
        return together(
            *[
                new_result(node, i, out, trace, keeps_out) if out.dtype.kind in "fc" else wrapped_constant(out)
                for i, out in enumerate(outs)
            ]
        )

    return operate


def single_view(primitive: Primitive) -> Callable[[Tensor, Params], Any]:
    """Return the function for a linear primitive whose results are windows on the operand's memory, or copies."""
    evaluate = primitive.evaluate

    def operate(a: Tensor, params: Params) -> Any:
        base = source = a
        path: Path | Derivation = ()
        trace = a._trace
        if trace is ALIAS:
            view = a._value
            source = view.current()
            trace = source._trace
            base, path = view.base, view.start
        x = source._value
        kind = type(x)
        if (trace is not None and (SPECIAL or not trace.fast)) or WATCHES:
            if type(trace) is Batch and len(source._node) == 2:  # nothing decides how they lie in memory
                lanes = trace.of_arrays(primitive, (x,), ONE, params)
                if lanes is not None:
                    if x.ndim == 1:  # lanes are scalars, which have no memory that a view could share
                        return make_batched(lanes.copy(), trace)
                    result = make_batched(lanes, trace)
                    if is_window(lanes, x):
                        return window_on(base, path, primitive, params, result)
                    return result
            elif trace is not None and (found := trace.of_array(primitive, source, params)) is not None:
                return window_on(base, path, primitive, params, found) if is_window(found._value, x) else found
            return apply(primitive, a, **params)
        if kind is not ndarray and kind is not float64:
            return apply(primitive, a, **params)
        out = evaluate(x, **params)
        if trace is None and kind is ndarray:
            if out.base is x or is_window(out, x):
                return window_on(base, path, primitive, params, out)
            return constant_tensor(out)
        if trace is None or out.dtype.kind not in "fc":
            result = plain_tensor(out)
        else:
            result = record_result(out, trace, primitive, (source._node,), params, NOTHING[1], False, caller(3))
        if kind is ndarray:
            if out.base is not x and not is_window(out, x):
                return result
        elif source is a and not hasattr(source, "_array"):  # a number; a view without axes is an array
            return result
        if kind is not ndarray and (path or type(out) is not ndarray):
            steps = extend_path(base.shape, path_of(path), primitive, params)
            if not would_share_memory(base, steps):  # `flip`, which gives a scalar there
                return result
        return window_on(base, path, primitive, params, result)

    return operate


def recorded_view(a: Tensor, primitive: Primitive, params: Params, out: Any) -> Tensor:
    """Record what NumPy has given for a view primitive of the ndarray under a Tensor of a live tape, in a short way.

    It is a view if it is a window on that ndarray, or else a copy.
    """
    result = record_result(out, a._trace, primitive, (a._node,), params, NOTHING[1], False, caller(3))
    x = a._value
    return window_on(a, (), primitive, params, result) if out.base is x or is_window(out, x) else result


def eager_several(
    primitive: Primitive, compute: Callable[..., Any] | None = None
) -> Callable[[Sequence[Any], Params], Any]:
    """Return a function of the operands and parameters of a primitive with one result in memory of its own.

    Args:
        primitive: the operation.
        compute: its evaluation, if there is one whose errors say less: they are raised on the general way.
    """
    evaluate = strict(undispatched(compute or primitive.evaluate))
    takes_numbers = not primitive.firm
    savings = primitive.savings
    residuals = GeneralResiduals if primitive.kind == "elementwise" else tuple

    def operate(operands: Sequence[Any], params: Params) -> Any:
        trace = None
        plain = True
        nested = False
        values: list[Any] = []
        nodes: list[Node | None] = []
        for x in operands:
            kind = type(x)
            node = None
            if kind is Tensor:
                plain = False
                own = x._trace
                if own is not None:
                    if own is not trace:
                        if own is ALIAS:
                            return with_views_resolved(lambda *xs: operate(xs, params), *operands)
                        if type(own) is Batch:
                            return several_lanes(primitive, own, operands, params)
                        if not own.fast or trace is not None:
                            return apply(primitive, *operands, **params)
                        trace = own
                    node = x._node
                x = x._value
                kind = type(x)
            if kind is not ndarray and kind is not float64 and not (takes_numbers and kind is float):
                if kind is not Tensor:
                    return apply(primitive, *operands, **params)
                nested = True
            values.append(x)
            nodes.append(node)
        if plain or (SPECIAL and trace is not None) or WATCHES:
            return apply(primitive, *operands, **params)
        try:
            if nested:
                out = unwrapped(operate(values, params))
            else:
                out = evaluate(*values, **params) if params else evaluate(*values)
        except ValueError:  # which says more there
            return apply(primitive, *operands, **params)
        except TypeError as error:
            require_warning(error)
            return apply(primitive, *operands, **params)
        if nested and out.dtype.kind not in "fc":
            return wrapped_constant(out)
        if trace is None or out.dtype.kind not in "fc":
            return plain_tensor(out)
        wanted = BOTH if len(nodes) == 2 and None not in nodes else tuple([node is not None for node in nodes])
        keeps_out, positions = savings.get(wanted) or primitive.saving(wanted)
        saved = residuals(relied_on(operands, positions))
        return record_result(out, trace, primitive, tuple(nodes), params, saved, keeps_out, caller(3))

    return operate


def eager_pair(primitive: Primitive, compute: Callable[[Any, Any], Any], general: Operator) -> Operator:
    """Return a function of two operands that computes at once where they are arrays that nobody or a live tape records.

    Args:
        primitive: the operation, which has no parameters.
        compute: NumPy's function, with a result in memory of its own.
        general: the function for all other operands.
    """
    compute = undispatched(compute)

    def operate(a: Any, b: Any) -> Any:
        trace = left = right = None
        x, y = a, b
        if type(a) is Tensor:
            x, trace, left = a._value, a._trace, a._node
        elif type(a) is not ndarray or a.dtype.kind not in REAL:
            return general(a, b)
        if type(b) is Tensor:
            y, right = b._value, b._node
            if (other := b._trace) is not trace:
                if trace is not None and other is not None:
                    return general(a, b)
                if trace is None:
                    trace, left = other, None
                else:
                    right = None
        elif type(b) is not ndarray or b.dtype.kind not in REAL:
            return general(a, b)
        if type(x) is not ndarray or type(y) is not ndarray or WATCHES or (x is a and y is b):
            return general(a, b)
        if trace is not None and (SPECIAL or not trace.fast):
            return general(a, b)
        try:
            out = compute(x, y)
        except (TypeError, ValueError):  # which says more there; or warns
            return general(a, b)
        if trace is None or out.dtype.kind not in "fc":
            return plain_tensor(out)
        wanted = (left is not None, right is not None)
        keeps_out, positions = primitive.savings.get(wanted) or primitive.saving(wanted)
        saved = relied(a, x) if 0 in positions else None, relied(b, y) if 1 in positions else None
        return record_result(out, trace, primitive, (left, right), NO_PARAMS, saved, keeps_out, caller(2))

    return operate


def relied_on(operands: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    """Return the residuals of operands: the values of those at some positions, of numbers, too."""
    residuals: list[Any] = [None] * len(operands)
    for i in positions:
        x = operands[i]
        kind = type(x)
        residuals[i] = relied(x, x._value) if kind is Tensor else lent(x) if kind is ndarray else x
    return residuals


def relied(operand: Any, value: Any) -> Any:
    """Return the array of an operand for somebody who relies on it from now on."""
    if type(operand) is not Tensor:
        return lent(value)
    return value if operand._kept is True else lend(operand)


def several_lanes(primitive: Primitive, trace: Batch, operands: Sequence[Any], params: Params) -> Any:
    """Return what a primitive gives where some operand has lanes."""
    if primitive.kind == "elementwise":
        return apply(primitive, *operands, **params)
    batched = [type(x) is Tensor and x._trace is trace for x in operands]
    values = [x._value if type(x) is Tensor and x._trace in (trace, None) else x for x in operands]
    lanes = None if WATCHES else trace.of_arrays(primitive, values, batched, params)
    return apply(primitive, *operands, **params) if lanes is None else make_batched(lanes, trace)
