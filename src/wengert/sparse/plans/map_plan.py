"""The plan by maps: a Jacobian as a sum of coefficient arrays at index maps, carried through the linear program.

There are no seeds and no colours: what is computed is what is stored. Where the elements go is worked out once, when
the plan is made; what does not depend on the arguments is a constant of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import wengert.numpy as wnp
from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.equation import Equation
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Array
from wengert.core.memory.buffers import array_of_bytes
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.tensor import is_staged
from wengert.passes.dead_code import eliminate_dead
from wengert.sparse.patterns.column_maps import column_maps
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.plans.plan_times import time_by_maps
from wengert.sparse.plans.value_walk import InnerValues, NotByMaps, TooManyPoints, ValueWalk
from wengert.support.records import NamedTuple
from wengert.transforms.tracing import trace

MOST_READ = 4
"""Up to so many contributions to each element are added one after the other; tables of more have lengths of their own.
"""
BLOCK = 1 << 18
"""Elements that are looked up at once: of 10^7, whole arrays of indices would take more memory than the matrix."""
LENGTHS = (0, 1, *[n for k in range(1, 31) for n in (1 << k, 3 << (k - 1))])
"""The lengths of tables: where elements have other numbers of contributions, zeros are added."""


class Contribution(NamedTuple):
    """Hold what one map contributes: the places of its elements, row by row and column by column, and values.

    Attributes:
        rows, columns: of each element.
        source: for each element, which of the values it is.
        values: in a row; a constant of the plan, or computed from the arguments.
    """

    rows: Array
    columns: Array
    source: Array
    values: Any


class Placement:
    """Say where contributions go among the elements that are stored, in the order of a CSR array.

    Attributes:
        pattern: the rows and columns of the elements.
        constant: the sum of the contributions that are constants, for each element.
        total: how many values contributions that are no constants have, in all.
        tables: the places of these contributions among all values: for elements that have as many, one behind the
            other, a row of each table for each of them; where an element has fewer, the place after the last.
        order: for each element its place among those of the tables; None where that is their order.
        most: the most contributions that an element has.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        contributions: Sequence[Contribution],
        moving: Sequence[bool],
        symmetric: bool = False,
    ) -> None:
        """Make the tables.

        Args:
            shape: of the matrix.
            contributions: to it.
            moving: which of them are no constants.
            symmetric: whether contributions are those to one half of a matrix and its diagonal; the other is the same.
        """
        rows, columns = join([one.rows for one in contributions]), join([one.columns for one in contributions])
        if symmetric:
            rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
        self.pattern, elements = number_elements(shape, rows, columns)
        del rows, columns  # of 10^7 elements they take as much memory as the matrix
        self.constant = np.zeros(self.pattern.count)
        sources, targets = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        self.total = start = 0
        for one, flag in zip(contributions, moving, strict=True):
            own = elements[start : start + len(one.rows)]
            start += len(one.rows)
            if flag:
                sources.append((one.source + np.int32(self.total)).astype(np.int32, copy=False))
                targets.append(own)
                self.total += math.prod(shape_of(one.values))
            else:
                fixed = np.asarray(one.values, float).reshape(-1)[one.source]
                self.constant += np.bincount(own, fixed, self.pattern.count)
        self.tables: list[Any] = []
        self.order: Array | None = None
        self.set_tables(np.concatenate(targets), np.concatenate(sources))
        if symmetric:
            self.mirror()
        # programs refer to what lies in bytes, and copy other constants
        self.constant, self.tables = array_of_bytes(self.constant), list(map(in_rows, self.tables))
        self.order = None if self.order is None else array_of_bytes(self.order)

    def set_tables(self, elements: Array, sources: Array) -> None:
        """Set the tables of contributions to elements."""
        counts = np.bincount(elements, minlength=self.pattern.count).astype(np.int32)
        self.most = int(counts.max(initial=0))
        if self.most <= MOST_READ:
            self.tables = [
                self.table(self.most, np.arange(self.pattern.count, dtype=np.int32), counts, elements, sources)
            ]
            return
        rounded = np.array(LENGTHS)[np.searchsorted(LENGTHS, counts)]
        order = np.argsort(rounded, kind="stable").astype(np.int32)
        self.order = np.empty_like(order)
        self.order[order] = np.arange(len(order), dtype=np.int32)
        ends = np.flatnonzero(np.diff(rounded[order], append=-1)) + 1
        by_element = np.argsort(elements, kind="stable")
        elements, sources = elements[by_element], sources[by_element]
        self.tables = [
            self.table(int(rounded[part[0]]), part, counts, elements, sources) for part in np.split(order, ends[:-1])
        ]

    def table(self, height: int, part: Array, counts: Array, elements: Array, sources: Array) -> Array:
        """Return the places of the contributions to some elements: of the first of each, of the second, and so on."""
        found = np.full((height, len(part)), self.total, np.int32)
        if height == 1 and len(part) == len(elements):
            found[0, elements] = sources
            return found
        if len(elements) and (np.diff(elements) < 0).any():
            by_element = np.argsort(elements, kind="stable")
            elements, sources = elements[by_element], sources[by_element]
        starts = np.cumsum(counts, dtype=np.int32)
        starts -= counts
        if height > len(part):  # few elements of many contributions each
            for column, element in enumerate(part):
                start, count = starts[element], counts[element]
                found[:count, column] = sources[start : start + count]
            return found
        for first in range(0, len(part), BLOCK):
            own = part[first : first + BLOCK]
            for k in range(height):
                here = np.flatnonzero(counts[own] > k)
                found[k, first + here] = sources[starts[own[here]] + k]
        return found

    def mirror(self) -> None:
        """Let elements below the diagonal stand above it, too."""
        self.pattern, own = mirror_pattern(self.pattern)
        self.constant = self.constant[own]
        self.order = own if self.order is None else self.order[own]

    def elements(self, values: Any) -> Any:
        """Return the elements that are stored, from all values that are no constants in one row."""
        if not self.most:
            return wnp.asarray(self.constant)
        if any((row == self.total).any() for table in self.tables for row in table):
            values = wnp.concatenate([values, np.zeros(1, values.dtype)])
        parts = [self.sums(values, table) for table in self.tables if len(table)]
        found = parts[0] if len(parts) == 1 else wnp.concatenate(parts)
        if len(self.tables) > len(parts):  # elements of constants alone
            found = wnp.concatenate([np.zeros(self.tables[0].shape[1], found.dtype), found])
        found = found if self.order is None else found[self.order]
        return found + self.constant if self.constant.any() else found

    def sums(self, values: Any, table: Sequence[Array]) -> Any:
        """Return the sums of contributions to the elements of a table."""
        if len(table) > MOST_READ:
            return wnp.sum(values[table], axis=0)
        found: Any = None
        for row in table:
            is_all = len(row) == values.shape[0] and row[0] == 0 and (np.diff(row) == 1).all()
            part = values if is_all else values[row]
            found = part if found is None else found + part
        return found


def in_rows(table: Array) -> Any:
    """Return a table that nobody can write to: of few rows each by itself, as it is read."""
    return list(map(array_of_bytes, table)) if 0 < len(table) <= MOST_READ else array_of_bytes(table)


def mirror_pattern(lower: Pattern) -> tuple[Pattern, Array]:
    """Return the symmetric pattern of one without elements above the diagonal, and which of these each element is."""
    from scipy.sparse import csr_array

    numbers: Any = csr_array((np.arange(1, lower.count + 1), lower.indices, lower.indptr), lower.shape)
    upper = numbers.T.tocsr()
    upper.setdiag(0)
    upper.eliminate_zeros()
    whole = (numbers + upper).tocsr()
    whole.sort_indices()
    return Pattern.of_scipy(whole), (whole.data - 1).astype(np.int32)


def number_elements(shape: tuple[int, int], rows: Array, columns: Array) -> tuple[Pattern, Array]:
    """Return the pattern of elements at these rows and columns, and which of its elements each is."""
    from scipy.sparse import coo_array

    index = np.int32 if max(*shape, len(rows)) < 2**31 else np.int64
    rows, columns = rows.astype(index, copy=False), columns.astype(index, copy=False)
    found = coo_array((np.arange(len(rows), dtype=index), (rows, columns)), shape).tocsr()
    found.sum_duplicates()
    pattern = Pattern(shape, found.indptr, found.indices)
    elements = np.empty(len(rows), index)
    if found.nnz == len(rows):
        elements[found.data] = np.arange(len(rows), dtype=index)
    else:
        keys = pattern.rows.astype(np.int64) * shape[1] + pattern.indices
        for first in range(0, len(rows), BLOCK):
            part = slice(first, first + BLOCK)
            elements[part] = np.searchsorted(keys, rows[part].astype(np.int64) * shape[1] + columns[part])
    return pattern, elements


class MapPlan:
    """Compute the elements that a Jacobian stores, by maps.

    Attributes:
        pattern: which elements are stored.
        count: of how many maps the Jacobian is the sum.
        most: how many points the maps of a value may have.
        dense: the equations that made it dense.
        time: about how many microseconds it takes.
    """

    def __init__(self, program: TangentProgram, args: Sequence[Any], most: float) -> None:
        self.program, self.most = program, most
        self.placement: Placement | None = None
        self.count = 0
        self.dense: Sequence[Equation] = ()
        graph = eliminate_dead(trace(self.elements)(*args))
        assert self.placement is not None
        self.time: float = time_by_maps(graph, self.placement.total + self.pattern.count)

    @property
    def pattern(self) -> Pattern:
        """The rows and columns of the elements."""
        assert self.placement is not None
        return self.placement.pattern

    def elements(self, *args: Any) -> Any:
        """Return the elements that are stored, for arguments, in the order of the pattern."""
        contributions = self.contributions(flatten(list(args))[0])
        moving = [is_staged(one.values) for one in contributions]
        self.count = len(contributions)
        if self.placement is None:
            shape = (self.program.rows, self.program.columns)
            self.placement = Placement(shape, contributions, moving)
        some = [wnp.reshape(one.values, (-1,)) for one, flag in zip(contributions, moving, strict=True) if flag]
        return self.placement.elements(wnp.concatenate(some) if len(some) > 1 else some[0] if some else None)

    def contributions(self, leaves: Sequence[Any]) -> list[Contribution]:
        """Return what each map contributes, for leaves of the arguments."""
        program = self.program
        walk = ValueWalk(program.columns, InnerValues)
        walk.most = self.most
        tangents = program.tangents
        maps = dict(zip(tangents, column_maps([v.shape for v in tangents], 1.0), strict=True))
        found = walk.run(program.graph, dict(zip(program.graph.inputs, leaves, strict=False)), maps)
        self.dense = walk.dense
        contributions = []
        start = 0
        for own, out in zip(found, program.graph.outputs, strict=True):
            shape = shape_of(out)
            contributions += [contribution(one, shape, program.columns, start) for one in own]
            start += math.prod(shape)
        return contributions


def contribution(one: BoxMap, shape: tuple[int, ...], columns: int, start: int) -> Contribution:
    """Return what a map contributes to the rows of an array that begins at a row."""
    rows, places = one.pairs(shape, (columns,))
    values = one.coefficient
    own = (1,) * (len(one.extents) - np.ndim(values)) + tuple(np.shape(values))
    numbers = np.arange(math.prod(own), dtype=np.int32).reshape(own)
    source = np.broadcast_to(numbers, one.extents).reshape(-1)
    index = np.int32 if max(start + math.prod(shape), columns) < 2**31 else np.int64
    return Contribution((rows + start).astype(index), places.astype(index), source, values)


def join(arrays: Sequence[Array]) -> Array:
    """Return arrays one after the other, of whole numbers if there are none."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])


def plan_by_maps(program: TangentProgram, args: Sequence[Any], most: float = math.inf) -> MapPlan | None:
    """Return the plan by maps of a program; None where coefficients cannot be carried through one of its operations.

    Args:
        program: from the tangents of some arguments to those of the results.
        args: the arguments, of the shapes and dtypes that the plan is for.
        most: how many points the maps of a value may have.

    Raises:
        TooManyPoints: some value has more.
    """
    if program.captured_count or any(aval_of(v).dtype.kind == "c" for v in (*program.tangents, *program.graph.outputs)):
        return None
    try:
        return MapPlan(program, args, most)
    except TooManyPoints:
        raise
    except NotByMaps:
        return None
