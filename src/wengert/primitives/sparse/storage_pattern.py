"""Where the stored elements of a sparse matrix stand: its format, shape and index arrays, in SciPy's words.

A sparse matrix is a container with one leaf, the stored elements, and this as its structure. So a pattern is looked up
whenever a matrix is taken apart, at each call of a jitted function, too, and must not be read each time to tell which
it is. The same index arrays mean the same pattern: those that nobody can write to are known by their identity, others
are compared with the copy that the pattern has, which takes up to a quarter of the time of a product.
"""

from __future__ import annotations

import copy
import functools
import math
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from wengert.core.graph.identity import Composite, identity
from wengert.core.memory.buffers import array_of_bytes, may_change
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.native.entries.kinds import KNOWN_BY_PLACE
from wengert.pictures.pattern_pictures import pattern_svg
from wengert.support.caches import WeakIdentityMap, cached

Shape = tuple[int, ...]
Arrays = tuple[np.ndarray[Any, Any], ...]

NAMES = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "bsr": ("indices", "indptr"), "dia": ("offsets",)}
"""The attributes of SciPy's classes that are index arrays; of `coo` it is one for each axis, `coords`."""
FORMATS = ("bsr", "coo", "csc", "csr", "dia")
SAMPLES = 16
"""Elements of an index array by which patterns are told apart before all are compared."""
BLOCK = 1 << 15
"""Elements that are compared at once, so that what says where they differ stays in the cache."""
MOST_DERIVED = 64
"""What a pattern remembers of the patterns that were made of it."""


class StoragePattern(Composite):
    """Hold where the stored elements of a sparse matrix stand; equal ones are one object as a rule.

    Args:
        format: SciPy's name of the format: csr, csc, coo, bsr or dia.
        is_array: whether it is one of SciPy's sparse arrays, else one of its matrices, whose `*` is a product.
        shape: of the matrix; of a coo array of any number of axes.
        data_shape: of the stored elements: of blocks for bsr, of diagonals for dia.
        arrays: the index arrays, as SciPy has them; they must not change.

    >>> import scipy.sparse
    >>> pattern = pattern_of(scipy.sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]))
    >>> pattern, [x.tolist() for x in pattern.coordinates]
    (StoragePattern(csr, (2, 2), 2 stored), [[0, 1], [1, 0]])
    >>> pattern is pattern_of(scipy.sparse.csr_array([[0.0, 3.0], [4.0, 0.0]]))
    True
    """

    fields: ClassVar[tuple[str, ...]] = ("format", "is_array", "shape", "data_shape", "arrays")

    def __init__(self, format: str, is_array: bool, shape: Shape, data_shape: Shape, arrays: Arrays) -> None:
        self.format, self.is_array, self.shape, self.data_shape = format, is_array, shape, data_shape
        self.arrays = lying_in_bytes(format, arrays)
        self.key = format, is_array, shape, data_shape, tuple(map(sample_of, self.arrays))
        self.derived: dict[Hashable, Any] = {}

    def values(self) -> tuple[Any, ...]:
        """Return what it is made of, in the order of `fields`."""
        return tuple([getattr(self, name) for name in self.fields])

    def check(self) -> None:
        """Raise an error unless its parts make a matrix of SciPy's."""
        if self.format not in FORMATS:
            raise ValueError(self.format)
        found = self.matrix(np.zeros(self.data_shape))
        if hasattr(found, "check_format"):
            found.check_format(full_check=True)

    def structure(self) -> Hashable:
        """Return what a graph that holds it is known by."""
        return tuple(map(identity, self.values()))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, StoragePattern) and self.key == other.key and all(map(alike, self.arrays, other.arrays))
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"StoragePattern({self.format}, {self.shape}, {self.size} stored)"

    def _repr_svg_(self) -> str | None:
        if len(self.shape) != 2:
            return None
        rows, columns = self.coordinates
        return pattern_svg((self.shape[0], self.shape[1]), rows, columns)

    def __reduce__(self) -> Any:
        return known_pattern, self.values()

    def __copy__(self) -> StoragePattern:
        return self

    def __deepcopy__(self, _memo: Any) -> StoragePattern:
        return self

    @property
    def size(self) -> int:
        """Return how many elements are stored."""
        return math.prod(self.data_shape)

    @cached
    def template(self) -> Any:
        """A matrix of SciPy's with this pattern, of which others are shallow copies."""
        return made_matrix(*self.values())

    def matrix(self, data: np.ndarray[Any, Any]) -> Any:
        """Return SciPy's matrix of this pattern with some stored elements, which it shares."""
        if data.shape != self.data_shape:  # SciPy would read what lies behind them
            given = f"stored elements of shape {data.shape}"
            raise ShapeError("sparse", given, f"shape {self.data_shape} is needed", "Pass one for each place")
        found = copy.copy(self.template)
        found.data = data
        return found

    @cached
    def coordinates(self) -> Arrays:
        """The place of each stored element along each axis, in the order in which they are stored; see `inside`."""
        if self.format == "coo":
            return tuple([x.astype(np.intp) for x in self.arrays])
        if self.format == "dia":
            return self.diagonal_places[1:]
        indices, starts = self.arrays
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        minor = indices[: starts[-1]].astype(np.intp)
        if len(self.shape) == 1:
            return (minor,)
        if self.format == "bsr":
            _, height, width = self.data_shape
            block = np.indices((height, width)).reshape(2, 1, -1)
            return tuple(
                [
                    (x[:, None] * n + within).reshape(-1)
                    for x, n, within in zip((major, minor), (height, width), block, strict=True)
                ]
            )
        return (major, minor) if self.format == "csr" else (minor, major)

    @cached
    def diagonal_places(self) -> Arrays:
        """Of diagonals, the elements that lie in the matrix, by their number, their rows and columns."""
        (offsets,) = self.arrays
        columns = np.broadcast_to(np.arange(self.data_shape[1]), self.data_shape)
        rows = columns - offsets[:, None].astype(np.intp)
        held = np.flatnonzero((rows >= 0) & (rows < self.shape[0]) & (columns < self.shape[1]))
        return held, rows.reshape(-1)[held], columns.reshape(-1)[held]

    @property
    def inside(self) -> np.ndarray[Any, Any] | None:
        """Return which elements of `data`, by number, are in the matrix: those of `coordinates`; None if all are.

        Diagonals may have elements outside, and arrays room for more than there is.
        """
        held = len(self.coordinates[0])
        if held == self.size:
            return None
        return self.diagonal_places[0] if self.format == "dia" else np.arange(held)

    @cached
    def line_table(self) -> np.ndarray[Any, Any] | None:
        """Where elements of each row or column begin, and behind that where each stands in its own, in 32 bits.

        None unless it is a sound pattern by rows or columns, whose elements are all in the matrix.
        """
        if self.format not in ("csr", "csc") or len(self.shape) != 2 or max(self.size, *self.shape) >= 1 << 31:
            return None
        indices, starts = self.arrays
        lines, across = self.shape if self.format == "csr" else self.shape[::-1]
        is_sound = len(starts) == lines + 1 and starts[0] == 0 and starts[-1] == self.size == len(indices)
        is_sound = is_sound and not np.any(starts[1:] < starts[:-1])
        if not is_sound or (self.size and not 0 <= indices.min() <= indices.max() < across):
            return None
        if are_table(starts, indices):
            return starts.base
        return array_of_bytes(np.concatenate([starts, indices]).astype(np.int32))

    def derive(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is made of the pattern under a name, made once."""
        found = self.derived.get(name)
        if found is None:
            found = make()
            if len(self.derived) >= MOST_DERIVED:
                self.derived.clear()
            self.derived[name] = found
        return found

    @cached
    def keys(self) -> np.ndarray[Any, Any]:
        """One whole number for each stored element in the matrix, which tells its place in C order."""
        if math.prod(self.shape) >= 1 << 63:
            given = f"a sparse array of shape {self.shape}"
            raise UsageError("sparse", given, "less than 2**63 places are needed", "Divide it into parts")
        return np.ravel_multi_index(self.coordinates, self.shape) if self.size else np.zeros(0, np.intp)

    @cached
    def is_canonical(self) -> bool:
        """Whether no two stored elements have the same place."""
        return len(np.unique(self.keys)) == len(self.keys)

    def repeat_lanes(self, lanes: int) -> StoragePattern:
        """Return the pattern of the matrix with so many of this one along its diagonal.

        Its stored elements are those of the first, those of the second, and so on, without those that are outside.
        """
        found: StoragePattern = self.derive(("repeated", lanes), functools.partial(repeat_pattern, self, lanes))
        return found


KNOWN_BY_PLACE.add(StoragePattern)


def lying_in_bytes(format: str, arrays: Arrays) -> Arrays:
    """Return index arrays that nobody can write to: those of lines of 32 bits one behind the other, as a line table."""
    if format not in ("csr", "csc") or any(x.dtype != np.int32 or not may_change(x) for x in arrays):
        return tuple(map(array_of_bytes, arrays))
    indices, starts = arrays
    table = array_of_bytes(np.concatenate([starts, indices]))
    return table[len(starts) :], table[: len(starts)]


def are_table(starts: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]) -> bool:
    """Tell whether index arrays are one behind the other, and all that is in their memory."""
    table = starts.base
    if table is None or table is not indices.base or table.dtype != np.int32:
        return False
    return len(table) == len(starts) + len(indices) and starts.ctypes.data == table.ctypes.data


def made_matrix(format: str, is_array: bool, shape: Shape, data_shape: Shape, arrays: Arrays) -> Any:
    """Return a matrix of SciPy's with some zeros stored."""
    from scipy import sparse

    kind = getattr(sparse, f"{format}_{'array' if is_array else 'matrix'}")
    data = np.zeros(data_shape)
    if format == "dia":
        return kind((data, arrays[0]), shape=shape)
    if format == "coo":
        found = kind((data, arrays), shape=shape)
        found.coords = arrays
        return found
    found = kind((data, *arrays), shape=shape)
    found.indices, found.indptr = arrays  # SciPy has taken them for shorter integers, or for arrays of others
    return found


def repeat_pattern(pattern: StoragePattern, lanes: int) -> StoragePattern:
    """Return the block diagonal pattern of some patterns that are alike."""
    rows, columns = pattern.shape
    shape = (lanes * rows, lanes * columns)
    longest = max(*shape, lanes * pattern.size)
    dtype = np.int32 if longest < 1 << 31 else np.int64
    if pattern.format in ("coo", "dia") or pattern.inside is not None:
        coords = [
            (np.arange(lanes)[:, None] * n + x).reshape(-1).astype(dtype)
            for n, x in zip((rows, columns), pattern.coordinates, strict=True)
        ]
        return known_pattern("coo", pattern.is_array, shape, (len(coords[0]),), tuple(coords))
    indices, starts = pattern.arrays
    minor = rows if pattern.format == "csc" else columns
    minor //= pattern.data_shape[2] if pattern.format == "bsr" else 1
    tiled = (np.arange(lanes)[:, None] * minor + indices).reshape(-1).astype(dtype)
    bounds = (np.arange(lanes)[:, None] * len(indices) + starts[:-1]).reshape(-1)
    bounds = np.append(bounds, lanes * len(indices)).astype(dtype)
    data_shape = (lanes * pattern.data_shape[0], *pattern.data_shape[1:])
    return known_pattern(pattern.format, pattern.is_array, shape, data_shape, (tiled, bounds))


# Which pattern it is

PATTERNS: dict[Hashable, list[weakref.ref[StoragePattern]]] = {}
"""The patterns that there are, by their keys."""
KNOWN: WeakIdentityMap[np.ndarray[Any, Any], StoragePattern] = WeakIdentityMap()
"""The patterns of index arrays, by the first of them."""


def pattern_of(matrix: Any) -> StoragePattern:
    """Return the pattern of a matrix of SciPy's.

    Raises:
        DtypeError: its format has no array of stored elements.
    """
    format = matrix.format
    if format not in FORMATS:
        given = f"a {type(matrix).__name__}"
        needed = "a sparse array whose stored elements are an array is needed: csr, csc, coo, bsr or dia"
        raise DtypeError("sparse", given, needed, "Convert it with .tocsr()")
    arrays = index_arrays(matrix)
    is_array, shape, data_shape = not is_matrix(matrix), tuple(map(int, matrix.shape)), matrix.data.shape
    found = KNOWN.get(arrays[0])
    parts = format, is_array, shape, data_shape
    if found is not None and found.values()[:-1] == parts and all(map(alike, arrays, found.arrays)):
        return found
    found = known_pattern(format, is_array, shape, data_shape, arrays)
    KNOWN[arrays[0]] = found
    return found


def index_arrays(matrix: Any) -> Arrays:
    """Return the arrays of a matrix of SciPy's that say where its elements stand."""
    if matrix.format == "coo":
        found: Arrays = matrix.coords
        return found
    return tuple([getattr(matrix, name) for name in NAMES[matrix.format]])


def is_matrix(value: Any) -> bool:
    """Tell whether a sparse array is one of SciPy's matrices, whose `*` is a product."""
    return type(value).__name__.endswith("_matrix")


def known_pattern(
    format: str, is_array: bool, shape: Shape, data_shape: Shape, arrays: Sequence[Any]
) -> StoragePattern:
    """Return the pattern of these parts: one that there is, or a new one."""
    key = format, is_array, shape, data_shape, tuple(map(sample_of, arrays))
    others = [x for reference in PATTERNS.get(key, ()) if (x := reference()) is not None]
    for other in others:
        if all(map(alike, arrays, other.arrays)):
            return other
    found = StoragePattern(format, is_array, shape, data_shape, tuple(arrays))
    if key not in PATTERNS:
        # a list of keys makes no tuples, which could collect garbage and let other threads enter theirs meanwhile
        for name in list(PATTERNS):
            if all(x() is None for x in PATTERNS.get(name, ())):
                PATTERNS.pop(name, None)
    PATTERNS[key] = [weakref.ref(x) for x in (*others, found)]
    return found


def alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Tell whether two index arrays are the same, or equal and of one dtype."""
    if a is b:
        return True
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.itemsize == 4 and a.flags.c_contiguous and b.flags.c_contiguous:  # two at once, in a third of the time
        even = len(a) & -2
        if not np.array_equal(a[even:], b[even:]):
            return False
        a, b = a[:even].view(np.int64), b[:even].view(np.int64)
    return all(np.array_equal(a[i : i + BLOCK], b[i : i + BLOCK]) for i in range(0, len(a), BLOCK))


def sample_of(array: np.ndarray[Any, Any]) -> Hashable:
    """Return dtype and length of an index array, and some of its elements."""
    step = max(1, len(array) // SAMPLES)
    return array.dtype.str, len(array), array[::step].tobytes()
