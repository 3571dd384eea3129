"""What functions share that are written for a dtype and all sizes: tiles of vectors whose sums stay in registers."""

from __future__ import annotations

from collections.abc import Callable

from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import F32, F64, VOID, Pointer, Signature, Type, vector_of
from wengert.native.values import Value

SCALARS = {"float64": F64, "float32": F32}


class TiledFunctions:
    """Write the functions of one dtype.

    Attributes:
        prefix: what the names of these functions begin with.
    """

    prefix = ""

    def __init__(self, dtype: str, target: Target) -> None:
        self.dtype, self.target, self.scalar = dtype, target, SCALARS[dtype]
        self.lanes = target.vector_bytes * 8 // self.scalar.bits
        self.vector, self.address = vector_of(self.scalar, self.lanes), Pointer(self.scalar)

    def function(self, name: str, kinds: tuple[Type, ...], body: Callable[..., None]) -> NativeFunction:
        """Return a function of this dtype."""
        return NativeFunction(f"{self.prefix}{name}.{self.dtype}", Signature(VOID, kinds), body)

    def add_product(self, b: Builder, x: Value, y: Value, total: Value) -> Value:
        """Return the sum of a product and a total."""
        return b.intrinsic("fma", self.vector, x, y, total) if self.target.fuses else x * y + total
