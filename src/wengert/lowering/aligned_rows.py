"""Matrices that each round of a loop multiplies by: read from rows that begin where lines of the cache do.

Vectors that lie across two lines come from a processor's second cache at half its speed (65 for 130 GB/s). NumPy's
arrays begin anywhere, and rows of 131 numbers end anywhere, so such a matrix is copied once, before the loop, into
longer rows, of an odd number of lines: those of an even one would come to lie in the same places of the cache. Where
columns lie side by side they become rows, so that no round packs a transposed factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import LoopSpec
from wengert.core.values.aval import Aval
from wengert.lowering.products import Views, labels_of, views_behind
from wengert.passes.equations import is_view
from wengert.primitives.indexing.parts import getitem
from wengert.primitives.shapes import pad, surround_with_zeros
from wengert.support.machine import MACHINE

__all__ = ["lengthen", "lengthen_array", "matrices_in_longer_rows"]


def matrices_in_longer_rows(body: Graph, spec: LoopSpec) -> Iterator[tuple[int, Equation]]:
    """Iterate over the constants of a loop that it pays to copy, by place, each as a part of what it is copied to."""
    if spec.length is None or spec.length < MACHINE.aligned_rounds:
        return
    made = {v: equation for equation in body.equations for v in equation.outputs}
    for i, v in enumerate(body.inputs[: spec.constants]):
        if is_large_matrix(v) and v not in body.outputs and is_for_products(v, body, made):
            index = slice(0, v.shape[0]), slice(0, v.shape[1])
            yield i, Equation(getitem, (in_longer_rows(v),), {"index": index}, (v,))


def is_large_matrix(v: Variable) -> bool:
    """Tell whether a variable is a matrix that the second cache has room for, and the first one none."""
    is_matrix = len(v.shape) == 2 and v.dtype.kind == "f"
    return is_matrix and MACHINE.first_cache < math.prod(v.shape) * v.dtype.itemsize <= MACHINE.second_cache


def is_for_products(v: Variable, body: Graph, made: Views) -> bool:
    """Tell whether a body reads a matrix, or views of it, in products alone."""
    own = {v}
    own.update([x for x, equation in made.items() if is_view(equation) and source_of(x, made) is v])
    readers = [e for e in body.equations if not is_view(e) and any(type(x) is Variable and x in own for x in e.inputs)]
    return bool(readers) and all(labels_of(e) is not None for e in readers)


def source_of(x: Variable, made: Views) -> Any:
    """Return what a view is of."""
    return views_behind(x, made)[0].inputs[0]


def in_longer_rows(v: Variable) -> Variable:
    """Return a variable for what a matrix is copied to."""
    rows, columns = v.shape
    lines = columns * v.dtype.itemsize // MACHINE.line + 1
    return Variable.of(Aval((rows, (lines + (lines + 1) % 2) * MACHINE.line // v.dtype.itemsize), v.dtype))


def lengthen(x: Variable, like: Variable) -> Equation:
    """Return the equation that writes a matrix into longer rows."""
    return Equation(pad, (x,), {"widths": widths_between(x, like)}, (Variable.of(like.aval),))


def lengthen_array(x: Any, like: Variable) -> Any:
    """Return a matrix in longer rows."""
    return surround_with_zeros(x, widths=widths_between(x, like))


def widths_between(x: Any, like: Variable) -> tuple[tuple[int, int], ...]:
    """Return how many zeros are to stand around a matrix."""
    return tuple([(0, long - length) for length, long in zip(x.shape, like.shape, strict=True)])
