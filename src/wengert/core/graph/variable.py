"""Variables of graphs: they stand for arrays that are not there yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.memory.memory_layout import Strides
from wengert.core.values.aval import Aval, aval_text


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
