"""Sweeps that are recorded themselves, so that gradients have gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from wengert.core.cotangent import unbroadcast
from wengert.core.source import speaks_for
from wengert.primitives.joining import pad
from wengert.traces.lifting import lifted, lifted_output
from wengert.traces.parts import Part
from wengert.traces.plain_sweep import Sweep, released
from wengert.traces.recorders import single_function
from wengert.traces.tape import LargeBinary, LargeUnary, Node, Record, Single, Tape, Unary

__all__ = ["RecordedSweep"]

padded = single_function(pad)


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
    def pull_unary(self, node: Unary, ct: Any, _owns: bool = False) -> None:
        """Run the rules of an elementwise operation."""
        if node.released:
            raise released(node)
        out, operands = self.residuals(node)
        primitive = node.primitive.guarded if self.masked and node.number > self.masked else node.primitive
        for parent, rule in zip(node.parents, primitive.rules, strict=True):
            if parent is not None and rule is not None:
                c = rule(ct, out, *operands)
                if c.shape != parent.shape:
                    c = unbroadcast(c, parent.shape)
                self.add(parent, c, False)
        if not self.retain:
            node.release()

    pull_binary = pull_unary  # type: ignore[assignment]  # its node is read by properties that both kinds have

    def pull_single(self, node: Single, ct: Any, owns: bool) -> None:
        """Run the rule of an operation with parameters on one operand."""
        if node.x is None and node.out is None:
            super().pull_single(node, ct, owns)
        else:
            self.pull(node, ct, owns)

    def is_padding(self, node: Part, ct: Any) -> bool:
        """Tell whether a part is a slice of a good part of the whole, whose cotangent is not being added up yet.

        Small parts are added into one array: each would cost as much as the whole.
        """
        shape = node.parent.shape
        return (
            node.parent not in self.cts
            and len(shape) == len(node.shape) >= len(node.index)
            and 4 * ct.size >= math.prod(shape)
            and all(type(entry) is slice and entry.step in (None, 1) for entry in node.index)
        )

    @speaks_for("node")
    def pull_part(self, node: Part, ct: Any, owns: bool) -> None:
        """Put zeros around the cotangent of a slice, where that is best."""
        if not self.is_padding(node, ct):
            super().pull_part(node, ct, owns)
            return
        if node.used:
            raise released(node)
        node.used = not self.retain
        parent = node.parent
        starts = [entry.indices(length)[0] for entry, length in zip(node.index, parent.shape, strict=False)]
        starts += [0] * (len(parent.shape) - len(starts))
        ends = [n - start - part for n, start, part in zip(parent.shape, starts, node.shape, strict=True)]
        self.add(parent, padded(ct, {"widths": tuple(zip(starts, ends, strict=True))}), True)

    pulls: ClassVar[dict[type[Node], Callable[..., None]]] = {
        **Sweep.pulls,
        Single: pull_single,
        Record: Sweep.pull,
        Part: pull_part,
        LargeUnary: Sweep.pull,
        LargeBinary: Sweep.pull,
    }
