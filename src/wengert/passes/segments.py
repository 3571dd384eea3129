"""Segments: a graph as programs of kernels, and what NumPy computes between them.

Kernels read and write values in C order, of their axes in some order. An array that fills its memory in another order
than C, as one in Fortran's order does, is one in C order of its axes in that order: kernels read and write it where it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.loop_spec import Items
from wengert.core.memory.memory_layout import Joined, axes_without_gaps, example, lie_alike, lies_along
from wengert.core.values.aval import PARTS, UNKNOWN
from wengert.native.entries.kinds import ArrayKind, CopyKind, Kind, NumberKind, SameKind
from wengert.native.executable import ENDLESS
from wengert.passes.output_aliasing import axes_in_kernels
from wengert.primitives.shapes import inverse
from wengert.support.records import Record

Arrays = Sequence[np.ndarray[Any, Any]]


class Segment(Record):
    """Hold equations that run together.

    Attributes:
        graph: from the variables that they read to those that are read later.
        program: what computes it, kernels or machine code; None where NumPy does.
        reasons: why NumPy does, for each equation.
        dropped: the variables that nothing reads after it.
        is_whole: whether it computes all results, but for known numbers, from all inputs. What a program gives after
            them is whether a place was out of bounds.
    """

    def __init__(
        self,
        graph: Graph,
        program: Any,
        reasons: tuple[str, ...],
        dropped: tuple[Variable, ...],
        is_whole: bool = False,
    ) -> None:
        self.graph, self.program, self.reasons = graph, program, reasons
        self.dropped, self.is_whole = dropped, is_whole


class Segments(Record):
    """Hold a graph in segments, in order.

    Attributes:
        graph: the graph.
        parts: the segments.
    """

    def __init__(self, graph: Graph, parts: tuple[Segment, ...]) -> None:
        self.graph, self.parts = graph, parts

    @property
    def whole(self) -> Any:
        """The program that computes all results, but for known numbers, from all inputs, if one does."""
        return self.parts[0].program if self.parts and self.parts[0].is_whole else None

    def run(
        self,
        inputs: Sequence[Any],
        call: Callable[[Any, Arrays], Arrays],
        evaluated: Callable[[Graph, Sequence[Any]], Sequence[Any]] = evaluate,
        instead: Callable[[Graph, Sequence[Any]], Sequence[Any]] = evaluate,
    ) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the inputs.

        Args:
            inputs: one for each input of the graph.
            call: what carries out a program on C-contiguous arrays.
            evaluated: what computes the rest.
            instead: what computes what a program could not: where a place is out of bounds, NumPy raises its error.
        """
        values: dict[Variable, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        for part in self.parts:
            outputs, given = part.graph.outputs, [values[v] for v in part.graph.inputs]
            if part.program is None:
                results = evaluated(part.graph, given)
            else:
                arrays = call(part.program, list(map(as_array, part.graph.inputs, given)))
                if len(arrays) > len(outputs) and arrays[-1]:
                    results = instead(part.graph, given)
                else:
                    made = zip(outputs, arrays, strict=False)
                    results = [as_value(x, array) if type(x) is Variable else x for x, array in made]
            values.update({x: y for x, y in zip(outputs, results, strict=True) if type(x) is Variable})
            for variable in part.dropped:
                del values[variable]
        return tuple([values[x] if type(x) is Variable else x for x in self.graph.outputs])


def with_programs(segments: Segments, convert: Callable[[Any], Any]) -> Segments:
    """Return segments whose programs are what others become."""
    programs = [None if part.program is None else convert(part.program) for part in segments.parts]
    parts = [
        Segment(part.graph, program, part.reasons, part.dropped, part.is_whole)
        for part, program in zip(segments.parts, programs, strict=True)
    ]
    return Segments(segments.graph, tuple(parts))


def without_numbers(outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a graph that are not known before, and those that are arrays with elements."""
    return tuple([x for x in outputs if type(x) is Variable or (type(x) is np.ndarray and x.size)])


def as_array(variable: Variable, value: Any) -> np.ndarray[Any, Any]:
    """Return a value as an array of its variable's dtype, as kernels read it; a complex one as pairs.

    Zeros of which nobody knows how many there are become one row that stands for more than anybody reads.
    """
    if isinstance(value, Items):
        if value.arrays is None:
            row = side_by_side(np.zeros(variable.shape[1:], variable.dtype))
            return np.broadcast_to(row, (ENDLESS, *row.shape))
        value = np.asarray(value.arrays, variable.dtype).reshape((len(value.arrays), *variable.shape[1:]))
    array = np.asarray(value, variable.dtype)
    if variable.strides is not None:
        array = np.transpose(array, axes_in_kernels(variable))
    return side_by_side(array)


def side_by_side(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array as kernels read it, in C order; a complex one as pairs."""
    array = np.asarray(array, order="C")
    part = PARTS.get(array.dtype)
    return array if part is None else array.reshape(-1).view(part).reshape((*array.shape, 2))


def as_value(variable: Variable, array: np.ndarray[Any, Any]) -> Any:
    """Return what kernels wrote as NumPy would give it: in the variable's memory order, a scalar, a Python number."""
    if UNKNOWN in variable.shape:
        if len(array) == ENDLESS:
            return Items(variable.aval, None)
        shape = len(array), *variable.shape[1:]
        return Items(variable.aval, np.asarray(array).reshape(-1).view(variable.dtype).reshape(shape))
    if variable.dtype in PARTS:
        array = array.reshape(-1).view(variable.dtype).reshape(array.shape[:-1])
    if variable.weak:
        return array.item()
    if variable.strides is None or overlap(variable):
        return array if array.shape else array[()]
    array = np.transpose(array, inverse(axes_in_kernels(variable)))
    if lie_alike(variable.shape, array.strides, variable.strides):
        return array
    found = example(variable.shape, variable.strides, variable.dtype)
    found[...] = array
    return found


def overlap(variable: Variable) -> bool:
    """Tell whether elements of a value share memory, as those of what is broadcast do, which nobody can write apart."""
    return any(n > 1 and step == 0 for n, step in zip(variable.shape, variable.strides or (), strict=False))


def array_kind(variable: Variable) -> ArrayKind:
    """Return the dtype and shape of the arrays that kernels read and write for a variable."""
    shape = tuple([variable.shape[axis] for axis in axes_in_kernels(variable)])
    part = PARTS.get(variable.dtype)
    return ArrayKind(variable.dtype, shape) if part is None else ArrayKind(np.dtype(part), (*shape, 2))


def buffers_of(graph: Graph) -> list[tuple[str, tuple[int, ...]]]:
    """Return the dtypes and shapes of the arrays that a program reads and writes for a graph, as plain data."""
    arrays = (*graph.inputs, *without_numbers(graph.outputs))
    kinds = [array_kind(x) if type(x) is Variable else ArrayKind(x.dtype, x.shape) for x in arrays]
    return [(kind.dtype.str, kind.shape) for kind in kinds]


def kind_for(variable: Variable, kind: ArrayKind | NumberKind) -> ArrayKind | NumberKind | None:
    """Return the kind of arguments that kernels get for a variable, where those of a kind are given; None if of others.

    What does not lie as kernels read it is copied.
    """
    if isinstance(kind, NumberKind):
        return kind if not variable.shape and np.dtype(kind.type) == variable.dtype else None
    if kind.shape != variable.shape or kind.dtype != variable.dtype:
        return None
    axes = axes_without_gaps(variable.shape, variable.strides, variable.dtype.itemsize)
    if axes is None:
        return kind if kind.strides is None else ArrayKind(kind.dtype, kind.shape, kind.strides, is_copied=True)
    lies = kind.strides is not None and lies_along(kind.shape, kind.strides, kind.dtype.itemsize, axes)
    return kind if lies else None


def result_kind(x: Any) -> Kind | None:
    """Return the kind of a result; None if kernels cannot write it as it lies in memory.

    One that lies in one of several ways they write in C order, as `as_value` has it.
    """
    if type(x) is not Variable:
        if type(x) is np.ndarray:
            return ArrayKind(np.dtype(x.dtype.type), x.shape) if x.size else CopyKind(x)
        return SameKind(x)
    if UNKNOWN in x.shape:
        return None
    if x.weak:
        return NumberKind(x.aval.number)
    if not x.shape:
        return NumberKind(x.dtype.type)
    if x.strides is None or type(x.strides) is Joined:
        return ArrayKind(np.dtype(x.dtype.type), x.shape)
    axes = axes_without_gaps(x.shape, x.strides, x.dtype.itemsize)
    return None if axes is None else ArrayKind(np.dtype(x.dtype.type), x.shape, x.strides)
