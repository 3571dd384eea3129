"""What users pass as numbers to start from: containers of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten


def as_example(value: Any) -> Any:
    """Return containers of floats; lists and tuples of numbers as arrays, and integers as floats, as SciPy does."""
    leaves, structure = flatten(np.array(value, dtype=float) if is_array(value) else value)
    return unflatten(structure, [as_floats(leaf) for leaf in leaves])


def is_array(value: Any) -> bool:
    """Tell whether something is a list of numbers or of rows of them; named tuples are containers with fields."""
    if type(value) not in (list, tuple):
        return False
    rows = value if value and all(type(x) in (list, tuple) for x in value) else [value]
    numbers = all(isinstance(x, int | float | np.number) for row in rows for x in row)
    return numbers and len({len(row) for row in rows}) == 1


def as_floats(leaf: Any) -> Any:
    """Return a leaf of integers as one of floats; any other as it is."""
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        return float(leaf)
    return leaf.astype(float) if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "iu" else leaf
