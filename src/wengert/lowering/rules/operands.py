"""Operands: what a rule of lowering is given of an equation, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Variable
from wengert.core.maps.index_maps import broadcast_map
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.lowering.nodes import Access, Nodes, Shape
from wengert.lowering.rules.scalars import Scalar, convert
from wengert.support.records import FieldRecord, NamedTuple

DType = np.dtype[Any]


class Refused(FieldRecord):
    """Say why an equation is not computed in a kernel."""

    reason: str


Found = Access | Refused


class Call(NamedTuple):
    """Hold an equation while it is lowered.

    Attributes:
        nodes: what makes nodes.
        primitive, params: what it does.
        operands: variables and literals.
        args: what the operands read.
        avals: shapes and dtypes of the operands.
        out: those of the result.
        result: which of several results is wanted.
        alone: for each operand whether no other equation reads it.
    """

    nodes: Nodes
    primitive: Primitive
    params: Mapping[str, Any]
    operands: Sequence[Any]
    args: Sequence[Access]
    avals: Sequence[Aval]
    out: Aval
    alone: Sequence[bool]
    result: int = 0

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the operands."""
        return [aval.shape for aval in self.avals]

    def scalar(self, i: int, dtype: DType, shape: Shape | None = None) -> Scalar:
        """Return an operand at a point of the result, or of another space, as a value of a dtype."""
        space = self.out.shape if shape is None else shape
        x = self.args[i]
        spread = broadcast_map(self.avals[i].shape, len(space))
        read = x if not x.map or x.map is spread else x.through(spread)
        return convert(Scalar(self.nodes, read, space), dtype)

    def convert_operand(self, i: int, dtype: DType) -> Access:
        """Return an operand, in its own shape, as values of a dtype."""
        return self.scalar(i, dtype, self.shapes[i]).access

    def has_room(self, i: int, dtype: DType) -> bool:
        """Tell whether an operand is no number that NumPy might refuse for want of room among whole ones of a dtype."""
        x = self.operands[i]
        if dtype.kind not in "iu" or self.shapes[i]:
            return True
        if type(x) is Variable:
            return np.can_cast(x.dtype, dtype)
        room = np.iinfo(dtype)
        return aval_of(x).dtype.kind in "biu" and bool(room.min <= x <= room.max)

    def literals(self, start: int) -> list[Any] | None:
        """Return the operands from one on as arrays; None if one of them is not known."""
        rest = self.operands[start:]
        return None if any(type(x) is Variable for x in rest) else list(map(np.asarray, rest))


Rule = Callable[[Call], Found]
"""A rule of lowering. `wengert.lowering.rules.lower` says which parameters it knows; others do not come to it."""


class Pair(NamedTuple):
    """A complex array: what its real and its imaginary part read."""

    real: Access
    imaginary: Access


Value = Access | Pair
"""What stands for a variable."""
