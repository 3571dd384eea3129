"""Sweeps that are recorded themselves, so that gradients have gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import get_ident
from typing import Any, ClassVar, TypeVar

from numpy import float64, ndarray

from wengert.core.diagnostics.source_positions import SPEAKERS, speaks_for
from wengert.core.memory.views import current
from wengert.core.memory.write_watches import WATCHES
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.transposes import factor_of, slope_of, transposition
from wengert.core.values.aval import Aval
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import Tensor, make_tensor
from wengert.primitives.elementwise import passed
from wengert.primitives.shapes import broadcast_to
from wengert.traces.lifting import lifted, lifted_output
from wengert.traces.nodes import (
    CREATED,
    RELEASED,
    Binary,
    General,
    LargeBinary,
    LargeUnary,
    Node,
    Raised,
    Single,
    Squared,
    Steep,
    Unary,
)
from wengert.traces.parts import Gathered, Part
from wengert.traces.plain_sweep import FOR_GOOD, Sweep, has_mask
from wengert.traces.powers_of_roots import is_power
from wengert.traces.sweep_errors import misshapen, released
from wengert.traces.tape import Tape

__all__ = ["RecordedSweep"]

N = TypeVar("N", bound=Node)
FEW = 10_000
"""Elements up to which sorting them once more takes no longer than recording what a rule is made of."""


def discreet(pull: Callable[..., None]) -> Callable[..., None]:
    """Let what a method records be the node's without a look at the stack, if nobody but the library runs meanwhile."""

    @functools.wraps(pull)
    def pull_alone(self: RecordedSweep, node: Node, ct: Any, *owns: bool) -> None:
        unpacks = type(node) is General and node.unpack is not None
        if not node.primitive.discreet or unpacks or node.hooks is not None:
            pull(self, node, ct, *owns)
            return
        SPEAKERS[self.thread] = node
        try:
            pull(self, node, ct, *owns)
        finally:
            SPEAKERS.pop(self.thread, None)

    return pull_alone


class RecordedSweep(Sweep):
    """Be a sweep that is itself recorded: cotangents are Tensors, and residuals the Tensors that they were."""

    __slots__ = ("tape", "thread")

    def __init__(
        self,
        retain: bool,
        wanted: Collection[Node] | None,
        watch: Callable[[Node, Any], None] | None,
        tape: Tape,
    ) -> None:
        super().__init__(retain, wanted, watch)
        self.tape = tape
        self.thread = get_ident()

    def residuals(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands of a node as the Tensors that they were."""
        out, operands = node.residuals()
        tensors = [None if x is None else lifted(x, p, self.tape) for x, p in zip(operands, node.parents, strict=True)]
        return None if out is None else lifted_output(out, node, self.tape), tensors

    @discreet
    @speaks_for("node")
    def pull_unary(self, node: Unary, ct: Any) -> None:
        """Run the rule of an elementwise operation on one operand."""
        x, out, tape = node.x, node.out, self.tape
        if x is RELEASED:
            raise released(node)
        if not self.retain:
            node.x = node.out = RELEASED
        primitive = node.primitive if not self.masked else self.protected(node)
        out = None if out is None else lifted(out, node, tape)
        c = primitive.rules[0](ct, out, None if x is None else lifted(x, node.parent, tape))
        if primitive.steep:
            self.notice(c, ct, out)
        self.add(node.parent, c, False)

    @speaks_for("node")
    def pull_one(self, node: Steep | Squared, ct: Any, _owns: bool) -> None:
        """Run the rule of a root or square, past the power or root below it if there is one."""
        below = node.parent.primitive
        near = below is not None and (below.raises or below.square or below.scales)
        if node.x is RELEASED or not near or not self.goes_past(node, ct):
            self.pull_unary(node, ct)
        elif not self.retain:
            node.release()

    @speaks_for("node")
    def pull_raised(self, node: Raised, ct: Any, owns: bool) -> None:
        """Run the rules of a power, past the root that was raised if there is one."""
        below = None if node.left is None else node.left.primitive
        near = below is not None and (below.square or below.scales) and node.x is not RELEASED
        if near and self.goes_past(node, ct):
            if not self.retain:
                node.release()
        else:
            self.pull_binary(node, ct, owns)

    @discreet
    @speaks_for("node")
    def pull_binary(self, node: Binary, ct: Any, _owns: bool) -> None:
        """Run the rules of an elementwise operation on two operands."""
        x, y, out, tape = node.x, node.y, node.out, self.tape
        if x is RELEASED:
            raise released(node)
        past = node.right is node.left and not is_power(node.right) and self.goes_past(node, ct)
        if not self.retain:
            node.x = node.y = node.out = RELEASED
        if past:
            return
        x = None if x is None else lifted(x, node.left, tape)
        y = None if y is None else lifted(y, node.right, tape)
        out = None if out is None else lifted(out, node, tape)
        primitive = node.primitive
        if primitive.masks:
            self.masked = FOR_GOOD
        elif self.masked:
            primitive = self.protected(node)
        for parent, rule in zip((node.left, node.right), primitive.rules, strict=True):
            if parent is not None and rule is not None:
                c = ct if rule is passed else rule(ct, out, x, y)
                if primitive.steep and primitive.is_steep((x, y)):
                    self.notice(c, ct, out)
                if c.shape == parent.shape:
                    self.add(parent, c, False)
                else:
                    self.sum_up(node, parent, c)

    @discreet
    @speaks_for("node")
    def pull_single(self, node: Single, ct: Any, owns: bool) -> None:
        """Run the rule of an operation with parameters on one operand."""
        x, out = node.x, node.out
        if x is RELEASED:
            raise released(node)
        primitive = node.primitive
        if primitive.kind == "linear":
            if not self.pull_as_one(node, ct, node.keywords):
                super().pull_single(node, ct, owns)
            return
        if not self.retain:
            node.x = node.out = RELEASED
        if primitive.piecewise and math.prod(node.parent.shape) <= FEW and self.has_at_hand(ct, (out, x)):
            self.pull_slopes(node, ct, out, (x,), (node.parent,))
            return
        x = None if x is None else lifted(x, node.parent, self.tape)
        out = None if out is None else lifted(out, node, self.tape)
        (c,) = primitive.vjp(ct, out, (x,), (node.parent,), node.keywords)
        self.hand_out(node, (node.parent,), (c,), ct, fresh=primitive.fresh)

    @discreet
    @speaks_for("node")
    def pull_record(self, node: General, ct: Any, owns: bool) -> None:
        """Run the vjp of an operation of any form."""
        out, operands, primitive = node.out, node.operands, node.primitive
        products = primitive.kind == "multilinear"
        known = (products or primitive.piecewise) and operands is not RELEASED and node.unpack is None
        if not known or self.steep or not self.has_at_hand(ct, (out, *operands)):
            self.pull(node, ct, owns)
            return
        if not self.retain:
            node.operands = node.out = RELEASED
        if products:
            self.pull_factors(node, ct, operands)
            return
        if self.masked >= 0 and (primitive.masks or has_mask(operands)):
            self.masked = FOR_GOOD
        self.pull_slopes(node, ct, out, operands, node.inputs)

    def has_at_hand(self, ct: Any, residuals: Sequence[Any]) -> bool:
        """Tell whether a cotangent is a real array that this tape records, or nobody, and residuals are arrays."""
        if type(ct) is not Tensor:  # a constant that a rule gave
            return False
        value, trace = ct._value, ct._trace
        return (
            (type(value) is ndarray or type(value) is float64)
            and (trace is None or trace is self.tape)
            and value.dtype.kind == "f"
            and not SPECIAL
            and not WATCHES
            and Tensor not in map(type, residuals)
        )

    def pull_as_one(
        self, node: Single | Part, ct: Any, params: Mapping[str, Any], constants: Sequence[Any] = ()
    ) -> bool:
        """Record the transpose of a linear operation as one operation, and tell whether that was possible."""
        parent, primitive = node.parent, node.primitive
        if parent.dtype.kind != "f" or primitive.gives_number or not self.has_at_hand(ct, ()):
            return False
        value = ct._value
        out = primitive.transposes[0](value, parent, *constants, **params)
        if out is value:
            self.add(parent, ct, False)
            return True
        derived, derived_params = transposition(primitive, Aval(parent.shape, parent.dtype), params, constants)
        self.hand_on(node, parent, out, derived, derived_params, ct, primitive.fresh)
        return True

    def sum_up(self, node: Binary, parent: Node, ct: Any) -> None:
        """Sum a cotangent over the axes along which an operand was broadcast: one operation, too."""
        if ct.shape != node.shape or not self.has_at_hand(ct, ()):
            self.add(parent, unbroadcast(ct, parent.shape), False)
            return
        derived, params = transposition(broadcast_to, Aval(parent.shape, ct.dtype), {"shape": node.shape}, ())
        self.hand_on(node, parent, unbroadcast(ct._value, parent.shape), derived, params, ct, True)

    def pull_slopes(
        self, node: Single | General, ct: Any, out: Any, operands: Sequence[Any], parents: Sequence[Node | None]
    ) -> None:
        """Record one operation for the cotangent of each operand of one that is linear on pieces."""
        primitive, params = node.primitive, node.params
        cts = primitive.vjp(ct._value, out, operands, parents, params)
        own = Aval(node.shape, node.dtype)
        for i, (parent, c) in enumerate(zip(parents, cts, strict=True)):
            if parent is not None and c is not None:
                avals = own, Aval(parent.shape, parent.dtype)
                point = {"out": out, "operands": operands, "avals": avals, "params": params}
                self.hand_on(node, parent, c, slope_of(primitive, i), point, ct, primitive.fresh and c is not ct._value)

    def pull_factors(self, node: General, ct: Any, operands: Sequence[Any]) -> None:
        """Record one operation for the cotangent of each operand of a multilinear one."""
        primitive, params, parents = node.primitive, node.keywords, node.inputs
        cts = primitive.vjp(ct._value, None, operands, parents, params)
        for i, (parent, c) in enumerate(zip(parents, cts, strict=True)):
            if parent is not None:
                made = self.made(node, General(), c, factor_of(primitive, i))
                made.inputs = (ct._node, *parents[:i], *parents[i + 1 :])
                made.keywords = {"aval": Aval(parent.shape, parent.dtype), "params": params}
                made.operands = (ct._value, *operands[:i], *operands[i + 1 :])
                made.out = made.unpack = None
                ct._kept = True
                traced = any(other is not None for other in made.inputs)
                self.add(parent, make_tensor(c, self.tape if traced else None, made if traced else None), True)

    def hand_on(
        self, node: Any, parent: Node, c: Any, primitive: Linear, params: dict[str, Any], ct: Tensor, fresh: bool
    ) -> None:
        """Add a cotangent that a linear operation has given for another, and record that unless nobody asks for it."""
        if c.shape != parent.shape:
            raise misshapen(node, c.shape, parent.shape)
        made = None
        if ct._trace is not None:
            made = self.made(node, Single(), c, primitive)
            made.parent = ct._node
            made.keywords = params
            made.x = made.out = None
        self.add(parent, make_tensor(c, ct._trace, made), fresh)

    def made(self, node: Node, made: N, value: Any, primitive: Primitive) -> N:
        """Return a new node for a value, whose place is that of another."""
        made.number = next(CREATED)
        made.primitive = primitive
        made.shape, made.dtype = value.shape, value.dtype
        made.hooks = None
        made.code, made.offset = node.code, node.offset
        return made

    @discreet
    @speaks_for("node")
    def pull_part(self, node: Part, ct: Any, owns: bool) -> None:
        """Put zeros around the cotangent of a part: its cotangent is a part again."""
        if not self.pull_first(node, ct, ()):
            super().pull_part(node, ct, owns)

    @discreet
    @speaks_for("node")
    def pull_gathered(self, node: Gathered, ct: Any, owns: bool) -> None:
        """Put zeros around the cotangents of elements likewise."""
        arrays = node.arrays
        if self.masked >= 0 and has_mask(arrays):
            self.masked = FOR_GOOD
        if not self.pull_first(node, ct, arrays):
            super().pull_gathered(node, ct, owns)

    def pull_first(self, node: Part, ct: Any, arrays: Sequence[Any]) -> bool:
        """Record the reading of a part backwards as one operation, and tell whether that was best.

        It is not where the cotangent of the whole is being added up already: there is a buffer for that.
        """
        parent = node.parent
        if node.used or parent in self.cts or parent is self.newest:
            return False
        done = self.pull_as_one(node, ct, node.params, arrays)
        node.used = done and not self.retain
        return done

    def hand_out(self, node: Node, parents: Sequence[Node | None], cts: Sequence[Any], ct: Any, *, fresh: bool) -> None:
        """Hand the cotangents of an operation's operands to their nodes: in place of views what they stand for."""
        found = [current(c) if type(c) is Tensor else c for c in cts]
        super().hand_out(node, parents, found, ct, fresh=fresh)

    pull = discreet(Sweep.pull)

    pulls: ClassVar[dict[type[Node], Callable[..., None]]] = {
        **{kind: discreet(pull) for kind, pull in Sweep.pulls.items()},
        Single: pull_single,
        General: pull_record,
        Part: pull_part,
        Gathered: pull_gathered,
        LargeUnary: pull,
        LargeBinary: pull,
        Raised: pull_raised,
        Squared: pull_one,
        Steep: pull_one,
    }
