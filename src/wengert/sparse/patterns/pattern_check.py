"""Whether a pattern has every element: by products of the Jacobian with random vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import aval_of
from wengert.errors import ShapeError
from wengert.sparse.coloring.coloring import Coloring, csr_of
from wengert.sparse.derivative_arguments import Positional
from wengert.sparse.plans.lanes import lane_elements, split_like
from wengert.transforms.boundary import Narrowed
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back

Array = np.ndarray[Any, Any]
PRODUCTS = 2


def require_every_element(name: str, of: Positional, coloring: Coloring, graph: Graph) -> None:
    """Raise a ShapeError if the pattern of a colouring lacks an element that is not zero at the arguments.

    Args:
        name: who asks, for errors.
        of: the function whose Jacobian it is, and its arguments.
        coloring: of that pattern.
        graph: of the user's function, whose equations are named.
    """
    chosen = tuple(of.values[i] for i in of.argnums)
    fun = Narrowed(of, of.values, of.argnums)
    matrix = csr_of(coloring.sparsity, as_array(lane_elements(name, fun, chosen, coloring, coloring.lane_places)))
    random = np.random.default_rng(0)
    for _ in range(PRODUCTS):
        vector = random.uniform(0.5, 1.5, coloring.sparsity.shape[1])
        product = ravel_leaves(push_forward(name, fun, chosen, like(vector, chosen))[1])
        size = abs(matrix) @ vector + np.abs(product)
        wrong = np.abs(matrix @ vector - product) > np.sqrt(np.finfo(product.dtype).eps) * size
        if wrong.any():
            raise missing_element(name, fun, chosen, coloring, int(np.argmax(wrong)), graph)


def as_array(value: Any) -> Array:
    """Return an array or a plain Tensor as an array."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def ravel_leaves(tree: Any) -> Array:
    """Return the elements of all leaves as one vector."""
    leaves = [np.ravel(as_array(leaf)) for leaf in flatten(tree)[0]]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def like(vector: Array, tree: Any) -> Any:
    """Return the elements of a vector in the containers, shapes and dtypes of others."""
    leaves, structure = flatten(tree)
    parts = [part.astype(aval_of(leaf).dtype) for part, leaf in zip(split_like(vector, leaves), leaves, strict=True)]
    return unflatten(structure, parts)


def missing_element(name: str, fun: Any, chosen: Any, coloring: Coloring, row: int, graph: Graph) -> ShapeError:
    """Return the error about a row of which the pattern lacks an element, which a sweep finds."""
    output, pullback = pull_back(name, fun, chosen)
    height, width = coloring.sparsity.shape
    unit = np.zeros(height)
    unit[row] = 1.0
    elements = ravel_leaves(pullback(like(unit, output)))
    pattern = coloring.sparsity
    elements[pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]]] = 0.0
    column = int(np.argmax(np.abs(elements)))
    given = f"a pattern of {height} x {width} without the element at row {row}, column {column}, {elements[column]:.3g}"
    action = "Add it, or leave pattern out"
    return ShapeError(
        name, given, "every element that may not be zero is needed", action, place=place_of_row(row, graph)
    )


def place_of_row(row: int, graph: Graph) -> Any:
    """Return the line of the equation that gives an element of the results; None if it is not known."""
    for output in graph.outputs:
        size = math.prod(aval_of(output).shape)
        if row < size or len(graph.outputs) == 1:
            return next((e.position for e in graph.equations if any(x is output for x in e.outputs)), None)
        row -= size
    return None
