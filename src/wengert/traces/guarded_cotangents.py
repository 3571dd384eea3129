"""What a sweep must guard against: zeros for elements that were not chosen, and partials that may be infinite."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import bool_, ndarray

from wengert.core.graph.loop_spec import Items
from wengert.core.primitives.cotangent import guard, has_finite_square, may_have_nan
from wengert.core.values.aval import UNKNOWN, strong
from wengert.core.values.tensor import Tensor, is_staged, raw
from wengert.traces.cotangents import Cotangents
from wengert.traces.nodes import Node, source_of
from wengert.traces.steepness import may_be_steep

FOR_GOOD = -1
ALL = 0.5
"""Less than the number of every node."""


class GuardedCotangents(Cotangents):
    """Hold cotangents, and know which rules need guards.

    Once a mask has been passed they are `masked` for good: they then hold zeros for elements that were not chosen,
    whose values may be infinite, and every elementwise rule must give zero for these (x log x at 0, say). Once a guard
    has been passed, which is made within a rule, they are masked down to the number of the node where that rule began.
    They are `steep`, and every rule guarded, once a partial may have been infinite: partials of 0 give 0 for that.
    """

    __slots__ = ("masked", "steep", "untaken")

    masked: float
    steep: bool
    untaken: bool

    @property
    def masks(self) -> bool:
        """Whether it has passed a mask."""
        return self.masked == FOR_GOOD

    def mark(self, cts: dict[Node, Any]) -> None:
        """Let sweeps of what this one gives know that it has passed a mask; graphs have the guards that tell."""
        for node, ct in cts.items():
            if type(ct) is Tensor and ct._trace is not None and not is_staged(ct):
                cts[node] = guard(ct, 1.0, 1.0, masked=True)

    def guarded_primitive(self, node: Node) -> Any:
        """Return the primitive of a node with the guards that its rules need behind what has been passed."""
        return node.primitive if node.number <= self.masked else self.with_guards(node.primitive)

    def with_guards(self, primitive: Any) -> Any:
        """Return a primitive with guards as they are needed behind a mask, or an infinite partial."""
        return primitive.shielded_primitive(self.masks) if self.steep else primitive.guarded_primitive

    def pass_mask(self, node: Node, ct: Any, operands: Sequence[Any]) -> None:
        """Remember that a mask has been passed, if an operation is one, or has one among its residuals."""
        primitive = node.primitive
        if self.masked >= 0 and (primitive.masks or has_mask(operands) or (type(ct) is list and primitive.hides(ct))):
            self.masked = FOR_GOOD
        self.untaken = self.untaken or (primitive.masks and primitive.kind == "opaque")

    def keep_still(self, ct: Any, cts: Sequence[Any]) -> Sequence[Any]:
        """Return cotangents of a product, or of what else mixes elements, behind a branch that may not be taken.

        For that zeros stand, and in Python's own control flow nothing would be computed for what was made before: where
        no element of the cotangent is other than 0, NaN comes of values that are not finite, and is 0.
        """
        given = [c for c in (ct if type(ct) is list else [ct]) if c is not None]
        arrays = [(i, c) for i, c in enumerate(cts) if c is not None and c.dtype.kind in "fc" and not is_sequence(c)]
        at = [i for i, c in arrays if may_have_nan(c, True)]
        if not at or any(map(is_sequence, given)):
            return cts
        moving = functools.reduce(np.logical_or, [np.any(strong(c) != 0) for c in given])
        found = list(cts)
        for i in at:
            found[i] = guard(cts[i], cts[i], moving.astype(cts[i].dtype), masked=True, multiple=False)
        return found

    def notice(self, c: Any, ct: Any, out: Any) -> None:
        """Remember that a partial may have been infinite, if the cotangent that a rule gave shows it."""
        if self.steep or has_finite_square(c._value if type(c) is Tensor else c):
            return
        if may_be_steep(ct, c, out):
            self.turn_steep()

    def notice_any(self, cts: Sequence[Any], ct: Any) -> None:
        """Do so for what an operation that runs graphs sends back."""
        for c in cts:
            if c is not None:
                self.notice(c, ct, None)

    def turn_steep(self) -> None:
        """Guard every rule from now on."""
        self.steep = True
        if not self.masks:
            self.masked = ALL

    def pass_guard(self, node: Node) -> None:
        """Guard the rules of what made the result that a guard has passed: the operations since its tangent was made.

        Before these, values were finite where the guard acts, and singular operations have guards of their own. But
        if the sweep that made the guard had passed a mask, they need not be, and this one has passed it as well.
        """
        tangent = node.inputs[2]
        if "steep" in node.params:
            self.turn_steep()
        if tangent is None or node.params.get("masked"):
            self.masked = FOR_GOOD
        elif self.masked >= 0:
            self.masked = min(self.masked or tangent.number, tangent.number)


def is_sequence(ct: Any) -> bool:
    """Tell whether a cotangent is that of a sequence of a loop, which may be arrays that are not beside each other."""
    return UNKNOWN in ct.shape or (not is_staged(ct) and isinstance(raw(ct), Items))


def is_mask(node: Node) -> bool:
    """Tell whether every sweep that reaches a value passes a mask there."""
    source = source_of(node)
    primitive, saved = source.primitive, source.saved
    return primitive is not None and (primitive.masks or (isinstance(saved, tuple) and has_mask(saved)))


def has_mask(residuals: Sequence[Any]) -> bool:
    """Tell whether some residual is an array of booleans, or one of them."""
    for x in residuals:
        if x is None:
            continue
        kind = type(x)
        if kind is ndarray or kind is Tensor:
            if x.dtype.kind == "b":
                return True
        elif kind is bool or kind is bool_:
            return True
    return False
