"""What functions share that are written for a dtype and all sizes: tiles of vectors whose sums stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import F32, F64, I64, VOID, Pointer, Signature, Type, vector_of
from wengert.native.values import Value
from wengert.support.caches import cached

SCALARS = {"float64": F64, "float32": F32}
SQUARE = 8
"""Rows and columns that are transposed at once."""


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

    def function(
        self, name: str, kinds: tuple[Type, ...], body: Callable[..., None], parameters: tuple[str, ...] = ()
    ) -> NativeFunction:
        """Return a function of this dtype."""
        return NativeFunction(f"{self.prefix}{name}.{self.dtype}", Signature(VOID, kinds), body, parameters)

    def add_product(self, b: Builder, x: Value, y: Value, total: Value) -> Value:
        """Return the sum of a product and a total."""
        return b.intrinsic("fma", self.vector, x, y, total) if self.target.fuses else x * y + total

    def sum_lanes(self, b: Builder, x: Value) -> Value:
        """Return the sum of the numbers of a vector, half by half."""
        half = self.lanes // 2
        while half:
            x, half = b.shuffle(x, range(half)) + b.shuffle(x, range(half, 2 * half)), half // 2
        return b.extract(x, 0)

    # ---------------------------------------------------------------- packing

    @cached
    def pack(self) -> NativeFunction:
        """The function that puts lines side by side: target[q * width + r] = source[q * along + r * across]."""
        kinds = (self.address, I64, I64, I64, I64, I64, self.address)

        def body(
            b: Builder,
            source: Value,
            along: Value,
            across: Value,
            lines: Value,
            width: Value,
            length: Value,
            target: Value,
        ) -> None:
            def one_by_one(first: Value | int, stop: Value, start: Value | int) -> None:
                with b.loop(stop, first) as q, b.loop(lines, start) as r:
                    x = source.at(q.index * along).at(r.index * across).load()
                    target.at(q.index * width).at(r.index).store(x)

            with b.when(across.equals(1)):
                whole = lines - lines % self.lanes
                with b.loop(length) as q, b.loop(whole, step=self.lanes) as r:
                    place = source.at(q.index * along).at(r.index)
                    place.at(width).bring(written=False)  # the lines that are packed next
                    x = place.to(self.vector).load()
                    target.at(q.index * width).at(r.index).to(self.vector).store(x)
                one_by_one(0, length, whole)
                b.give()
            with b.when(along.equals(1)):
                whole, wide = length - length % SQUARE, lines - lines % SQUARE
                self.transpose(b, source, across, wide, width, whole, target)
                one_by_one(0, whole, wide)
                one_by_one(whole, length, 0)
                b.give()
            one_by_one(0, length, 0)

        return self.function("pack", kinds, body)

    def transpose(
        self, b: Builder, source: Value, across: Value, lines: Value, width: Value, length: Value, target: Value
    ) -> None:
        """Write what packs whole squares of lines whose elements lie side by side."""
        square = vector_of(self.scalar, SQUARE)
        with b.loop(length, step=SQUARE) as q, b.loop(lines, step=SQUARE) as r:
            first = source.at(r.index * across).at(q.index)
            lanes = [first.at(across * n).to(square).load() for n in range(SQUARE)]
            place = target.at(q.index * width).at(r.index)
            for n, x in enumerate(transpose_square(b, lanes)):
                place.at(width * n).to(square).store(x)


def transpose_square(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """Return the columns of a square of vectors: in each round blocks half as large change places."""
    found, count = list(rows), len(rows)
    step = count // 2
    while step:
        before = list(found)
        low = [n - step + count if n & step else n for n in range(count)]
        high = [n + count if n & step else n + step for n in range(count)]
        for n in range(count):
            if not n & step:
                found[n], found[n + step] = (
                    b.shuffle_pair(before[n], before[n + step], places) for places in (low, high)
                )
        step //= 2
    return found
