"""Problems: functions of leaves at a point, which derivatives are compared on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import accessors_of, flatten, unflatten
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, UsageError

Leaves = list[Any]


@dataclass(frozen=True)
class LeafProblem:
    """Hold a function of leaves that returns leaves, the point to differentiate it at, and names of its inputs."""

    function: Callable[[Leaves], Leaves]
    point: Leaves
    labels: list[str]

    def outputs(self) -> Leaves:
        """Return the function's outputs at the point."""
        return self.function(self.point)


def arguments_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a function, given one by one, or all as one tuple.

    >>> arguments_of((1.0, 2.0)) == arguments_of(((1.0, 2.0),))
    True
    """
    return args[0] if len(args) == 1 and type(args[0]) is tuple else args


def problem_of(f: Callable[..., Any], arguments: tuple[Any, ...]) -> LeafProblem:
    """Return a function of containers as a function of leaves, which returns its float and complex results only."""
    problem = leaf_problem(f, arguments, range(len(flatten(arguments)[0])))
    for label, leaf in zip(problem.labels, problem.point, strict=True):
        check_leaf(label, leaf)
    if not problem.point:
        raise usage_error("no argument that holds an array", "something to differentiate is needed", "Pass one")
    return problem


def leaf_problem(f: Callable[..., Any], arguments: tuple[Any, ...], chosen: Sequence[int]) -> LeafProblem:
    """Return a function of containers as one of the leaves in some places, with its float and complex results only."""
    leaves, structure = flatten(arguments)
    labels = [f"argument {label}" for label in names_of(structure)]

    def function(values: Leaves) -> Leaves:
        everything = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            everything[i] = value
        found, _ = flatten(f(*unflatten(structure, everything)))
        return [leaf for leaf in found if is_differentiable(aval_of(leaf).dtype)]

    return LeafProblem(function, [leaves[i] for i in chosen], [labels[i] for i in chosen])


def names_of(structure: Any) -> Iterator[str]:
    """Return how each leaf of a tuple of arguments is reached: its position, then keys and indices."""
    for accessor in accessors_of(structure):
        yield str(accessor[0].entry) + accessor[1:].codify("")


def check_leaf(label: str, leaf: Any) -> None:
    """Raise a DtypeError unless a leaf can be differentiated."""
    array = np.asarray(leaf) if not isinstance(leaf, Tensor) else leaf
    if not is_differentiable(array.dtype):
        given = f"dtype {array.dtype}" if array.dtype.kind in "?biu" else f"type {type(leaf).__name__}"
        given = f"{label} has {given}"
        needed = "floats, arrays or Tensors of a float or complex dtype are needed"
        raise DtypeError("check_grads", given, needed, "Fix other arguments in a lambda around the function")


def smooth_outputs(problem: LeafProblem) -> Leaves:
    """Return the outputs of a problem, of which there must be one."""
    outputs = problem.outputs()
    if not outputs:
        raise usage_error(
            "a function that returned no float or complex array",
            "a result that has derivatives is needed",
            "Return the float results of the function",
        )
    return outputs


def default_tolerance(problem: LeafProblem) -> float:
    """Return ten times the root of the precision of the least precise dtype of inputs and outputs."""
    dtypes = [aval_of(leaf).dtype for leaf in (*problem.point, *problem.outputs())]
    return 10 * math.sqrt(max(float(np.finfo(dtype).eps) for dtype in dtypes))


def usage_error(given: str, needed: str, action: str) -> UsageError:
    """Return the error about an argument of `check_grads`."""
    return UsageError("check_grads", given, needed, action)
