"""From the functions that the user gives to graphs for structured primitives, and the checks that go with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import contents_before, find_writes, require_unshared
from wengert.control.subgraphs import trace_subgraph
from wengert.core.containers.tree_leaves import structure_text, unflatten, unflatten_each
from wengert.core.graph.graph import Graph
from wengert.core.memory.views import current, share
from wengert.core.primitives.signatures import called_with
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import as_tensor, require_plain
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.passes.equations import with_extra_inputs
from wengert.traces.written_out import strictly

Function = Callable[..., Any]
ARRAYS = (np.ndarray, np.generic, bool, int, float, complex)
LEFT = ("what the body left behind", "what it had left before")
CARRIED = ("the value that the body returned", "the value that it was given")


def any_staged(leaves: Sequence[Any]) -> bool:
    """Tell whether some of the leaves have no elements yet."""
    return True in map(is_staged, leaves)


def start_leaves(leaves: Sequence[Any]) -> list[Any]:
    """Return leaves as a function of the user receives them: arrays as Tensors of which a write makes a copy."""
    found = []
    for leaf in leaves:
        if type(leaf) is Tensor:
            found.append(share(leaf))
        elif isinstance(leaf, np.ndarray):
            found.append(as_tensor(leaf))
        else:
            found.append(leaf)
    return found


def as_given(leaf: Any, tensors: bool) -> Any:
    """Return a result in the form of what was given: plain arrays of their own memory where nothing was a Tensor."""
    if type(leaf) is not Tensor or tensors:
        return leaf
    found = current(leaf)
    if found._trace is not None:
        return leaf
    return found._value.copy(order="K") if found._kept and isinstance(found._value, np.ndarray) else found._value


def own_results(leaves: Sequence[Any], tensors: bool | None = None) -> list[Any]:
    """Return results, none of which shares memory with another, or with what was given.

    Args:
        leaves: the results.
        tensors: whether something that was given was a Tensor; None leaves each in the form that it has.
    """
    return [
        as_given(own, type(leaf) is Tensor if tensors is None else tensors)
        for own, leaf in zip(start_leaves(leaves), leaves, strict=True)
    ]


class FlatFunction:
    """Be a function of flat arguments with flat results, and remember the containers of the last ones.

    Args:
        name: the public function.
        function: the user's.
        structure: the containers of its arguments.
        leading: how many arguments come before these.
        shared: the arguments as they were given outside, if it is an error that the first call writes to one of several
            that share memory.
        in_order: whether dictionaries with the same keys in another order have another structure.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        structure: Any,
        leading: int = 0,
        shared: Sequence[Any] | None = None,
        in_order: bool = False,
    ) -> None:
        self.name = name
        self.own = f"{name} (body_fun)"
        self.function = function
        self.given = structure
        self.leading = leading
        self.shared = shared
        self.in_order = in_order
        self.structure: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Call the function with containers around the leaves."""
        own = leaves[self.leading :]
        arguments = (*leaves[: self.leading], unflatten(self.given, own))
        before = None if self.shared is None else contents_before(own)
        found = called_with(self.own, self.function, "i, value" if self.leading else "value", arguments)
        if before is not None and self.shared is not None:
            require_unshared(self.name, self.shared, find_writes(own, before))
            self.shared = None
        results, self.structure = leaves_of_result(found, in_order=self.in_order)
        for leaf in results:
            if type(leaf) is not Tensor and not isinstance(leaf, ARRAYS):
                given = f"a function that returned a {type(leaf).__name__}"
                needed = "arrays and numbers, in any containers, are needed"
                raise UsageError(self.name, given, needed, "Return what has been computed")
        require_plain(self.name, results)
        return results


class PairFunction:
    """Be a function that gives what is carried and what is left behind, of flat arguments and with flat results.

    What is carried at first is `shared`: it is an error that the first call writes to one of several that share memory.

    Attributes:
        structure: the containers of what it last gave to be carried.
        left: those of what it last left behind.
    """

    def __init__(
        self,
        name: str,
        called: str,
        parameters: str,
        function: Function,
        given: Sequence[tuple[Any, int]],
        shared: Sequence[Any],
    ) -> None:
        self.name = name
        self.called = called
        self.parameters = parameters
        self.function = function
        self.given = given
        self.shared: Sequence[Any] | None = shared
        self.structure: Any = None
        self.left: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Take one step: from the leaves of the arguments to those of the results."""
        own = f"{self.name} ({self.called})"
        before = None if self.shared is None else contents_before(leaves[: len(self.shared)])
        result = called_with(own, self.function, self.parameters, tuple(unflatten_each(self.given, leaves)))
        if before is not None and self.shared is not None:
            require_unshared(self.name, self.shared, find_writes(leaves[: len(self.shared)], before))
            self.shared = None
        if not isinstance(result, tuple) or len(result) != 2:
            given = f"a function that returned a {type(result).__name__}"
            needed = "a pair (next carried value, y) is needed"
            raise UsageError(self.name, given, needed, "Return a tuple of two; y may be None")
        found, self.structure = leaves_of_result(result[0])
        check_containers(self.name, CARRIED, self.structure, self.given[0][0])
        ys, left = leaves_of_result(result[1])
        if self.left is not None:
            check_containers(self.name, LEFT, left, self.left)
        self.left = left
        require_plain(self.name, (*found, *ys))
        return [*found, *ys]


def own_leaves(leaves: Sequence[Any]) -> list[Any]:
    """Return leaves that later writes do not change."""
    return [share(x) if type(x) is Tensor else np.array(x) for x in leaves]


def with_common_constants(
    functions: Sequence[Callable[..., Sequence[Any]]], examples: Sequence[Sequence[Any]], name: str
) -> tuple[list[Graph], list[Tensor]]:
    """Trace functions of examples to graphs whose first inputs are everything that any of them captured."""
    with strictly(False):  # of pieces that have been traced, or by a call of the user's
        pairs = [trace_subgraph(f, own, name, whole=True) for f, own in zip(functions, examples, strict=True)]
    constants = list({id(tensor): tensor for _, captured in pairs for tensor in captured}.values())
    graphs = []
    for (graph, captured), own in zip(pairs, examples, strict=True):
        position = {id(tensor): len(own) + i for i, tensor in enumerate(captured)}
        places: list[int | Aval] = [position.get(id(tensor), aval_of(tensor)) for tensor in constants]
        graphs.append(with_extra_inputs(graph, [*places, *range(len(own))]))
    return graphs, constants


def check_containers(name: str, what: tuple[str, str], one: Any, other: Any) -> None:
    """Raise unless two results have the same containers."""
    if one != other:
        texts = structure_text(one), structure_text(other)
        static = all("CustomTreeNode" in text for text in texts)
        remedy = (
            "annotate a field that changes as float or numpy.ndarray: int, bool and str are static" if static else ""
        )
        given = f"{what[0]} is {texts[0]} and {what[1]} is {texts[1]}"
        raise UsageError(name, given, "the same containers are needed", f"Build both alike{remedy and '; ' + remedy}")


def check_alike(
    name: str,
    what: tuple[str, str],
    structures: tuple[Any, Any],
    leaves: tuple[Sequence[Any], Sequence[Any]],
) -> None:
    """Raise unless two results have the same containers, shapes and dtypes.

    Args:
        name: the public function.
        what: what the two are called.
        structures: their containers.
        leaves: their leaves, or avals.
    """
    check_containers(name, what, *structures)
    for i, (x, y) in enumerate(zip(*leaves, strict=True)):
        a, b = aval_of(x), aval_of(y)
        if a.shape != b.shape:
            given = f"value {i} of {what[0]} has shape {a.shape} and of {what[1]} {b.shape}"
            raise ShapeError(name, given, "the same shape is needed", "Reshape or broadcast one of them")
        if a.dtype != b.dtype:
            given = f"value {i} of {what[0]} has dtype {a.dtype} and of {what[1]} {b.dtype}"
            raise DtypeError(name, given, "the same dtype is needed", "Convert one of them with .astype")


def check_carried(
    name: str, carried: Sequence[Any], found: Sequence[Any], weak: Sequence[bool], graph: Graph | None = None
) -> None:
    """Raise unless the body of a loop keeps the shapes and dtypes of what it carries.

    Args:
        name: the public function.
        carried: the leaves that the body was given, or variables like them.
        found: those that it returned.
        weak: leaves whose dtype may differ: Python numbers at the start.
        graph: what the body was traced to, whose outputs begin with those returned; its equations have lines.
    """
    for i, (x, y) in enumerate(zip(carried, found, strict=True)):
        a, b = aval_of(x), aval_of(y)
        if a.shape != b.shape:
            given = f"the body was given shape {a.shape} as value {i} of what is carried and returned {b.shape}"
            remedy = f"Start from one of shape {b.shape}, or write to a part of an array that is large enough"
            raise ShapeError(name, given + line_of(graph, y), "the shape of each carried value must stay", remedy)
        if a.dtype != b.dtype and not weak[i]:
            given = f"the body was given dtype {a.dtype} as value {i} of what is carried and returned {b.dtype}"
            remedy = f"Start from one of dtype {b.dtype}, or return it with .astype({str(a.dtype)!r})"
            raise DtypeError(name, given + line_of(graph, y), "the dtype of each carried value must stay", remedy)


def line_of(graph: Graph | None, output: Any) -> str:
    """Return the line that gave an output of a graph, in parentheses, if that is known."""
    equations = () if graph is None else graph.equations
    positions = [equation.position for equation in equations if any(x is output for x in equation.outputs)]
    return f" ({positions[0]})" if positions and positions[0] else ""
