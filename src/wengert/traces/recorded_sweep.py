"""Sweeps that are recorded themselves, so that gradients have gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from wengert.core.cotangent import unbroadcast
from wengert.core.source import speaks_for
from wengert.core.tensor import Tensor
from wengert.core.views import current
from wengert.primitives.elementwise import passed
from wengert.primitives.joining import pad
from wengert.primitives.shapes import reshape
from wengert.traces.lifting import lifted, lifted_output
from wengert.traces.parts import Part
from wengert.traces.plain_sweep import Sweep
from wengert.traces.recorders import single_function
from wengert.traces.sweep_errors import released
from wengert.traces.tape import RELEASED, Binary, LargeBinary, LargeUnary, Node, Record, Single, Tape, Unary

__all__ = ["RecordedSweep"]

padded = single_function(pad)
reshaping = single_function(reshape)
FEW = 256


def reshaped(ct: Any, shape: tuple[int, ...]) -> Any:
    """Return a cotangent in another shape."""
    return current(reshaping(ct, {"shape": shape, "order": "C"}))


def placing(shape: tuple[int, ...], index: Sequence[Any]) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]] | None:
    """Return the shape of a part with all axes of the whole, and how many zeros there are around it.

    None if the index has other entries than integers and slices without steps.

    >>> placing((5, 4), (-1, slice(1, 3)))
    ((1, 2), ((4, 0), (1, 1)))
    """
    if len(index) > len(shape):
        return None
    lengths, widths = list(shape), [(0, 0)] * len(shape)
    for i, entry in enumerate(index):
        length = shape[i]
        if type(entry) is int:
            start, stop = entry % length, entry % length + 1
        elif type(entry) is slice and entry.step in (None, 1):
            start, stop, _ = entry.indices(length)
            stop = max(start, stop)
        else:
            return None
        lengths[i], widths[i] = stop - start, (start, length - stop)
    return tuple(lengths), tuple(widths)


class RecordedSweep(Sweep):
    """Be a sweep that is itself recorded: cotangents are Tensors, and residuals the Tensors that they were."""

    __slots__ = ("tape",)

    def __init__(
        self,
        retain: bool,
        wanted: Collection[Node] | None,
        watch: Callable[[Node, Any], None] | None,
        tape: Tape,
    ) -> None:
        super().__init__(retain, wanted, watch)
        self.tape = tape

    def residuals(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands of a node as the Tensors that they were."""
        out, operands = node.residuals()
        tensors = [None if x is None else lifted(x, p, self.tape) for x, p in zip(operands, node.parents, strict=True)]
        return None if out is None else lifted_output(out, node, self.tape), tensors

    @speaks_for("node")
    def pull_unary(self, node: Unary, ct: Any) -> None:
        """Run the rule of an elementwise operation on one operand."""
        x, out, tape = node.x, node.out, self.tape
        if x is RELEASED:
            raise released(node)
        if not self.retain:
            node.x = node.out = RELEASED
        primitive = node.primitive.guarded if self.masked and node.number > self.masked else node.primitive
        c = primitive.rules[0](
            ct,
            None if out is None else lifted(out, node, tape),
            None if x is None else lifted(x, node.parent, tape),
        )
        self.add(node.parent, c, False)

    @speaks_for("node")
    def pull_binary(self, node: Binary, ct: Any, _owns: bool) -> None:
        """Run the rules of an elementwise operation on two operands."""
        x, y, out, tape = node.x, node.y, node.out, self.tape
        if x is RELEASED:
            raise released(node)
        if not self.retain:
            node.x = node.y = node.out = RELEASED
        x = None if x is None else lifted(x, node.left, tape)
        y = None if y is None else lifted(y, node.right, tape)
        out = None if out is None else lifted(out, node, tape)
        primitive = node.primitive.guarded if self.masked and node.number > self.masked else node.primitive
        for parent, rule in zip((node.left, node.right), primitive.rules, strict=True):
            if parent is not None and rule is not None:
                c = ct if rule is passed else rule(ct, out, x, y)
                if c.shape != parent.shape:
                    c = unbroadcast(c, parent.shape)
                self.add(parent, c, False)

    @speaks_for("node")
    def pull_single(self, node: Single, ct: Any, owns: bool) -> None:
        """Run the rule of an operation with parameters on one operand."""
        x, out, tape = node.x, node.out, self.tape
        if x is None and out is None:
            super().pull_single(node, ct, owns)
            return
        if x is RELEASED:
            raise released(node)
        if not self.retain:
            node.x = node.out = RELEASED
        x = None if x is None else lifted(x, node.parent, tape)
        out = None if out is None else lifted(out, node, tape)
        (c,) = node.primitive.vjp(ct, out, (x,), (node.parent,), node.keywords)
        self.hand_out(node, (node.parent,), (c,), ct, fresh=node.primitive.fresh)

    @speaks_for("node")
    def pull_part(self, node: Part, ct: Any, owns: bool) -> None:
        """Put zeros around the cotangent of a part, where that is best: its cotangent is a part again.

        That is for a good part of the whole, or a small whole, whose cotangent is not being added up yet, unless a
        rule gave the cotangent as a constant.
        """
        parent = node.parent
        size = math.prod(parent.shape)
        added = type(ct) is not Tensor or parent in self.cts or (size > FEW and 4 * ct.size < size)
        place = None if added else placing(parent.shape, node.index)
        if place is None:
            super().pull_part(node, ct, owns)
            return
        if node.used:
            raise released(node)
        node.used = not self.retain
        shape, widths = place
        self.add(parent, padded(ct if ct.shape == shape else reshaped(ct, shape), {"widths": widths}), True)

    pulls: ClassVar[dict[type[Node], Callable[..., None]]] = {
        **Sweep.pulls,
        Single: pull_single,
        Record: Sweep.pull,
        Part: pull_part,
        LargeUnary: Sweep.pull,
        LargeBinary: Sweep.pull,
    }
