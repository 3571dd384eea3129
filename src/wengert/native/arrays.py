"""Questions about arrays, asked by native code."""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.functions import native
from wengert.native.objects import ALIGNED, ARRAY, CONTIGUOUS
from wengert.native.structs import I64, Pointer
from wengert.native.values import Value

UNSUITABLE = -1


def has_gaps(array: Value) -> Value:
    """Return whether an array is not C-contiguous."""
    return (array.get("flags") & CONTIGUOUS).equals(0)


@native(I64, Pointer(ARRAY))
def elements(b: Builder, array: Value) -> None:
    """Return how many elements an array has."""
    shape = array.get("shape")
    with b.loop(array.get("rank").widened(I64), carry=[1]) as axes:
        axes.next(axes.values[0] * shape.at(axes.index).load())
    b.give(axes.results[0])


@native(I64, Pointer(ARRAY), Pointer(ARRAY), I64)
def stride(b: Builder, array: Value, out: Value, size: Value) -> None:
    """Return the bytes from one element of an operand to the next within a row of the result.

    The size of an element where it has the result's shape, 0 where it has no dimensions, UNSUITABLE if it does not
    suit. Strides must fall from axis to axis, so that NumPy's result is C-contiguous.
    """
    rank, out_rank = array.get("rank").widened(I64), out.get("rank").widened(I64)
    with b.when(array.get("dtype").differs(out.get("dtype")) | (array.get("flags") & ALIGNED).equals(0)):
        b.give(UNSUITABLE)
    with b.when(rank.equals(0)):
        b.give(0)
    with b.when(rank.differs(out_rank)):
        b.give(UNSUITABLE)
    shape, out_shape = array.get("shape"), out.get("shape")
    with b.loop(rank) as axes, b.when(shape.at(axes.index).load().differs(out_shape.at(axes.index).load())):
        b.give(UNSUITABLE)
    with b.when(has_gaps(array)):
        strides = array.get("strides")
        with b.when(strides.at(rank - 1).load().differs(size)):
            b.give(UNSUITABLE)
        with b.loop(rank, carry=[size]) as axes:
            step = strides.at(rank - 1 - axes.index).load()
            with b.when(step < axes.values[0]):
                b.give(UNSUITABLE)
            axes.next(step)
    b.give(size)
