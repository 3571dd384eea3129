"""Equations, the variables that they bind, and lists of equations between inputs and outputs, which graphs are.

Variables stand for arrays that are not there yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from wengert.core.diagnostics.source_positions import Position, position_of
from wengert.core.memory.memory_layout import Strides
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of, aval_text
from wengert.errors import DtypeError


class Variable:
    """Stand for an array of a known shape and dtype; identity is what distinguishes variables.

    Attributes:
        shape, dtype: of the values it stands for.
        weak: whether these are Python numbers.
        name: what the printer calls it, where the user gave a name.
        strides: how the values lie in memory; see `wengert.core.memory.memory_layout`.

    >>> import numpy as np, wengert as wg
    >>> (x,) = wg.graph.trace(np.sin)(np.ones(3)).inputs
    >>> x.shape, x.dtype, x.weak
    ((3,), dtype('float64'), False)
    """

    __slots__ = ("dtype", "name", "shape", "strides", "weak")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        name: str = "",
        strides: Strides = None,
        weak: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak = weak
        self.name = name
        self.strides = strides

    @classmethod
    def of(cls, aval: Aval, name: str = "", strides: Strides = None) -> Variable:
        """Return a new variable for values of an aval."""
        return cls(aval.shape, aval.dtype, name, strides, aval.weak)

    @property
    def aval(self) -> Aval:
        """Shape and dtype together."""
        return Aval(self.shape, self.dtype, self.weak)

    def __repr__(self) -> str:
        return f"{self.name or 'v'}: {aval_text(self)}"


class Equation:
    """Bind the results of one primitive.

    Attributes:
        primitive: the operation.
        inputs: variables and literals.
        params: its parameters.
        outputs: the variables it binds.
        origin: where in the user's program it was traced, if known: a position, or the code object and offset of one.

    >>> import wengert as wg
    >>> (equation,) = wg.graph.trace(lambda x: x * 2.0)(1.0).equations
    >>> equation.primitive.name, equation.inputs[1], equation.outputs[0].dtype
    ('multiply', 2.0, dtype('float64'))
    >>> equation
    <equation multiply: float, float -> float>
    """

    __slots__ = ("inputs", "origin", "outputs", "params", "primitive")

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Any, ...],
        params: Mapping[str, Any],
        outputs: tuple[Variable, ...],
        origin: Position | tuple[CodeType, int] | None = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.origin = origin

    @property
    def position(self) -> Position | None:
        """The source position; worked out only when it is asked for."""
        origin = self.origin
        return origin if origin is None or isinstance(origin, Position) else position_of(*origin)

    def __repr__(self) -> str:
        given = ", ".join(aval_text(x if type(x) is Variable else aval_of(x)) for x in self.inputs)
        return f"<equation {self.primitive.name}: {given} -> {', '.join(map(aval_text, self.outputs))}>"

    def using(self, inputs: tuple[Any, ...]) -> Equation:
        """Return an equation with other operands, and the primitive, parameters and outputs of this one."""
        return Equation(self.primitive, inputs, self.params, self.outputs, self.origin)


class EquationList:
    """Hold what a graph consists of, for those who print and draw it; `Graph` says what these are."""

    __slots__ = ("equations", "inputs", "outputs")

    inputs: tuple[Variable, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Any, ...]


Listed = TypeVar("Listed", bound=EquationList)


def lists_among(params: Mapping[str, Any], kind: type[Listed]) -> Iterator[tuple[str, Listed]]:
    """Yield the lists of a kind among parameters, also those in tuples."""
    for key, value in params.items():
        if isinstance(value, kind):
            yield key, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, kind):
                    yield f"{key}[{i}]", item


def require_graph(name: str, value: Any) -> None:
    """Raise a DtypeError unless a value is a graph."""
    if not isinstance(value, EquationList):
        raise DtypeError(name, f"a {type(value).__name__}", "a graph is needed", "Make one with wengert.graph.trace")
