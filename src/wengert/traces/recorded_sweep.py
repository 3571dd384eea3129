"""Sweeps that are recorded themselves, so that gradients have gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from threading import get_ident
from typing import Any, ClassVar

from numpy import float64, ndarray

from wengert.core.diagnostics.source_positions import SPEAKERS, speaks_for
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.transposes import factor_of, slope_of, transposition
from wengert.core.values.aval import Aval
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor
from wengert.primitives.arithmetic import passed
from wengert.primitives.shapes import broadcast_to
from wengert.traces.lifting import lifted, lifted_output
from wengert.traces.nodes import NOTHING, LargeResiduals, Node, PackedResiduals, new_node
from wengert.traces.plain_sweep import FOR_GOOD, Sweep, has_mask
from wengert.traces.sweep_errors import misshapen
from wengert.traces.tape import Tape

FEW = 10_000
"""Elements up to which sorting them once more takes no longer than recording what a rule is made of."""


def discreet(pull: Callable[..., None]) -> Callable[..., None]:
    """Let what a method records be the node's without a look at the stack, if nobody but the library runs meanwhile."""

    @functools.wraps(pull)
    def pull_alone(self: RecordedSweep, node: Node, ct: Any, *owns: bool) -> None:
        unpacks = type(node.saved) is PackedResiduals
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
        tensors = [None if x is None else lifted(x, p, self.tape) for x, p in zip(operands, node.inputs, strict=True)]
        return None if out is None else lifted_output(out, node, self.tape), tensors

    @discreet
    @speaks_for("node")
    def pull_elementwise(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the rules of an elementwise operation on the Tensors that its residuals were."""
        primitive, inputs = node.primitive, node.inputs
        if type(node.saved) is not tuple and type(node.saved) is not LargeResiduals:
            self.pull_whole(node, ct, owns)
            return
        below = None if inputs[0] is None else inputs[0].primitive
        curved = below is not None and (below.raises or below.square or below.scales)
        curved = curved and (primitive.raises or primitive.degree or inputs[0] is inputs[-1])
        if curved and self.goes_past(node, ct):
            self.leave(node)
            return
        if len(inputs) == 1 and type(node.saved) is tuple and not node.given and not primitive.masks:
            self.pull_rule(node, ct)
            return
        operands: Any = node.saved
        out, tape = node.out, self.tape
        if type(operands) is tuple:  # as `residuals`, in half of its time
            operands = [None if x is None else lifted(x, p, tape) for x, p in zip(operands, inputs, strict=True)]
            out = None if out is None else lifted(out, node, tape)
        else:
            out, operands = self.residuals(node)
        params = node.given if type(node.given) is dict else node.params
        self.leave(node)
        if primitive.masks:
            self.masked = FOR_GOOD
        elif self.masked:
            primitive = self.protected(node)
        steep = primitive.steep and primitive.is_steep(operands)
        for rule, parent in zip(primitive.rules, inputs, strict=True):
            if parent is not None and rule is not None:
                c = ct if rule is passed else rule(ct, out, *operands, **params)
                if steep:
                    self.notice(c, ct, out)
                if c.shape == parent.shape:
                    self.add(parent, c, False)
                else:
                    self.add_summed(node, parent, c, False)

    def pull_rule(self, node: Node, ct: Any) -> None:
        """Run the rule of an operation on one operand, as most are: a sixth of a second derivative's time less."""
        out, parent, tape = node.out, node.inputs[0], self.tape
        x = node.saved[0]
        primitive = self.protected(node) if self.masked else node.primitive
        self.leave(node)
        out = None if out is None else lifted(out, node, tape)
        c = primitive.rules[0](ct, out, None if x is None else lifted(x, parent, tape))
        if primitive.steep:
            self.notice(c, ct, out)
        self.add(parent, c, False)  # type: ignore[arg-type]  # it is there

    @discreet
    @speaks_for("node")
    def pull_linear(self, node: Node, ct: Any, owns: bool) -> None:
        """Record the transpose of a linear operation as one operation where that is best.

        It is not where the cotangent of its operand is being added up already in a buffer, as those of parts are.
        """
        saved, parent, primitive = node.saved, node.inputs[0], node.primitive
        if type(saved) is not tuple or primitive.variadic or primitive.consume is not None or parent is None:
            self.pull(node, ct, owns)
            return
        constants = saved[1:]
        if self.masked >= 0 and has_mask(constants):
            self.masked = FOR_GOOD
        adds = primitive.accumulate is not None and (parent in self.cts or parent is self.newest)
        if not adds and self.pull_as_one(node, parent, ct, constants):
            self.leave(node)
        else:
            super().pull_linear(node, ct, owns)

    @discreet
    @speaks_for("node")
    def pull_whole(self, node: Node, ct: Any, owns: bool) -> None:
        """Run the vjp of an operation that is not taken apart into rules: on arrays where one operation records it."""
        out, saved, inputs, primitive = node.out, node.saved, node.inputs, node.primitive
        products = primitive.kind == "multilinear"
        first = inputs[0]
        single = type(saved) is tuple and len(inputs) == 1
        long = single and first is not None and math.prod(first.shape) > FEW
        known = products or (primitive.piecewise and not long)
        known = known and isinstance(saved, tuple) and (single or not self.steep)
        if not known or not self.has_at_hand(ct, (out, *saved)):
            self.pull(node, ct, owns)
            return
        self.leave(node)
        if products:
            self.pull_factors(node, ct, saved)
            return
        if self.masked >= 0 and (primitive.masks or has_mask(saved)):
            self.masked = FOR_GOOD
        self.pull_slopes(node, ct, out, saved)

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

    def pull_as_one(self, node: Node, parent: Node, ct: Any, constants: Sequence[Any]) -> bool:
        """Record the transpose of a linear operation as one operation, and tell whether that was possible."""
        primitive, params = node.primitive, node.params
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

    def add_summed(self, node: Node, parent: Node, c: Any, _fresh: bool) -> None:
        """Add a contribution, summed over the axes along which an operand was broadcast: one operation, too."""
        if c.shape == parent.shape or c.shape != node.shape or not self.has_at_hand(c, ()):
            super().add_summed(node, parent, c, False)
            return
        derived, params = transposition(broadcast_to, Aval(parent.shape, c.dtype), {"shape": node.shape}, ())
        self.hand_on(node, parent, unbroadcast(c._value, parent.shape), derived, params, c, True)

    def pull_slopes(self, node: Node, ct: Any, out: Any, operands: Sequence[Any]) -> None:
        """Record one operation for the cotangent of each operand of one that is linear on pieces."""
        primitive, params, parents = node.primitive, node.params, node.inputs
        cts = primitive.vjp(ct._value, out, operands, parents, params)
        own = Aval(node.shape, node.dtype)
        for i, (parent, c) in enumerate(zip(parents, cts, strict=True)):
            if parent is not None and c is not None:
                avals = own, Aval(parent.shape, parent.dtype)
                point = {"out": out, "operands": operands, "avals": avals, "params": params}
                self.hand_on(node, parent, c, slope_of(primitive, i), point, ct, primitive.fresh and c is not ct._value)

    def pull_factors(self, node: Node, ct: Any, operands: Sequence[Any]) -> None:
        """Record one operation for the cotangent of each operand of a multilinear one."""
        primitive, params, parents = node.primitive, node.params, node.inputs
        cts = primitive.vjp(ct._value, None, operands, parents, params)
        for i, (parent, c) in enumerate(zip(parents, cts, strict=True)):
            if parent is not None:
                ct._kept = True
                inputs = (ct._node, *parents[:i], *parents[i + 1 :])
                point = {"aval": Aval(parent.shape, parent.dtype), "params": params}
                saved = (ct._value, *operands[:i], *operands[i + 1 :])
                made = new_node(factor_of(primitive, i), inputs, point, saved, (node.code, node.offset), c)
                traced = any(other is not None for other in inputs)
                self.add(parent, make_tensor(c, self.tape if traced else None, made if traced else None), True)

    def hand_on(
        self, node: Node, parent: Node, c: Any, primitive: Linear, params: dict[str, Any], ct: Tensor, fresh: bool
    ) -> None:
        """Add a cotangent that a linear operation has given for another, and record that unless nobody asks for it."""
        if c.shape != parent.shape:
            raise misshapen(node, c.shape, parent.shape)
        made = None
        if ct._trace is not None:
            made = new_node(primitive, (ct._node,), params, NOTHING[1], (node.code, node.offset), c)
        self.add(parent, make_tensor(c, ct._trace, made), fresh)

    pull = discreet(Sweep.pull)

    pulls: ClassVar[dict[str, Callable[..., None]]] = {
        **Sweep.pulls,
        "unary": pull_elementwise,
        "binary": pull_elementwise,
        "curved": pull_elementwise,
        "rules": pull_elementwise,
        "linear": pull_linear,
        "part": pull_linear,
        "write": pull_linear,
        "whole": pull_whole,
    }
