"""Containers of real and complex numbers as vectors of real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import unflatten
from wengert.core.values.aval import Aval, aval_of, is_differentiable
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.object_arrays import leaves_of_result
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.support.records import NamedTuple


class Vector(NamedTuple):
    """Say how containers of real and complex numbers are one vector of real numbers.

    Attributes:
        structure: the containers.
        avals: of their leaves.
        dtype: of the vector.
    """

    structure: Any
    avals: Sequence[Aval]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(math.prod(a.shape) * (2 if a.dtype.kind == "c" else 1) for a in self.avals)

    def join(self, leaves: Sequence[Any]) -> Any:
        """Return leaves as one vector: of complex ones the real parts, and then the imaginary ones."""
        parts = []
        for leaf in map(as_tensor, leaves):
            flat = leaf.reshape(-1)
            parts += [flat.real, flat.imag] if leaf.dtype.kind == "c" else [flat]
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return found if found.dtype == self.dtype else found.astype(self.dtype)

    def part(self, vector: Any) -> list[Any]:
        """Return the leaves that a vector consists of."""
        leaves, start = [], 0
        for shape, dtype, _ in self.avals:
            count = math.prod(shape)
            flat = vector[start : start + count]
            start += count
            if dtype.kind == "c":
                flat = flat + 1j * vector[start : start + count]
                start += count
            leaf = flat.reshape(shape)
            leaves.append(leaf if leaf.dtype == dtype else leaf.astype(dtype))
        return leaves

    def pack(self, vector: Any) -> Any:
        """Return the containers that a vector consists of."""
        return unflatten(self.structure, self.part(vector))

    def flatten(self, containers: Any) -> Any:
        """Return such containers as a vector."""
        leaves = leaves_of_result(containers)[0]
        if len(leaves) != len(self.avals):
            given = f"{len(leaves)} arrays where there are {len(self.avals)}"
            raise ShapeError("linear_solve", given, "the containers of the right-hand side are needed", "Keep them")
        return self.join(leaves)


def vector_of(name: str, what: str, containers: Any) -> tuple[Vector, Sequence[Any]]:
    """Return how containers are a vector, and their leaves; these must be real or complex floats."""
    leaves, structure = leaves_of_result(containers)
    avals = [aval_of(x) for x in leaves]
    for x in avals:
        if not is_differentiable(x.dtype):
            given = f"{what} of dtype {x.dtype}"
            raise DtypeError(
                name, given, "real or complex floats are needed", "Convert it, or return it from elsewhere"
            )
    if not avals:
        raise UsageError(name, f"{what} without arrays", "one number or more is needed", "Return what solves")
    dtype = np.result_type(*(np.empty(0, x.dtype).real.dtype for x in avals))
    return Vector(structure, tuple(avals), dtype), leaves


def residual_vector(name: str, vector: Vector, found: Any) -> Any:
    """Return what a residual gave as a vector; raise unless it has as many numbers as the solution."""
    own, leaves = vector_of(name, "a residual", found)
    if own.size != vector.size:
        given = f"a residual of {own.size} real numbers for a solution of {vector.size}"
        raise ShapeError(name, given, "as many equations as unknown numbers are needed", "Return one for each")
    return Vector(own.structure, own.avals, vector.dtype).join(leaves)
