"""The door of eager operations: compute, record, or hand on to the trace that decides.

Operators, ufuncs, reductions, methods, joins and views all enter by a function that `eager` makes of their primitive.
It computes what plain Tensors and those of a live tape hold, and makes one node of that on the tape. Everything else
(other traces, `no_grad` and the like, operands that are no arrays) is decided by the trace with the highest level,
which may offer a quick way, or by the general meaning of the operation.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import RECENT, caller
from wengert.core.memory.buffers import BORROWED, MUCH, lend, lent
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
from wengert.core.values.aval import NUMBERS, strong
from wengert.core.values.dispatch import apply, innermost
from wengert.core.values.interop import without_dispatch
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import (
    WATCHES,
    Tensor,
    constant_tensor,
    new_tensor,
    plain_tensor,
    unwrap_plain,
    wrapped_constant,
)
from wengert.native.threads.elementwise import LARGE
from wengert.support.deferred_warnings import require_warning, unregister
from wengert.traces.nodes import (
    CREATED,
    NOTHING,
    GeneralResiduals,
    LargeResiduals,
    Node,
    form_of_result,
    no_residuals,
    record_result,
    record_results,
    residuals_of,
)

unregister(globals())  # what would warn goes the general way, and warns there
Function = Callable[..., Any]
Params = dict[str, Any]
ndarray, generic, float64 = np.ndarray, np.generic, np.float64
_getframe, array = sys._getframe, np.array
DOUBLE = np.dtype(float64)
BOTH = (True, True)
NO_RESIDUAL, NO_RESIDUALS = NOTHING[1:3]
NO_PARAMS: Params = {}
RESULTS = (Tensor, generic)
REAL = "fiub"
"""The kinds of dtypes of the ndarrays that are operands as they are."""
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
"""Operations that are given arrays instead of Python numbers, with which NumPy takes twice as long."""
OF_COMPARISONS = frozenset({ndarray, np.bool_})
"""Types of what comparisons give, which plain Tensors hold as it is."""
SEVERAL = 0
"""The arity of operations on a sequence of operands."""


def eager(
    primitive: Primitive,
    arity: int = 1,
    compute: Function | None = None,
    otherwise: Function | None = None,
    *,
    reflected: bool = False,
) -> Callable[..., Tensor]:
    """Return the function by which an operation is done.

    Args:
        primitive: the operation.
        arity: 1 for a function of a Tensor and parameters, 2 for one of a Tensor and anything beside it, `SEVERAL` for
            one of a sequence of operands and parameters.
        compute: its evaluation, if that of the primitive is not the shortest, or its errors say less.
        otherwise: what it means of operands that are not known here, and where NumPy raises; by default the primitive
            is applied. Of two operands it is given this function first, and an error behind them, if there was one.
        reflected: whether the Tensor is the second of two operands.
    """
    if primitive.view:
        return of_view(primitive, otherwise)
    if arity == 2:
        return of_two(primitive, compute, otherwise, reflected)
    return of_many(primitive, compute) if arity == SEVERAL else of_one(primitive, compute, otherwise)


def of_one(primitive: Primitive, compute: Function | None, otherwise: Function | None) -> Function:
    """Return the function of a Tensor, and of parameters, if there are any.

    What only some calls need is in a tuple or in a function of its own: each name of here costs every call.
    """
    evaluate, compute_large = evaluations(primitive, compute)
    elementwise, constant = primitive.kind == "elementwise", primitive.kind == "constant"
    takes_numbers = elementwise and isinstance(compute, np.ufunc)
    keeps_out, positions = (False, ()) if constant else primitive.saving((True,))
    general = otherwise or partial(apply_with, primitive)
    depth = 2 if elementwise and not takes_numbers else 3
    taped = bool(positions), keeps_out, None if elementwise else "" if constant else "fc"
    gives_arrays = elementwise or isinstance(compute, np.ufunc)
    refused = (frozenset() if takes_numbers else frozenset(NUMBERS)) | ({Tensor} if constant else set())
    elsewhere = beyond_arrays(primitive, general)

    def operate(a: Any, params: Params | None = None) -> Any:
        try:
            trace = a._trace
            x = a._value
        except AttributeError:  # no Tensor, for which nobody asks: it would take a twentieth of the time
            return general(a, params or NO_PARAMS)
        if WATCHES or (trace is not None and (SPECIAL or not trace.fast)):
            return elsewhere(operate, a, params)
        try:
            if type(x) is not ndarray:
                if type(x) in refused:
                    return elsewhere(operate, a, params)
                if type(x) is Tensor:
                    out = unwrap_plain(operate(x, params))
                else:
                    x = strong(x)
                    out = evaluate(x, **params or NO_PARAMS)
            elif params:
                out = evaluate(x, **params)
            elif compute_large is None or x.size < LARGE:
                out = evaluate(x)
            elif elementwise:
                return of_large(primitive, compute_large, (a,), trace, depth + 1)
            else:
                out = compute_large(x)
        except TypeError as error:
            require_warning(error)
            return elsewhere(operate, a, params)
        if trace is None and (gives_arrays or type(out) is ndarray or isinstance(out, generic)):
            result = new_tensor()
            result._value = out
            result._trace = result._node = None
            result._kept = False
            return result
        keeps_x, keeps_out, differentiable = taped
        saved = (x,) if keeps_x else NO_RESIDUAL
        if differentiable is not None:
            if type(out) is not ndarray and not isinstance(out, RESULTS):
                if type(out) is tuple and trace is not None:
                    return record_results(primitive, a, params or NO_PARAMS, out, saved, keeps_out)
                return elsewhere(operate, a, params)  # an object, which is refused there
            if out.dtype.kind not in differentiable:
                return wrapped_constant(out)
        if keeps_x:
            a._kept = True
        return record_result(out, trace, primitive, (a._node,), params or NO_PARAMS, saved, keeps_out, depth)

    return operate


def evaluations(primitive: Primitive, compute: Function | None) -> tuple[Function, Function | None]:
    """Return what computes a result, and what several threads do, if they compute it otherwise.

    If not, nobody asks for the size, which is a twentieth of the time.
    """
    evaluate = without_dispatch(compute or primitive.strict)
    shared = strict(primitive.evaluate_large or evaluate)
    return evaluate, None if shared is evaluate else shared


def beyond_arrays(primitive: Primitive, general: Function) -> Callable[[Function, Tensor, Params | None], Any]:
    """Return what an operation of one Tensor means where it is not of an array that is plain or on a live tape."""
    quick = primitive.kind in ("elementwise", "constant")

    def elsewhere(operate: Function, a: Tensor, params: Params | None) -> Any:
        trace = a._trace
        if trace is None or (trace.fast and not SPECIAL):
            return general(a, params or NO_PARAMS)
        if quick and not params and type(a._value) is ndarray and a._value.dtype is DOUBLE:
            return trace.process(primitive, (a,), NO_PARAMS)
        if trace is ALIAS:
            return with_views_resolved(operate, a, params)
        found = None if WATCHES else trace.offer(primitive, (a,), params or NO_PARAMS)
        return general(a, params or NO_PARAMS) if found is None else found

    return elsewhere


def of_large(primitive: Primitive, compute: Function, operands: Sequence[Any], trace: Any, depth: int) -> Tensor:
    """Return what several threads compute element by element, of numbers and arrays of which one is large.

    On a live tape residuals tell the sweep that they are large; `depth` is that of `record_result`.
    """
    out = compute(*[x._value if type(x) is Tensor else x for x in operands])
    if trace is None or primitive.kind == "constant":
        return plain_tensor(out) if type(out) in OF_COMPARISONS else wrapped_constant(out)
    nodes = tuple([None if type(x) is not Tensor or x._trace is None else x._node for x in operands])
    keeps_out, positions = primitive.saving(tuple([node is not None for node in nodes]))
    saved = LargeResiduals(residuals_of(operands, positions, trace))
    return record_result(out, trace, primitive, nodes, NO_PARAMS, saved, keeps_out, depth)


def apply_with(primitive: Primitive, a: Any, params: Params) -> Any:
    """Apply a primitive of one operand in the general way."""
    return apply(primitive, a, **params)


def of_view(primitive: Primitive, otherwise: Function | None) -> Function:
    """Return the function for a linear primitive whose result is a window on the operand's memory, or a copy.

    Behind the parameters it takes what NumPy gives for the ndarray that the Tensor stands for, where that is known.
    """
    evaluate = primitive.evaluate

    def operate(a: Any, params: Params, out: Any = None) -> Any:
        base = source = a
        earlier: Path | Derivation = ()
        trace = a._trace
        if trace is ALIAS:
            view = a._value
            source = view.current()
            trace = source._trace
            base, earlier = view.base, view.start
        x = source._value
        if WATCHES or (trace is not None and (SPECIAL or not trace.fast)):
            if trace is not None and not WATCHES and (found := trace.offer(primitive, (source,), params)) is not None:
                memory = found._value.base
                if memory is x or (memory is not None and is_window(found._value, x)):
                    return window_on(base, earlier, primitive, params, found)
                return found
        elif type(x) is ndarray:
            if out is None:
                out = evaluate(x, **params)
            if trace is None:
                found = out
            else:
                found = record_result(out, trace, primitive, (source._node,), params, NO_RESIDUAL, False, 3)
            if out.base is x or is_window(out, x):
                return window_on(base, earlier, primitive, params, found)
            return constant_tensor(found)
        elif type(x) is float64 and otherwise is None:
            return view_of_scalar(a, primitive, params, evaluate(x, **params), source)
        return apply(primitive, a, **params) if otherwise is None else otherwise(a, params)

    return operate


def view_of_scalar(a: Tensor, primitive: Primitive, params: Params, out: Any, source: Tensor) -> Any:
    """Return what NumPy has given for a view primitive of a number, or an array without axes that is held as one."""
    trace = source._trace
    result = (
        plain_tensor(out)
        if trace is None
        else record_result(out, trace, primitive, (source._node,), params, NO_RESIDUAL, False, 3)
    )
    if source is a and not hasattr(source, "_array"):  # a number; a view without axes is an array
        return result
    base, earlier = (a, ()) if source is a else (a._value.base, a._value.start)
    if earlier or type(out) is not ndarray:
        steps = extend_path(base.shape, path_of(earlier), primitive, params)
        if not would_share_memory(base, steps):  # `flip`, which gives a scalar there
            return result
    return window_on(base, earlier, primitive, params, result)


def of_many(primitive: Primitive, compute: Function | None) -> Function:
    """Return the function of the operands and parameters of a primitive with one result in memory of its own."""
    evaluate = strict(without_dispatch(compute or primitive.evaluate))
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
                        if not own.fast or trace is not None:
                            return by_trace(primitive, operate, operands, params)
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
                out = unwrap_plain(operate(values, params))
            else:
                out = evaluate(*values, **params) if params else evaluate(*values)
        except ValueError:  # of which more is said there
            return apply(primitive, *operands, **params)
        except TypeError as error:
            require_warning(error)
            return apply(primitive, *operands, **params)
        if trace is None or out.dtype.kind not in "fc":
            return wrapped_constant(out) if nested else plain_tensor(out)
        wanted = BOTH if len(nodes) == 2 and None not in nodes else tuple([node is not None for node in nodes])
        keeps_out, positions = savings.get(wanted) or primitive.saving(wanted)
        saved = residuals(residuals_of(operands, positions, trace)) if positions else no_residuals(nodes)
        return record_result(out, trace, primitive, tuple(nodes), params, saved, keeps_out, 3)

    return operate


def by_trace(primitive: Primitive, operate: Function, operands: Sequence[Any], params: Params) -> Any:
    """Return what several operands give where a trace decides that is no live tape."""
    trace, _ = innermost(operands)
    if trace is ALIAS:
        return with_views_resolved(lambda *xs: operate(xs, params), *operands)
    if trace is not None and not WATCHES and primitive.kind != "elementwise":
        found = trace.offer(primitive, operands, params)
        if found is not None:
            return found
    return apply(primitive, *operands, **params)


def of_two(primitive: Primitive, compute: Function | None, otherwise: Function | None, reflected: bool) -> Function:
    """Return `a (op) b` for a Tensor `a` and anything `b`; reflected, `b (op) a` for a `b` that is no Tensor.

    What it shares with `of_one` is written out: Tensor by Tensor is what programs do most.
    """
    compute = without_dispatch(compute or primitive.evaluate)
    assert otherwise is not None
    converts = compute in ARITHMETIC
    elementwise, constant = primitive.kind == "elementwise", primitive.kind == "constant"
    arrays_alone = not elementwise and not constant
    compute_large = strict(primitive.evaluate_large or compute)
    divided = None if arrays_alone else ndarray  # among threads, where there is enough of it
    left_out, left = (False, ()) if constant or reflected else primitive.saving((True, False))
    right_out, right = (False, ()) if constant else primitive.saving((False, True))
    for_left, for_right = ((0 in kept, 1 in kept) for kept in (left, right))
    for_a, for_b = (for_right[::-1], for_left) if reflected else (for_left, for_right)
    for_both = for_a[0] or for_b[0], for_a[1] or for_b[1]
    taped = constant, for_a, for_b, for_both, left_out or right_out

    def operate(a: Any, b: Any) -> Any:
        trace = a._trace
        kind = type(b)
        if kind is Tensor:
            other, right = b._value, b._node
            if (beside := b._trace) is not trace:
                if trace is None:
                    trace = beside
                elif beside is None:
                    right = None
                else:
                    return general(a, b)
        elif (
            kind is float
            or kind is int
            or (kind is ndarray and (b.dtype is DOUBLE or (b.ndim and b.dtype.kind in REAL)))
        ):
            other = b
            right = None
        else:
            return general(a, b)
        own = a._value
        if WATCHES or (trace is not None and (SPECIAL or not trace.fast)):
            if (
                trace is not None
                and type(own) is ndarray
                and own.dtype is DOUBLE
                and (kind is not Tensor or (type(other) is ndarray and other.dtype is DOUBLE))
                and not arrays_alone
            ):
                return trace.process(primitive, (b, a) if reflected else (a, b), {})
            return general(a, b)
        if arrays_alone and (type(own) is not ndarray or type(other) is not ndarray):
            return general(a, b)
        try:
            if type(own) is divided:
                if own.size >= LARGE:
                    if type(other) is not Tensor and not (reflected and kind is ndarray and b.shape != own.shape):
                        return of_large(primitive, compute_large, (b, a) if reflected else (a, b), trace, 3)
                elif (
                    trace is not None
                    and right is None
                    and converts
                    and (kind is float or kind is int)
                    and own.dtype is DOUBLE
                ):
                    other = array(other, DOUBLE)
            out = compute(other, own) if reflected else compute(own, other)
        except (ArithmeticError, TypeError, ValueError) as error:
            return general(a, b, error)
        result = new_tensor()
        result._value = out
        if trace is None:
            result._trace = result._node = None
            result._kept = False
            return result
        constant, for_a, for_b, for_both, any_out = taped
        if constant:
            return plain_tensor(out) if type(out) in OF_COMPARISONS else wrapped_constant(out)
        node = result._node = Node()
        if type(out) is ndarray:
            node.shape, node.dtype = out.shape, out.dtype
        elif type(out) is complex:
            return general(a, b)
        else:
            node.shape, node.dtype = form_of_result(out)
        if right is None:
            left, (keeps_own, keeps_other) = a._node, for_a
        elif a._trace is None:
            left, (keeps_own, keeps_other) = None, for_b
        else:
            left, (keeps_own, keeps_other) = a._node, for_both
        if keeps_own or keeps_other:
            if not keeps_own:
                own = None
            else:
                if a._kept is BORROWED:
                    own = lend(a)
                a._kept = True
            if not keeps_other:
                other = None
            elif kind is Tensor:
                if b._kept is BORROWED:
                    other = lend(b)
                b._kept = True
            elif kind is ndarray:  # whose owner may write to it
                order: Literal["C", "K"] = "K" if arrays_alone else "C"
                other = b.copy(order) if b.nbytes < MUCH and b.flags.writeable else lent(b, trace, order)
            node.saved = (other, own) if reflected else (own, other)
        else:
            node.saved = NO_RESIDUALS
        node.number = next(CREATED)
        node.primitive = primitive
        node.inputs = (right, left) if reflected else (left, right)
        node.given = NO_PARAMS
        node.hooks = None
        code = (frame := _getframe(1)).f_code
        if code is RECENT[0]:
            node.code, node.offset = code, frame.f_lasti
        else:
            node.code, node.offset = caller(2)
        node.out = out if any_out else None
        result._trace, result._kept = trace, any_out
        return result

    general = partial(otherwise, operate)
    return operate
