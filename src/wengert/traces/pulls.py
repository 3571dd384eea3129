"""What the nodes of a sweep send back, by the kind of their primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from wengert.core.memory.buffers import own
from wengert.core.memory.views import current
from wengert.core.primitives.cotangent import add_shared, has_finite_square, match_dtype, unbroadcast
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.recording import ANOMALY
from wengert.core.values.tensor import Tensor, is_staged, make_tensor, raw, unwrap_plain
from wengert.errors import GraphError, NumericalError
from wengert.native.threads.elementwise import LARGE
from wengert.primitives.arithmetic import relay
from wengert.primitives.indexing.index_layout import join_index
from wengert.primitives.selection import guarded
from wengert.traces.cotangents import Cotangents
from wengert.traces.guarded_cotangents import FOR_GOOD, GuardedCotangents, has_mask
from wengert.traces.lifting import Lifting, lift_residual, shape_error
from wengert.traces.monomials import (
    ChainStep,
    MonomialFactor,
    are_same,
    holds_power,
    is_finite_slope,
    may_continue,
    monomial_of,
    slope,
    square_of,
)
from wengert.traces.nodes import RELEASED, RESULT, GeneralResiduals, Leaf, Node

LITERAL = frozenset({int, float})


class PulledCotangents(GuardedCotangents):
    """Hold cotangents, and add to them what nodes send back: arrays, or Tensors where there is a `lifting`."""

    __slots__ = ("lifting", "retain", "watch")

    lifting: Lifting | None
    retain: bool
    watch: Callable[[Node, Any], None] | None

    def leave(self, node: Node) -> None:
        """Let the residuals of a node go that has been swept, unless the graph is retained."""
        if not self.retain:
            node.release()

    def residuals(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands of a node as its rule shall have them."""
        return node.residuals() if self.lifting is None else self.lifting.residuals(node)

    def pull_unary(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rule of an elementwise operation on one array that is neither a power nor a root."""
        saved, out, parent, primitive, lifting = node.saved, node.out, node.inputs[0], node.primitive, self.lifting
        if type(saved) is not tuple:
            self.pull_rules(node, ct, owns)
            return
        x = saved[0]
        if lifting is not None:
            x = None if x is None else lift_residual(x, parent, lifting.tape)
            out = None if out is None else lift_residual(out, node, lifting.tape)
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if self.masked:
            primitive = self.guarded_primitive(node)
        c = primitive.rules[0](ct, out, x)
        self.add(parent, c, lifting is None and c is not ct)  # type: ignore[arg-type]  # it is there

    def pull_binary(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of an elementwise operation on two arrays that is no power.

        The left one comes last: it may then have the cotangent's memory, which halves the traffic of large arrays.
        """
        saved, out, primitive, lifting = node.saved, node.out, node.primitive, self.lifting
        if type(saved) is not tuple:
            self.pull_rules(node, ct, owns)
            return
        x, y = saved
        left, parent = node.inputs
        if parent is left and parent is not None and may_continue(parent.primitive) and self.goes_past(node, ct):
            self.leave(node)
            return
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if lifting is not None:
            x = None if x is None else lift_residual(x, left, lifting.tape)
            y = None if y is None else lift_residual(y, parent, lifting.tape)
            out = None if out is None else lift_residual(out, node, lifting.tape)
        elif type(ct) is Tensor:
            x, y = as_number(x, left), as_number(y, parent)
        if self.masked:
            primitive = self.guarded_primitive(node)
        left_rule, right_rule = primitive.rules
        if parent is not None and right_rule is not None:
            c = ct if right_rule is relay else right_rule(ct, out, x, y)
            if c.shape != parent.shape:
                self.add_summed(node, parent, c)
            elif self.add(parent, c, lifting is None and c is not ct) and c is ct:
                owns = False
        if left is None or left_rule is None:
            return
        if (
            owns
            and primitive.overwrite is not None
            and type(ct) is ndarray
            and type(y) is not Tensor
            and node.shape == left.shape
        ):
            c = primitive.overwrite(ct, y, ct)
        else:
            c = ct if left_rule is relay else left_rule(ct, out, x, y)
            if c.shape != left.shape:
                self.add_summed(node, left, c)
                return
            owns = lifting is None and (owns or c is not ct)
        if type(left) is not Leaf and self.newest is None and not self.heap and c.dtype is left.dtype:
            self.newest = left  # what `add` would do in a chain; its call takes a twelfth of the sweep
            self.ct = c
            self.owns = owns
        else:
            self.add(left, c, owns)

    def pull_power(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rule of a root, or a power of or by a number: no guard is needed if the square is finite."""
        saved, out, inputs, primitive = node.saved, node.out, node.inputs, node.primitive
        i = 0 if inputs[0] is not None else 1
        if (
            type(saved) is not tuple
            or self.masked
            or type(ct) is Tensor
            or type(out) is Tensor
            or type(saved[i]) is Tensor
            or (len(saved) > 1 and (inputs[1 - i] is not None or type(saved[1 - i]) not in LITERAL))
        ):
            self.pull_rules(node, ct, owns)
            return
        parent: Any = inputs[i]
        if not i and parent.primitive is not None and may_be_past_kink(node, True) and self.goes_past(node, ct):
            self.leave(node)
            return
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        c = primitive.declared[i](ct, out, *saved)
        if primitive.steep and not (
            (primitive.regular is not None and primitive.regular(*saved)) or has_finite_square(c)
        ):
            c = primitive.rules[i](ct, out, *saved)
            self.notice(c, ct, out)
        self.add(parent, c, c is not ct)

    def pull_rules(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of any elementwise operation, past what it was made of if it is a power of a root or so."""
        saved, inputs, primitive, lifting = node.saved, node.inputs, node.primitive, self.lifting
        general = type(saved) is GeneralResiduals
        if type(saved) is not tuple:
            if not isinstance(saved, tuple):
                self.pull(node, ct, owns)
                return
            if lifting is None and not general:
                self.pull_large(node, ct, owns)
                return
        first = inputs[0]
        if (
            first is not None
            and first.primitive is not None
            and may_be_past_kink(node, lifting is None)
            and self.goes_past(node, ct)
        ):
            self.leave(node)
            return
        if lifting is not None and general and lifting.pull_as_one(self, node, ct):
            self.leave(node)
            return
        out, operands = (node.out, saved) if lifting is None else lifting.residuals(node)
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if self.masked:
            primitive = self.guarded_primitive(node)
        if self.masked >= 0 and (primitive.masks or (general and has_mask(saved))):
            self.masked = FOR_GOOD
        steep, params = primitive.steep and primitive.is_steep(operands), node.given
        for rule, parent in zip(primitive.rules, inputs, strict=True):
            if parent is not None and rule is not None:
                c = ct if rule is relay else rule(ct, out, *operands, **params) if params else rule(ct, out, *operands)
                if steep:
                    self.notice(c, ct, out)
                if c.shape == parent.shape:
                    self.add(parent, c, lifting is None and c is not ct)
                else:
                    self.add_summed(node, parent, c)

    def add_summed(self, node: Node, parent: Node, c: Any) -> None:
        """Add a contribution, summed over the axes along which an operand was broadcast."""
        if self.lifting is None or not self.lifting.sum_as_one(self, node, parent, c):
            self.add(parent, unbroadcast(c, parent.shape), self.lifting is None)

    def pull_large(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of an elementwise operation on large operands: as Tensors, whose operations are shared."""
        out, operands = node.residuals()
        primitive = node.primitive
        if self.goes_past(node, ct):
            self.leave(node)
            return
        if primitive.masks:
            self.masked = FOR_GOOD
        elif self.masked:
            primitive = self.guarded_primitive(node)
        for position in reversed(range(len(operands))):
            parent, rule = node.inputs[position], primitive.rules[position]
            if parent is None or rule is None:
                continue
            if position == 0 and owns and overwritable(node, primitive, ct, operands):
                c = primitive.overwrite_large(ct, operands[1], ct)
            else:
                c = unwrap_plain(rule(*map(wrap_array, (ct, out, *operands))))
                if primitive.steep and primitive.is_steep(operands):
                    self.notice(c, ct, out)
                if c.shape != parent.shape:
                    c = unbroadcast(c, parent.shape)
            fresh = c is not ct or (position == 0 and owns)
            if self.add_large(parent, c, fresh) and c is ct:
                owns = False
        self.leave(node)

    def add_large(self, node: Node, ct: Any, fresh: bool) -> bool:
        """Add a large contribution to the cotangent of a node, as `add` does, on several threads."""
        if node is self.newest:
            self.put_back()
        total = self.cts.get(node)
        if type(total) is not ndarray or type(ct) is not ndarray or total.size < LARGE or ct.dtype is not total.dtype:
            return self.add(node, ct, fresh)
        self.cts[node] = add_shared(total, ct, total if node in self.owned else None)
        self.owned.add(node)
        return False

    def pull_linear(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the transposes of a linear operation."""
        saved, inputs, primitive, lifting = node.saved, node.inputs, node.primitive, self.lifting
        if not isinstance(saved, tuple):
            self.pull(node, ct, owns)
            return
        if lifting is not None and lifting.transpose(self, node, ct):
            self.pass_mask(node, ct, saved)
            self.leave(node)
            return
        parent = inputs[0]
        if len(inputs) == 1 and primitive.alone and parent is not None:
            if not self.retain:
                node.saved = RELEASED
            c = primitive.transposes[0](ct, parent, **node.given)
            if type(c) is Tensor:
                c = current(c)
            if c.shape != parent.shape:
                raise shape_error(node, c.shape, parent.shape)
            self.add(parent, c, primitive.fresh)
            return
        operands = saved if lifting is None else lifting.residuals(node)[1]
        if not self.retain:
            node.saved = RELEASED
        if not self.pull_in_place(node, inputs, ct, owns, operands):
            self.pass_mask(node, ct, operands)
            cts = primitive.vjp(ct, None, operands, inputs, node.params)
            self.hand_out(node, inputs, cts, ct, fresh=primitive.fresh)

    def pull_part(self, node: Node, ct: Any, owns: bool) -> None:
        """Do what `pull_in_place` does for a small part of an array, or a write of a number or without arrays."""
        saved, index, accumulate = node.saved, node.given, node.primitive.accumulate
        if (
            type(saved) is not tuple
            or type(ct) is Tensor
            or (len(saved) > 2 and node.inputs[1] is not None if accumulate is None else ct.size >= LARGE)
        ):
            self.pull_linear(node, ct, owns)
            return
        if not self.retain:
            node.saved = RELEASED
        if accumulate is not None:
            buffer = self.buffer(node.inputs[0], ct)
            if len(saved) == 1:
                buffer[index] += ct
            else:
                if self.masked >= 0 and has_mask(saved):
                    self.masked = FOR_GOOD
                accumulate(buffer, ct, *saved[1:], index=index)
            return
        left, right = node.inputs[:2]
        if len(saved) > 2:
            if self.masked >= 0 and has_mask(saved):
                self.masked = FOR_GOOD
            index = join_index(index, saved[2:])
        if right is not None:
            c = ct[index]
            if c.shape != right.shape:
                c = unbroadcast(c, right.shape)
            self.add(right, c.copy() if type(c) is ndarray else c, True)
        if left is not None:
            if not owns or type(ct) is not ndarray:
                ct = own(ct)
            ct[index] = 0.0
            self.add(left, ct, True)

    def pull_in_place(
        self, node: Node, parents: Sequence[Node | None], ct: Any, owns: bool, operands: Sequence[Any]
    ) -> bool:
        """Run the vjp of a linear operation in memory that the sweep owns, and tell whether the operation has such."""
        primitive = node.primitive
        if primitive.accumulate is None and primitive.consume is None:
            if primitive is guarded:
                self.pass_guard(node)
            return False
        params = node.params
        constants = operands[len(primitive.transposes) :]
        traced = ct
        if constants:
            if self.masked >= 0 and has_mask(constants):
                self.masked = FOR_GOOD
            traced = next((x for x in constants if type(x) is Tensor), ct)  # an index that differs between lanes
        first = parents[0]
        if primitive.accumulate is not None and first is not None:
            primitive.accumulate(self.buffer(first, traced), ct, *constants, **params)
            return True
        if primitive.consume is None:
            return False
        if not owns or isinstance(ct, np.generic):
            ct = own(ct)
        if type(traced) is Tensor and type(ct) is not Tensor:
            ct = make_tensor(ct, None, None)
        cts = primitive.consume(ct, parents, *constants, **params)
        if ANOMALY.get():
            check_finite(node, cts)
        self.hand_out(node, parents, cts, ct, fresh=True)
        return True

    def pull_whole(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the vjp of an operation that is not taken apart into rules."""
        saved, inputs, primitive, lifting = node.saved, node.inputs, node.primitive, self.lifting
        if not isinstance(saved, tuple):
            self.pull(node, ct, owns)
            return
        if lifting is not None and not self.untaken and lifting.pull_as_one(self, node, ct):
            self.leave(node)
            return
        out, operands = (node.out, saved) if lifting is None else lifting.residuals(node)
        if not self.retain:
            node.saved = RELEASED
            node.out = None
        if self.masked:
            primitive = self.guarded_primitive(node)
        untaken, alone = self.untaken, len(inputs) == 1
        if not alone or primitive.masks or primitive.outputs != 1:
            self.pass_mask(node, ct, operands)
        cts = primitive.vjp(ct, out, operands, inputs, node.given)
        if untaken:
            cts = self.keep_still(ct, cts)
        if primitive.steep:
            self.notice_any(cts, ct)
        if not alone:
            self.hand_out(node, inputs, cts, ct, fresh=primitive.fresh)
        elif (c := cts[0]) is not None and (parent := inputs[0]) is not None:  # as in `hand_out`, without the loop
            if type(c) is Tensor:
                c = current(c)
            if c.shape != parent.shape:
                raise shape_error(node, c.shape, parent.shape)
            self.add(parent, c, primitive.fresh and c is not ct)

    def pull(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the vjp of any operation, with its hooks, unless nothing wanted lies behind it."""
        parents = [p if p is not None and self.leads(p) else None for p in node.inputs]
        if not any(p is not None for p in parents):
            return
        if node.is_released:
            raise release_error(node)
        if node.hooks is not None:
            ct = node.hooks.replace_before(ct)
        if ct is not None:
            self.pull_parents(node, parents, ct, owns)
        self.leave(node)

    def pull_parents(self, node: Node, parents: Sequence[Node | None], ct: Any, owns: bool) -> None:
        """Run the vjp of an operation for the operands that want a cotangent."""
        primitive = node.primitive
        out, operands = self.residuals(node)
        hooks = node.hooks if node.hooks is not None and node.hooks.after else None
        if hooks is None and self.goes_past(node, ct):
            return
        if hooks is None and primitive.kind == "linear" and self.pull_in_place(node, parents, ct, owns, operands):
            return
        if self.masked:
            primitive = self.guarded_primitive(node)
        self.pass_mask(node, ct, operands)
        untaken = self.untaken and primitive.kind in ("multilinear", "opaque")
        cts = primitive.vjp(ct, out, operands, parents, node.params)
        if untaken:
            cts = self.keep_still(ct, cts)
        if primitive.kind != "elementwise" and primitive.steep:
            self.notice_any(cts, ct)
        elif primitive.steep and primitive.is_steep(operands):
            for c in cts:
                if c is not None:
                    self.notice(c, ct, out)
        if hooks is not None:
            cts = hooks.replace_after(cts, ct)
        if ANOMALY.get():
            check_finite(node, cts)
        self.hand_out(node, parents, cts, ct, fresh=primitive.fresh and hooks is None)

    def hand_out(self, node: Node, parents: Sequence[Node | None], cts: Sequence[Any], ct: Any, *, fresh: bool) -> None:
        """Hand the cotangents of an operation's operands to their nodes; in place of views what they stand for."""
        own = fresh and node.primitive.kind == "linear"
        for parent, c in zip(parents, cts, strict=True):
            if parent is not None and c is not None:
                if type(c) is Tensor:
                    c = current(c)
                if c.shape != parent.shape:
                    raise shape_error(node, c.shape, parent.shape)
                self.add(parent, c, own or (fresh and c is not ct))

    pulls: ClassVar[dict[str, Callable[..., None]]] = {
        "unary": pull_unary,
        "binary": pull_binary,
        "power": pull_rules,
        "rules": pull_rules,
        "linear": pull_linear,
        "part": pull_linear,
        "whole": pull_whole,
        "result": Cotangents.collect,
    }
    """How a node without hooks is pulled, by what its primitive says."""
    short_pulls: ClassVar[dict[str, Callable[..., None]]] = {
        **pulls,
        "power": pull_power,
        "part": pull_part,
    }
    """The same where residuals are arrays: two short ways, which do no more than these need."""

    # Monomials

    def origin(self, node: Node) -> ChainStep | None:
        """Return the operation that made a value; None if a chain of them begins with it."""
        if not may_continue(node.primitive) or node.primitive is RESULT or node.is_released or not self.is_open(node):
            return None
        return self.step(node)

    def step(self, node: Node) -> ChainStep:
        """Return the operation that a node recorded."""
        out, operands = self.residuals(node)
        return ChainStep(node.primitive, node.params, operands, node.inputs, out, node.shape)

    def goes_past(self, node: Node, ct: Any) -> bool:
        """Hand a cotangent past the chain that makes a monomial, if a node ends one, and tell whether it does."""
        if self.watch is not None or node.dtype.kind != "f":
            return False
        primitive = node.primitive
        if not (primitive.raises or primitive.degree or are_same(node.inputs)) or not holds_power(node.inputs[0]):
            return False
        factors = monomial_of(self.step(node), self.origin)
        if factors is None:
            return False
        protect = bool(self.masked and node.number > self.masked)
        for i, factor in enumerate(factors):
            if factor.handle is not None and self.leads(factor.handle):
                self.add_by_factor(factor, self.slope_of(ct, factors, i, protect), ct, protect)
        return True

    def slope_of(self, ct: Any, factors: Sequence[MonomialFactor], i: int, protect: bool) -> Any:
        """Return the cotangent of a factor, or of the square that it is differentiated by."""
        factor = factors[i]
        c = slope(ct, factors, i, self.with_guards if protect else lambda primitive: primitive)
        if not is_finite_slope(factor):
            self.notice(c, ct, None)
        return c

    def add_by_factor(self, factor: MonomialFactor, c: Any, ct: Any, protect: bool) -> None:
        """Add the cotangent of a factor as it is seen to what it is seen of, or to what its square is made of."""
        for step, handle, _ in reversed(factor.views):
            c = unbroadcast(c, step.shape)
            wanted = [handle, *(None for _ in step.handles[1:])]
            c = step.primitive.vjp(c, None, step.operands, wanted, step.params)[0]
        node = factor.handle
        fresh = c is not ct
        c = match_dtype(unbroadcast(c, node.shape), node.dtype)
        if not factor.by_square:
            self.add(node, c, fresh)
            return
        square: Any = square_of(node.primitive, node.params)
        if protect:
            square = self.with_guards(square)
        wanted = [p if p is not None and self.leads(p) else None for p in node.inputs]
        out, operands = self.residuals(node)
        self.hand_out(node, wanted, square.vjp(c, out, operands, wanted, node.params), c, fresh=False)


def may_be_past_kink(node: Node, plain: bool) -> bool:
    """Tell whether a node may end a chain that makes a monomial, by the operation that gave its operand.

    In a plain sweep an exponent is a literal number, or an array without axes.
    """
    primitive, saved = node.primitive, node.saved
    if not (primitive.raises or primitive.degree or are_same(node.inputs)):
        return False
    by_literal = type(saved) is not tuple or len(saved) < 2 or are_same(node.inputs)
    if plain and not by_literal and (node.inputs[1] is not None or getattr(saved[1], "shape", ()) != ()):
        return False
    return may_continue(node.inputs[0].primitive)  # type: ignore[union-attr]  # it is there


def overwritable(node: Node, primitive: Elementwise, ct: Any, operands: Sequence[Any]) -> bool:
    """Tell whether the cotangent of an operation's left operand may take the memory of a cotangent the sweep owns."""
    parent = node.inputs[0]
    return (
        primitive.overwrite is not None
        and parent is not None
        and parent.shape == node.shape
        and type(ct) is ndarray
        and type(operands[1]) is not Tensor
    )


def as_number(value: Any, node: Node | None) -> Any:
    """Return a constant without axes as the number it was given as: with these, Tensors take the compact path."""
    return value.item() if node is None and type(value) is ndarray and not value.ndim else value


def wrap_array(value: Any) -> Any:
    """Return an array as a Tensor, and everything else as it is."""
    return make_tensor(value, None, None) if type(value) is ndarray else value


def release_error(node: Node) -> GraphError:
    """Return the error about a graph that has been swept before."""
    return GraphError(
        "backward",
        f"a graph whose residuals were released by an earlier sweep (at {node.name}, {node.position}), which may "
        "have ended with an error",
        "a graph that was retained is needed to sweep it again",
        "Pass retain_graph=True to the earlier sweep, or compute the output anew",
    )


def check_finite(node: Node, cts: Sequence[Any]) -> None:
    """Raise a NumericalError at the first element of a cotangent that is NaN or infinite."""
    for position, ct in enumerate(cts):
        if ct is None or is_staged(ct):
            continue
        array = np.asarray(raw(ct))
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            element = tuple(map(int, bad[0]))
            raise NumericalError(
                node.name,
                f"the cotangent of operand {position} became {array[element]} at element {element}, "
                f"recorded at {node.position}",
                "finite cotangents are needed while detect_anomaly is on",
                "Look at the values of the operands there",
            )
