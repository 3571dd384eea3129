"""Inner loops as jobs of a team: the native functions that `inner_loops` hands arrays to."""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.functions import native
from wengert.native.objects import ALIGNED, ARRAY, CONTIGUOUS
from wengert.native.structs import I8, I64, POINTER, VOID, Array, Pointer, Struct
from wengert.native.threads.job_tables import LOOP, SHARED
from wengert.native.values import Value

PART = 64  # elements of a part of a job: whole cache lines, so that threads write to none together
GRAIN = 128  # parts that a thread takes at once
UNSUITABLE = -1

ROWS = Struct(
    "Rows",
    loop=Pointer(LOOP),
    count=I64,  # elements
    length=I64,  # elements of a row
    axes=I64,  # how many axes number the rows
    shape=Pointer(I64),  # of the result
    data=Array(Pointer(I8), 3),  # of the operands and the result
    strides=Array(I64, 3),  # bytes from an element to the next: 0 for a number
    jumps=Array(Pointer(I64), 3),  # strides along the axes that number the rows; none for a number
)
"""What is to be computed: rows of elements without gaps; all are one row if there are none between rows either."""


@native(I64, Pointer(SHARED), Pointer(LOOP), Pointer(ARRAY), Pointer(ARRAY), Pointer(ARRAY))
def apply(b: Builder, team: Value, loop: Value, x: Value, y: Value, out: Value) -> None:
    """Apply a loop to arrays of one shape, or of none; return what `dispatch` does.

    UNSUITABLE if NumPy would have to convert or broadcast an operand, if there are gaps within rows, or if the rows are
    short.
    """
    rows = b.stack(ROWS)
    second = b.select(loop.get("operands").equals(1), out, y)
    for number, array in enumerate((x, second, out)):
        step = b.call(stride, array, out, loop.get("size"))
        b.give_if(step < 0, UNSUITABLE)
        rows.field("data").at(number).store(array.get("data"))
        rows.field("strides").at(number).store(step)
        rows.field("jumps").at(number).store(b.select(step.differs(0), array.get("strides"), None))
    gaps = has_gaps(x) | has_gaps(second) | has_gaps(out)
    last, shape = out.get("rank").widen(I64) - 1, out.get("shape")
    count = b.call(elements, out)
    length = b.select(gaps, shape.at(last).load(), count)
    b.give_if(length < PART, UNSUITABLE)
    rows.set("loop", loop)
    rows.set("count", count)
    rows.set("length", length)
    rows.set("axes", b.select(gaps, last, 0))
    rows.set("shape", shape)
    b.give(b.call(team.get("dispatch"), team, compute, rows, (count + (PART - 1)) // PART, GRAIN))


@native(VOID, POINTER, I64, I64)
def compute(b: Builder, argument: Value, first: Value, last: Value) -> None:
    """Compute lines of elements from the first to the last: what of each row lies between."""
    rows = argument.to(ROWS)
    loop, length = rows.get("loop"), rows.get("length")
    start, end = first * PART, b.least(last * PART, rows.get("count"))
    addresses, size = b.stack(Array(Pointer(I8), 3)), b.stack(I64)
    with b.loop((end - 1) // length + 1, start // length) as row:
        begin = row.index * length
        column = b.select(begin < start, start - begin, 0)
        size.store(b.least(end - begin, length) - column)
        for number in range(3):
            data, step, jumps = (rows.field(name).at(number).load() for name in ("data", "strides", "jumps"))
            addresses.at(number).store(data.at(b.call(jump, rows, jumps, row.index) + step * column))
        b.do(loop.get("function"), addresses, size, rows.field("strides"), loop.get("data"))


@native(I64, Pointer(ROWS), Pointer(I64), I64)
def jump(b: Builder, rows: Value, strides: Value, row: Value) -> None:
    """Return the bytes from the first row of an operand, or of the result, to another."""
    b.give_if(strides.equals(None), 0)
    axes, shape = rows.get("axes"), rows.get("shape")
    with b.loop(axes, carry=[row, 0]) as outward:
        rest, moved = outward.values
        axis = axes - 1 - outward.index
        length = shape.at(axis).load()
        outward.next(rest // length, moved + rest % length * strides.at(axis).load())
    b.give(outward.results[1])


def has_gaps(array: Value) -> Value:
    """Return whether an array is not C-contiguous."""
    return (array.get("flags") & CONTIGUOUS).equals(0)


@native(I64, Pointer(ARRAY))
def elements(b: Builder, array: Value) -> None:
    """Return how many elements an array has."""
    shape = array.get("shape")
    with b.loop(array.get("rank").widen(I64), carry=[1]) as axes:
        axes.next(axes.values[0] * shape.at(axes.index).load())
    b.give(axes.results[0])


@native(I64, Pointer(ARRAY), Pointer(ARRAY), I64)
def stride(b: Builder, array: Value, out: Value, size: Value) -> None:
    """Return the bytes from one element of an operand to the next within a row of the result.

    The size of an element where it has the result's shape, 0 where it has no dimensions, UNSUITABLE if it does not
    suit. Strides must fall from axis to axis, so that NumPy's result is C-contiguous.
    """
    rank, out_rank = array.get("rank").widen(I64), out.get("rank").widen(I64)
    b.give_if(array.get("dtype").differs(out.get("dtype")) | (array.get("flags") & ALIGNED).equals(0), UNSUITABLE)
    b.give_if(rank.equals(0), 0)
    b.give_if(rank.differs(out_rank), UNSUITABLE)
    shape, out_shape = array.get("shape"), out.get("shape")
    with b.loop(rank) as axes, b.when(shape.at(axes.index).load().differs(out_shape.at(axes.index).load())):
        b.give(UNSUITABLE)
    with b.when(has_gaps(array)):
        strides = array.get("strides")
        b.give_if(strides.at(rank - 1).load().differs(size), UNSUITABLE)
        with b.loop(rank, carry=[size]) as axes:
            step = strides.at(rank - 1 - axes.index).load()
            b.give_if(step < axes.values[0], UNSUITABLE)
            axes.next(step)
    b.give(size)
