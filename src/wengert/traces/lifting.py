"""Lifting: what makes a sweep one that is recorded itself, so that gradients have gradients.

Residuals become the Tensors that they were, so that the rules that run on them are recorded. Where a rule does not
depend on elements of operands, or depends on them linearly, it runs on arrays instead, and one operation is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np
from numpy import float64, ndarray

from wengert.core.diagnostics.source_positions import SPEAKERS
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.transposes import factor_of, slope_of, transposition
from wengert.core.values.aval import Aval, is_number
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor
from wengert.errors import GraphError
from wengert.primitives.shapes import broadcast_to
from wengert.traces.cotangents import Cotangents
from wengert.traces.nodes import NOTHING, Node, PackedResiduals, new_node
from wengert.traces.tape import Tape

FEW = 10_000
"""Elements up to which sorting them once more takes no longer than recording what a rule is made of."""


class Lifting:
    """Let a sweep be recorded on a tape: its cotangents are Tensors, and residuals the Tensors that they were."""

    __slots__ = ("tape", "thread")

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.thread = get_ident()

    def speak_for(self, node: Node) -> None:
        """Let what is recorded be a node's without a look at the stack, if none but the library's own code runs.

        That lasts until `fall_silent`, or the next node.
        """
        if node.primitive.discreet and node.hooks is None and type(node.saved) is not PackedResiduals:
            SPEAKERS[self.thread] = node
        else:
            SPEAKERS.pop(self.thread, None)

    def fall_silent(self) -> None:
        """Let the stack tell whose what is recorded is, as code of users may run."""
        SPEAKERS.pop(self.thread, None)

    def residuals(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """Return the saved output, or what was saved of several, and operands of a node as the Tensors they were."""
        tape, inputs, operands, out = self.tape, node.inputs, node.saved, node.out
        if type(operands) is PackedResiduals:
            out, operands = node.residuals()
        if len(inputs) == 1:
            tensors = [None if operands[0] is None else lift_residual(operands[0], inputs[0], tape)]
        else:
            tensors = [None if x is None else lift_residual(x, p, tape) for x, p in zip(operands, inputs, strict=True)]
        if type(out) is tuple:
            return tuple([self.lifted_part(item, i, node) for i, item in enumerate(out)]), tensors
        return None if out is None else lift_residual(out, node, tape), tensors

    def lifted_part(self, value: Any, index: int, node: Node) -> Any:
        """Return one of several saved outputs as the Tensor it was."""
        if not isinstance(value, ndarray | np.generic) and not is_number(value):
            return value
        tensor = self.tape.output(node, index, value, True)
        tensor._kept = True
        return tensor

    # One operation for what a rule is made of: each method tells whether it has recorded that

    def has_at_hand(self, ct: Any, residuals: Sequence[Any] = ()) -> bool:
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

    def transpose(self, sweep: Cotangents, node: Node, ct: Any) -> bool:
        """Hand on the cotangent of a linear operation, unless its operand's is being added up in a buffer.

        As those of parts are.
        """
        saved, parent, primitive = node.saved, node.inputs[0], node.primitive
        if type(saved) is not tuple or primitive.variadic or primitive.consume is not None or parent is None:
            return False
        if primitive.accumulate is not None and (parent in sweep.cts or parent is sweep.newest):
            return False
        if parent.dtype.kind != "f" or primitive.gives_number or not self.has_at_hand(ct):
            return False
        value, constants, params = ct._value, saved[1:], node.params
        out = primitive.transposes[0](value, parent, *constants, **params)
        if out is value:
            sweep.add(parent, ct, False)
            return True
        derived, derived_params = transposition(primitive, Aval(parent.shape, parent.dtype), params, constants)
        self.hand_on(sweep, node, parent, out, derived, derived_params, ct, primitive.fresh)
        return True

    def sum_as_one(self, sweep: Cotangents, node: Node, parent: Node, c: Any) -> bool:
        """Hand on a contribution summed over the axes along which an operand was broadcast."""
        if c.shape != node.shape or not self.has_at_hand(c):
            return False
        derived, params = transposition(broadcast_to, Aval(parent.shape, c.dtype), {"shape": node.shape}, ())
        self.hand_on(sweep, node, parent, unbroadcast(c._value, parent.shape), derived, params, c, True)
        return True

    def pull_as_one(self, sweep: Any, node: Node, ct: Any) -> bool:
        """Hand on the cotangents of a multilinear operation, or of one that is linear on pieces."""
        saved, primitive = node.saved, node.primitive
        if not (primitive.kind == "multilinear" or primitive.piecewise) or not isinstance(saved, tuple):
            return False
        single = type(saved) is tuple and len(saved) == 1
        if sweep.steep and not single:
            return False
        if primitive.kind == "multilinear":
            if not self.has_at_hand(ct, saved):
                return False
            self.pull_factors(sweep, node, ct, saved)
            return True
        first = node.inputs[0]
        if single and first is not None and math.prod(first.shape) > FEW:
            return False
        if not self.has_at_hand(ct, (node.out, *saved)):
            return False
        sweep.pass_mask(node, ct, saved)
        self.pull_slopes(sweep, node, ct, saved)
        return True

    def pull_slopes(self, sweep: Cotangents, node: Node, ct: Any, operands: Sequence[Any]) -> None:
        """Record one operation for the cotangent of each operand of one that is linear on pieces."""
        primitive, params, parents, out = node.primitive, node.params, node.inputs, node.out
        cts = primitive.vjp(ct._value, out, operands, parents, params)
        own = Aval(node.shape, node.dtype)
        for i, (parent, c) in enumerate(zip(parents, cts, strict=True)):
            if parent is not None and c is not None:
                avals = own, Aval(parent.shape, parent.dtype)
                point = {"out": out, "operands": operands, "avals": avals, "params": params}
                fresh = primitive.fresh and c is not ct._value
                self.hand_on(sweep, node, parent, c, slope_of(primitive, i), point, ct, fresh)

    def pull_factors(self, sweep: Cotangents, node: Node, ct: Any, operands: Sequence[Any]) -> None:
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
                sweep.add(parent, make_tensor(c, self.tape if traced else None, made if traced else None), True)

    def hand_on(
        self,
        sweep: Cotangents,
        node: Node,
        parent: Node,
        c: Any,
        primitive: Linear,
        params: dict[str, Any],
        ct: Tensor,
        fresh: bool,
    ) -> None:
        """Add a cotangent that a linear operation has given for another, and record that unless nobody asks for it."""
        if c.shape != parent.shape:
            raise shape_error(node, c.shape, parent.shape)
        made = None
        if ct._trace is not None:
            made = new_node(primitive, (ct._node,), params, NOTHING[1], (node.code, node.offset), c)
        sweep.add(parent, make_tensor(c, ct._trace, made), fresh)


def lift_residual(value: Any, node: Node | None, tape: Tape) -> Any:
    """Return a residual as the Tensor it was, so that rules applied to it are recorded."""
    if type(value) is not ndarray and not isinstance(value, np.generic) and (node is None or not is_number(value)):
        return value
    tensor = make_tensor(value, None if node is None else tape, node)
    tensor._kept = True
    return tensor


def shape_error(node: Node, given: tuple[int, ...], needed: tuple[int, ...]) -> GraphError:
    """Return the error about a vjp that gave a cotangent of the wrong shape."""
    return GraphError(
        node.name,
        f"its vjp gave a cotangent of shape {given}",
        f"the shape {needed} of the operand is needed",
        "Correct the vjp of this primitive",
    )
