"""Dual traces: forward mode. Each value carries its tangent, and every primitive its derivative along it.

The node of a Tensor holds its tangent: a value one level below, of the same shape and dtype. Where the tangent is a
structural zero, the value is a constant to the trace. What follows from a primitive's kind is all here; a missing jvp
of an opaque one comes from its vjp, which is linear in the cotangent, so transposing it gives the Jacobian itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType
from typing import Any

import numpy as np
from numpy import complexfloating, ndarray

from wengert.core.diagnostics.numpy_warnings import silence
from wengert.core.diagnostics.source_positions import caller
from wengert.core.memory.buffers import copy_alike, lend
from wengert.core.memory.views import current
from wengert.core.primitives.cotangent import has_finite_square, linear_image, match_dtype
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import Rule
from wengert.core.primitives.structured import Passed, Structured
from wengert.core.values.aval import NUMBERS, aval_of, is_differentiable, strong, zero_of
from wengert.core.values.dispatch import apply, at_once, weaken
from wengert.core.values.evaluation import evaluate_primitive
from wengert.core.values.recording import SPECIAL, next_level
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor, unwrap_plain, wrapped_constant, wrapped_constants
from wengert.native.threads.elementwise import LARGE
from wengert.support.deferred_warnings import require_warning, unregister
from wengert.traces.grad_modes import is_stopped
from wengert.traces.monomials import (
    LONGEST_CHAIN,
    ChainStep,
    MonomialFactor,
    is_finite_slope,
    may_continue,
    monomial_of,
    origin_of,
    slope,
    square_of,
    view_of,
)
from wengert.traces.rules.linearity import require_linear
from wengert.traces.steepness import is_all_finite, joins_infinity, may_be_infinite, may_be_steep
from wengert.traces.sweep import sweep
from wengert.traces.tape import Tape, make_leaf
from wengert.traces.transient import Transient

unregister(globals())  # what would warn goes the general way, and warns there
Place = tuple[CodeType | None, int]
DOUBLE, ZERO = np.dtype(float), np.float64(0.0)


class Moving:
    """Hold the tangent of a value, and where in the user's program it was made.

    Attributes:
        tangent: the tangent.
        origin: what made a value that may be part of a monomial (`wengert.traces.monomials`): the operation, with its
            operands' values and nodes. Handles may be written to: what they stand for now stays.
        code, offset: the place.
    """

    __slots__ = ("code", "offset", "origin", "tangent")

    def __init__(self, tangent: Any, place: Place) -> None:
        self.tangent = tangent
        self.origin: ChainStep | None = None
        self.code, self.offset = place


def make_dual(value: Any, tangent: Any, trace: Dual, place: Place) -> Tensor:
    """Return a Tensor of a dual trace from values one level below; neither's buffer is the Tensor's to overwrite."""
    tensor = make_tensor(value, trace, Moving(tangent, place))
    tensor._kept = True
    return tensor


class Dual(Transient):
    """Propagate tangents.

    It is `steep` once a partial may have been infinite: every rule is guarded from then on, so that a partial of 0
    gives 0 for an infinite tangent, as in a sweep. It is `masked` once constants that may be infinite were put beside
    what moves, with tangents of 0, to which no infinite partial may give anything else.
    """

    __slots__ = ("masked", "place", "steep")

    def __init__(self, level: int, label: str | Callable[[], str]) -> None:
        super().__init__(level, label)
        self.place = caller()
        self.masked = self.steep = False

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return where the tangent was made; for those that a sweep made, where the transformation was asked for."""
        node = tensor._node
        return self.place if node.code is None else (node.code, node.offset)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        return "tangent=..."

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value and tangent in buffers of their own."""
        return make_tensor(copy_alike(tensor._value), self, Moving(copy_alike(tensor._node.tangent), caller(1, False)))

    def tangent_below(self, operand: Any) -> Any:
        """Return the tangent of an operand; None if it is a constant to this trace."""
        return operand._node.tangent if type(operand) is Tensor and operand._trace is self else None

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Evaluate one level below, and propagate the tangents there."""
        if self.ended:
            self.require_alive(operands)
        if SPECIAL and is_stopped(self):
            return wrapped_constants(apply(primitive, *map(self.value_below, operands), **params))
        values, tangents, numbers, rooted = [], [], False, False
        relied_upon = not primitive.view  # results may share memory with tangents, so a later write must copy
        for x in operands:
            tangent = None
            if type(x) is Tensor:
                trace = x._trace
                if trace is self:
                    node = x._node
                    tangent = node.tangent
                    rooted = rooted or node.origin is not None
                    x._kept = x._kept or relied_upon
                    x = x._value
                elif trace is None:
                    x = x._value
            if type(x) in NUMBERS:
                numbers = True
            values.append(x)
            tangents.append(tangent)
        pointwise = isinstance(primitive, Elementwise)
        if primitive.joins and not pointwise and not self.masked:
            self.masked = joins_infinity(values, tangents)
        if not pointwise and isinstance(primitive, Structured):
            found, moved, passed = primitive.tangent(values, tangents, params, Passed(self.masked, self.steep))
            self.steep = self.steep or (passed.steep and any(t is not None and may_be_infinite(t) for t in moved))
            self.masked = self.masked or (passed.masked and any(map(may_be_infinite, found)))
            return tuple(self.pair_tangent(unwrap_plain(o), t) for o, t in zip(found, moved, strict=True))
        if numbers and primitive.firm:
            values, tangents = list(map(strong, values)), list(map(strong, tangents))
        same = len(operands) == 2 and operands[0] is operands[1]
        ends = rooted and (same or not pointwise or primitive.sweeps_as == "power") and may_continue(primitive)
        if (ends or (primitive.square and not pointwise)) and primitive.outputs == 1:
            return self.compute_root(primitive, operands, values, tangents, params)
        if isinstance(primitive, Elementwise):
            result = self.elementwise(primitive, values, tangents, params)
            if (primitive.originates or (rooted and primitive.scales)) and result._trace is self:
                alone = len(operands) == 1 or (primitive.raises and tangents[1] is None)
                if same or alone or primitive.square or rooted:
                    step = self.step(primitive, operands, values, result._value, params)
                    if step.depth <= LONGEST_CHAIN:
                        result._node.origin = step
            return result
        out = apply(primitive, *values, **params)
        if primitive.kind == "constant":
            return wrapped_constants(out)
        with silence():
            if primitive.outputs == 1:
                out = unwrap_plain(out)
                return self.pair_tangent(out, propagate(self.guard_primitive(primitive), tangents, out, values, params))
            outs = tuple(map(unwrap_plain, out))
            moved = propagate(self.guard_primitive(primitive), tangents, outs, values, params)
        return tuple(self.pair_tangent(o, t) for o, t in zip(outs, moved, strict=True))

    def offer(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Tensor | None:
        """Return what a linear primitive of one operand gives for a Tensor of this trace; None if `process` has to.

        The tangent goes the same way as the value: an ndarray of the same shape, as most are, or lanes of such.
        """
        operand = operands[0]
        if len(operands) > 1:
            return None
        value, tangent = operand._value, operand._node.tangent
        if type(value) is not ndarray or type(primitive) is not Linear:
            return None
        lanes = None
        if type(tangent) is not ndarray:
            lanes = tangent._trace if type(tangent) is Tensor and tangent.shape == value.shape else None
            if lanes is None or WATCHES:
                return None
        if type(self) is not Dual or self.ended or SPECIAL:  # a listing looks at each operation
            return None
        if primitive.jvp is not None or primitive.outputs != 1 or value.size >= LARGE:
            return None
        if operand._node.origin is not None and primitive.scales:
            return None
        try:
            out = primitive.strict(value, **params)
        except TypeError as error:
            require_warning(error)  # which `process` warns of
            return None
        with silence():
            moved = (
                primitive.evaluate(tangent, **params) if lanes is None else lanes.offer(primitive, (tangent,), params)
            )
        if moved is None:
            return None
        operand._kept = operand._kept or not primitive.view
        return self.pair_tangent(out, moved)

    def compute_root(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        values: Sequence[Any],
        tangents: Sequence[Any],
        params: Mapping[str, Any],
    ) -> Any:
        """Compute an operation that may end a chain that makes a monomial, or a root whose square is smooth."""
        out = unwrap_plain(apply(primitive, *values, **params))
        if primitive.kind == "constant":
            return wrapped_constants(out)
        step = self.step(primitive, operands, values, out, params)
        if type(out) in NUMBERS:  # as in `elementwise`
            values, tangents = list(map(strong, values)), list(map(strong, tangents))
        with silence():
            moved = self.past_kink(step)
            if moved is None:
                moved = propagate(self.guard_primitive(primitive), tangents, out, values, params)
            result = self.pair_tangent(out, moved)
        if result._trace is self and step.depth <= LONGEST_CHAIN:
            result._node.origin = step
        return result

    def step(
        self, primitive: Primitive, operands: Sequence[Any], values: Sequence[Any], out: Any, params: Mapping[str, Any]
    ) -> ChainStep:
        """Return an operation as its result may remember it."""
        nodes: list[Moving | None] = []
        kept, depth = list(values), 0
        for i, x in enumerate(operands):
            node = None
            if type(x) is Tensor:
                if x._trace is self:
                    node = x._node
                    if node.origin is not None and node.origin.depth > depth:
                        depth = node.origin.depth
                elif x._trace is None:
                    kept[i] = lend(x)
            elif type(x) is ndarray and x.flags.writeable:  # may have been written to when it is asked for
                kept[i] = x.copy(order="K")
            nodes.append(node)
        shape = out.shape if type(out) is ndarray else np.shape(out)
        return ChainStep(primitive, params, kept, nodes, out, shape, depth + 1)

    def past_kink(self, step: ChainStep) -> Any:
        """Return the tangent of a monomial that an operation ends a chain of; None of others."""
        factors = monomial_of(step, origin_of) if np.dtype(aval_of(step.out).dtype).kind == "f" else None
        if factors is None:
            return None
        terms = [self.tangent_by(factors, i) for i, f in enumerate(factors) if f.handle is not None]
        return total([t for t in terms if t is not None])

    def tangent_by(self, factors: Sequence[MonomialFactor], i: int) -> Any:
        """Return the tangent of a monomial along one of its factors."""
        factor = factors[i]
        t = self.tangent_of_square(factor.handle.origin) if factor.by_square else factor.handle.tangent
        if t is None:
            return None
        t = strong(unwrap_plain(t))
        for view, handle, _ in factor.views:
            t = view_of(view, t, handle.origin.shape)
        found = slope(t, factors, i, self.guard_primitive)
        if not self.steep and not is_finite_slope(factor):
            self.steep = may_be_steep(t, unwrap_plain(found), None)
        return found

    def tangent_of_square(self, step: ChainStep) -> Any:
        """Return the tangent of the square of a root."""
        root = square_of(step.primitive, step.params)
        assert root is not None
        tangents = [None if node is None else strong(node.tangent) for node in step.handles]
        values = list(map(strong, step.operands))
        return propagate(self.guard_primitive(root), tangents, strong(step.out), values, step.params)

    def elementwise(
        self, primitive: Elementwise, values: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]
    ) -> Tensor:
        """Compute an elementwise operation; only rules of singular ones can divide by zero without meaning it."""
        if Tensor in map(type, values):
            out = unwrap_plain(apply(primitive, *values, **params))
        else:
            out = evaluate_primitive(primitive, values, params)
        if primitive.joins and not self.masked and not is_all_finite(out):
            self.masked = joins_infinity(values, tangents)
        if type(out) in NUMBERS:  # rules calculate as NumPy does, without Python's exceptions
            values, tangents = list(map(strong, values)), list(map(strong, tangents))
        elif isinstance(out, complexfloating):  # Python's complex numbers answer for NumPy's floats, too
            tangents = list(map(strong, tangents))
        if not primitive.singular and not self.steep and not self.masked:
            moved = None
            if Tensor in map(type, tangents) and not params and not primitive.held:
                moved = propagate_lanes(primitive, tangents, out, values)
            if moved is None:
                moved = propagate_elementwise(primitive, tangents, out, values, params)
            return self.pair_tangent(out, moved)
        with silence():
            if primitive.steep and not self.steep and not self.masked and Tensor not in map(type, (*tangents, *values)):
                tangent = propagate_elementwise(primitive, tangents, out, values, params, primitive.declared)
                if tangent is None or has_finite_square(tangent):
                    return self.pair_tangent(out, tangent)
            tangent = propagate_elementwise(self.guard_primitive(primitive), tangents, out, values, params)
            if primitive.steep and not self.steep and primitive.is_steep(values):
                self.steep = any(t is not None and may_be_steep(t, tangent, out) for t in tangents)
            return self.pair_tangent(out, tangent)

    def guard_primitive(self, primitive: Primitive) -> Any:
        """Return a primitive with the guards that its rules need behind what has been passed."""
        if self.steep:
            return primitive.shielded_primitive(self.masked)
        return primitive.guarded_primitive if self.masked else primitive

    def pair_tangent(self, out: Any, tangent: Any) -> Tensor:
        """Return an output with its tangent, or as a constant where that is a structural zero."""
        if type(out) is ndarray:
            found = tangent
            if type(tangent) is Tensor and tangent._trace is not None:  # lanes, as a Hessian has them
                found = tangent._value
            if type(found) is ndarray and out.shape == tangent.shape and out.dtype.kind in "fc":
                if found.dtype is not out.dtype:
                    tangent = match_dtype(tangent, out.dtype)
                return make_dual(out, tangent, self, caller(3, False))
        if type(out) in NUMBERS or (type(out) is Tensor and out.weak):
            return self.paired_numbers(out, tangent)
        if tangent is None or not is_differentiable(out.dtype):
            return wrapped_constant(out)
        tangent = strong(unwrap_plain(tangent))
        if tangent.shape != out.shape:
            tangent = np.broadcast_to(tangent, out.shape)
        if tangent.dtype != out.dtype:
            tangent = match_dtype(tangent, out.dtype)
        return make_dual(out, unwrap_plain(tangent), self, caller(3, False))

    def paired_numbers(self, out: Any, tangent: Any) -> Tensor:
        """Return a Python number with its tangent, which is one too."""
        if type(out) is float and type(tangent) is np.float64:
            return make_dual(out, tangent.item(), self, caller(3, False))
        dtype = aval_of(out).dtype
        if tangent is None or not is_differentiable(dtype):
            return wrapped_constant(out)
        return make_dual(
            out, unwrap_plain(weaken(match_dtype(strong(unwrap_plain(tangent)), dtype))), self, caller(3, False)
        )

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Replace part of a value, and the same part of its tangent."""
        if self.ended:
            self.require_alive((handle, *operands))
        below = self.handle_below(handle)
        tangent = self.tangent_below(handle)
        tangents = [self.tangent_below(x) for x in operands[:1]]
        values = [self.value_below(x) for x in operands]
        self.masked = self.masked or joins_infinity((below, values[0]), (tangent, tangents[0]))
        kept = handle._kept
        written = primitive.rewrite(below, kept, *values, **params)
        moves = is_differentiable(written.dtype) and (tangent is not None or tangents[0] is not None)
        if moves and not (
            SPECIAL and is_stopped(self)
        ):  # under `no_grad` it keeps the tangent of what was, as on a tape
            if tangent is None:
                tangent, kept = np.zeros(written.shape, written.dtype), False
            source = tangents[0]
            if source is None:
                source = ZERO if written.dtype is DOUBLE else np.zeros((), written.dtype).real[()]
            if type(source) is Tensor and type(tangent) is not Tensor:
                tangent = make_tensor(tangent, None, None)
                tangent._kept = kept
            handle._node = Moving(primitive.rewrite(tangent, kept, source, *values[1:], **params), caller(1, False))
            handle._trace = self
        elif handle._trace is not self and type(written) is Tensor:  # it stays on the level below
            handle._node, handle._trace = written._node, written._trace
            written = written._value
        elif type(written) is ndarray:
            written = written.view()  # as on a tape
        handle._value = written
        handle._kept = False
        handle._mutated = True

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle stand for another value; what is written under `no_grad` has the tangent of what was."""
        if is_stopped(self):
            handle._value = self.value_below(result)
            handle._kept = result._kept = True
            return
        super().rebind(handle, result)


def propagate(
    primitive: Primitive, tangents: Sequence[Any], out: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """Return the tangent of a primitive's output (a tuple of them for several), one level below.

    Tangents of operands that are None are structural zeros.
    """
    if False not in [t is None for t in tangents]:
        return None if primitive.outputs == 1 else (None,) * len(out)
    if isinstance(primitive, Elementwise):
        return propagate_elementwise(primitive, tangents, out, operands, params)
    if isinstance(primitive, Linear) and primitive.jvp is None:
        return propagate_linear(primitive, tangents, operands, params)
    if isinstance(primitive, Multilinear):
        product, params = primitive.tangent_product(operands, params)
        multiplied = partial(apply, product, **params)
        moved = [(t, [*operands[:i], t, *operands[i + 1 :]]) for i, t in enumerate(tangents) if t is not None]
        if primitive.steep:
            return total([primitive.shielded_product(multiplied, factors, t) for t, factors in moved])
        return total([multiplied(*factors) for _, factors in moved])
    rule = propagate_opaque if primitive.jvp is None else propagate_by_rule
    if not primitive.steep:
        return rule(primitive, tangents, out, operands, params)

    def push_tangents(moving: Sequence[Any]) -> Sequence[Any]:
        given = rule(primitive, moving, out, operands, params)
        return given if primitive.outputs != 1 else (given,)

    found = linear_image(push_tangents, tangents)
    return found if primitive.outputs != 1 else found[0]


def propagate_by_rule(
    primitive: Primitive, tangents: Sequence[Any], out: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """Run the forward rule of a primitive that has one."""
    assert primitive.jvp is not None
    return primitive.jvp(tangents, out, *operands, **params)


def propagate_elementwise(
    primitive: Elementwise,
    tangents: Sequence[Any],
    out: Any,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    rules: Sequence[Rule | None] | None = None,
) -> Any:
    """Sum the rules of the operands that have tangents, or others in their place."""
    result: Any = None
    for rule, tangent in zip(rules or primitive.rules, tangents, strict=True):
        if rule is not None and tangent is not None:
            part = rule(tangent, out, *operands, **params)
            result = part if result is None else result + part
    return result


def propagate_lanes(
    primitive: Elementwise, tangents: Sequence[Any], out: Any, operands: Sequence[Any]
) -> Tensor | None:
    """Do what `propagate_elementwise` does for tangents with lanes in front, on arrays: in half of the time.

    None where these, or the values, are anything else: rules act on each element, so that lanes are one axis more.
    """
    rank = out.ndim or -1 if type(out) is ndarray else 0 if type(out) is np.float64 else -1
    if rank < 0 or Tensor in map(type, operands):
        return None
    trace = None
    arrays: list[Any] = []
    for tangent in tangents:
        own = tangent._trace if type(tangent) is Tensor else None
        if own is None and tangent is not None:
            return None
        array = None if own is None else own.lanes_in_front(tangent)
        if own is not None:
            if array is None or array.dtype is not out.dtype or trace not in (None, own):
                return None
            trace = own
            if array.ndim <= rank:
                array = array.reshape(len(array), *(1,) * (rank + 1 - array.ndim), *array.shape[1:])
        arrays.append(array)
    if trace is None:
        return None
    found = propagate_elementwise(primitive, arrays, out, operands, {})
    if type(found) is not ndarray or found.shape[1:] != out.shape or found.dtype is not out.dtype:
        return None
    return make_tensor(found, trace, caller(4, False)) if found.flags.c_contiguous else None


def propagate_linear(
    primitive: Linear, tangents: Sequence[Any], operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """Apply the operation to the tangents, with zeros for the linear operands that have none."""
    count = len(operands) if primitive.variadic else len(primitive.transposes)
    moved = tangents[:count]
    still = [t is None for t in moved]
    if True in still:
        if False not in still:
            return None
        moved = [zero_of(x) if t is None else t for t, x in zip(moved, operands, strict=False)]
    return at_once(primitive, *moved, *operands[count:], **params)


def propagate_opaque(
    primitive: Primitive, tangents: Sequence[Any], out: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """Derive the jvp from the vjp: it is linear in the cotangent, and its transpose is the Jacobian."""
    need_out, need = primitive.select_residuals([t is not None for t in tangents])
    kept = [x if need(i) else None for i, x in enumerate(operands)]
    avals = [None if t is None else aval_of(x) for t, x in zip(tangents, operands, strict=True)]
    outs = out if isinstance(out, tuple) else (out,)
    tape = Tape(next_level(), f"the jvp of {primitive.name}")
    smooth = [i for i, o in enumerate(outs) if is_differentiable(o.dtype) and i not in primitive.only_saved]
    leaves = {i: make_leaf(np.ones(outs[i].shape, outs[i].dtype)[()], tape) for i in smooth}

    def rule(given: Mapping[int, Any]) -> Sequence[Any]:
        ct = [given.get(i) for i in range(len(outs))] if isinstance(out, tuple) else given[0]
        return primitive.vjp(ct, out if need_out else None, kept, avals, params)

    with tape:
        cts = rule(leaves)
    seeds = []
    for c, tangent in zip(cts, tangents, strict=True):
        found = current(c) if type(c) is Tensor else None
        if found is not None and found._trace is tape and tangent is not None:
            seeds.append((found._node, tangent))
    run = sweep(seeds)
    if primitive.given_by_user:
        ct_avals = [aval_of(outs[i]).firm for i in smooth]
        require_linear(primitive, "vjp", lambda given: rule(dict(zip(smooth, given, strict=True))), ct_avals)
    moved = tuple(run.result(leaves[i]._node) if i in leaves else None for i in range(len(outs)))
    return moved if isinstance(out, tuple) else moved[0]


def total(parts: Sequence[Any]) -> Any:
    """Return the sum of the parts; None if there are none."""
    result: Any = None
    for part in parts:
        result = part if result is None else result + part
    return result
