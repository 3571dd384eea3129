"""Calls of SciPy's solvers on numbers, whichever transformation asks, and their results with what is differentiated.

SciPy is called once: on ndarrays, for each lane of `vmap`, and at each evaluation of a graph that `jit` makes. What it
finds then comes as one vector, so that shapes are known beforehand; its own result object is kept where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert.control.side_effects import Reach
from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.memory.views import current
from wengert.core.values.tensor import Tensor, concrete, is_staged
from wengert.errors import DtypeError
from wengert.implicit.solver_call import solve_without_derivatives, warn_of_calls
from wengert.support.records import NamedTuple
from wengert.tree import leaves

COUNTS = ("success", "status", "nit", "nfev")
"""The numbers of a result that are known of each lane, and in graphs."""


class Answer:
    """Hold what SciPy found.

    Attributes:
        name: what the user called.
        arrays: the arrays that were asked for, constants to whatever differentiates.
        results: SciPy's own results, one for each call that was made on numbers; none where a graph makes them.
    """

    def __init__(self, name: str, shapes: Sequence[tuple[int, ...]], counted: Sequence[str]) -> None:
        self.name = name
        self.shapes = [*[()] * len(counted), *shapes]
        self.counted = counted
        self.open = True
        self.arrays: list[Any] = []
        self.results: list[Any] = []
        self.counts: dict[str, Any] = {}

    def note(self, result: Any, arrays: Sequence[Any]) -> Any:
        """Take note of a result; return it and the arrays as one vector."""
        if self.open:
            self.results.append(result)
        if any(np.iscomplexobj(x) for x in arrays):
            needed = "real numbers are needed by transformations"
            raise DtypeError(self.name, "a complex solution", needed, "Solve for its real and its imaginary part")
        counts = [np.float64(result.get(key, -1)) for key in self.counted]
        return np.concatenate([np.ravel(np.asarray(x, dtype=float)) for x in (*counts, *arrays)])

    def keep(self, result: Any, arrays: Sequence[Any]) -> None:
        """Take a result on numbers as it is."""
        self.open = False
        self.results, self.arrays = [result], list(arrays)

    def take(self, vector: Any) -> None:
        """Take a vector apart."""
        self.open = False
        start, parts = 0, []
        for shape in self.shapes:
            count = int(np.prod(shape))
            parts.append(np.reshape(vector[start : start + count], shape))
            start += count
        self.counts = dict(zip(self.counted, parts, strict=False))
        self.counts[self.counted[0]] = parts[0] > 0
        self.arrays = parts[len(self.counted) :]

    def result(self, **fields: Any) -> Any:
        """Return SciPy's result with other fields; of lanes and in graphs what is known of them alone."""
        from scipy.optimize import OptimizeResult

        if len(self.results) == 1 and not is_traced_now(self.arrays[0]):
            found = self.results[0]
        else:
            found = OptimizeResult(message=None, **self.counts)
        for key, value in fields.items():
            found[key] = value
        return found


def call_scipy(
    name: str,
    solve: Callable[..., tuple[Any, Sequence[Any]]],
    args: Any,
    shapes: Sequence[tuple[int, ...]],
    counted: Sequence[str] = COUNTS,
    traced: bool = True,
) -> Answer:
    """Return what SciPy finds.

    Args:
        name: what the user called.
        solve: from `args`, with ndarrays and numbers in place of Tensors, to SciPy's result and arrays of it.
        args: what it is called with, in any containers.
        shapes: of the arrays.
        counted: the numbers of its result that are told of lanes and in graphs, success first.
        traced: whether a transformation asks; see `asking`.
    """
    answer = Answer(name, shapes, counted)
    if not traced:
        answer.keep(*solve(*(map_leaves(partial(as_number, name), value) for value in args)))
        return answer
    size = sum(int(np.prod(shape)) for shape in answer.shapes)

    def solver(*values: Any) -> Any:
        return answer.note(*solve(*(map_leaves(partial(as_number, name), value) for value in values)))

    solver.__qualname__ = name
    vector = solve_without_derivatives(solver, args, {}, lambda *_: np.zeros(size))
    if is_staged(vector):
        is_scalar = name == "scipy.optimize.root_scalar"
        warn_of_calls(name, "SciPy", "wengert.optim.root_scalar" if is_scalar else "")
    answer.take(vector)
    return answer


def as_number(name: str, leaf: Any) -> Any:
    """Return the elements of a leaf that is a Tensor."""
    return concrete(name, leaf) if type(leaf) is Tensor else leaf


def is_traced_now(value: Any) -> bool:
    """Tell whether a value is one of a transformation."""
    return type(value) is Tensor and current(value)._trace is not None


class Asking(NamedTuple):
    """Say what transformations ask.

    Attributes:
        traced: whether there is one, of arguments or of what functions capture.
        differentiated: whether one is to differentiate, as far as is known: a graph may be, later.
    """

    traced: bool
    differentiated: bool


def asking(name: str, values: Any, functions: Sequence[Any]) -> Asking:
    """Return what transformations ask of values, and of what functions capture."""
    reached = [x for function in functions for x, _ in Reach(name, function).tensors]
    now = [current(x)._trace for x in (*leaves(values), *reached) if type(x) is Tensor]
    traces = [trace for trace in now if trace is not None]
    return Asking(bool(traces), any(not trace.staged and trace.concrete for trace in traces))


def as_tuple(args: Any) -> tuple[Any, ...]:
    """Return further arguments as a tuple, as SciPy does."""
    return args if isinstance(args, tuple) else (args,)


def first_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the first of two results, the value without its derivative."""
    return lambda *args: function(*args)[0]
