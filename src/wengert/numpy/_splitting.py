"""Splitting with NumPy's signatures: every part is a view."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.dispatch import implements
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.numpy._shapes import array_operand, require_ndim


def division_points(sections: int, length: int) -> list[int]:
    """Return where to cut a length into nearly equal sections, the longer ones first."""
    if sections <= 0:
        raise UsageError("array_split", f"{sections} sections", "at least one is needed", "Pass a positive number")
    short, longer = divmod(length, sections)
    return [i * short + min(i, longer) for i in range(sections + 1)]


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return views of the parts of an array, of nearly equal lengths; see `numpy.array_split`."""
    x = array_operand("array_split", ary)
    along = normalize_axis_index(axis, x.ndim)
    length = x.shape[along]
    if type(indices_or_sections) is int:
        points = division_points(indices_or_sections, length)
    else:
        try:
            points = [0, *map(operator.index, indices_or_sections), length]
        except TypeError:
            if not isinstance(indices_or_sections, float | np.generic | np.ndarray | Tensor):
                given, needed = f"{shown(indices_or_sections)} as sections", "a number, or a list of indices, is needed"
                raise UsageError("array_split", given, needed, "Pass a whole number") from None
            points = division_points(int(indices_or_sections), length)
    before = (slice(None),) * along
    return [x[(*before, slice(start, end))] for start, end in pairwise(points)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return views of the parts of an array, of equal lengths or between indices; see `numpy.split`."""
    x = array_operand("split", ary)
    if type(indices_or_sections) is int or np.ndim(indices_or_sections) == 0:
        length = x.shape[normalize_axis_index(axis, x.ndim)]
        if length % indices_or_sections:  # 2.5 goes into 4 no more than 3 does
            given = f"{indices_or_sections} sections for an axis of length {length}"
            needed = "a divisor of the length is needed"
            raise ShapeError("split", given, needed, "Use array_split for parts of different lengths")
    return array_split(x, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the second axis, or the only one; see `numpy.hsplit`."""
    x = require_ndim("hsplit", array_operand("hsplit", ary), 1)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the first axis of at least two; see `numpy.vsplit`."""
    return split(require_ndim("vsplit", array_operand("vsplit", ary), 2), indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the third axis; see `numpy.dsplit`."""
    return split(require_ndim("dsplit", array_operand("dsplit", ary), 3), indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the layers along an axis; see `numpy.unstack`."""
    array = require_ndim("unstack", array_operand("unstack", x), 1)
    along = normalize_axis_index(axis, array.ndim)
    before = (slice(None),) * along
    return tuple(array[(*before, i)] for i in range(array.shape[along]))
