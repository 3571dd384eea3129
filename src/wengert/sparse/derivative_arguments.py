"""The arguments of a sparse derivative: which are differentiated, which traced, and which are part of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.graph.identity import identity_of_static
from wengert.core.values.aval import aval_of, aval_text
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError
from wengert.support.records import NamedTuple

Function = Callable[..., Any]

ARRAYS = (Tensor, np.ndarray, np.number, float, complex)


def is_traced(value: Any) -> bool:
    """Tell whether an argument is made of arrays and floats alone."""
    return all(isinstance(x, ARRAYS) for x in flatten(value)[0])


def kind_of_leaf(name: str, leaf: Any) -> Any:
    """Return what tells a leaf from those that need another plan; raise a DtypeError if nothing does."""
    if isinstance(leaf, ARRAYS):
        return aval_of(leaf)
    try:
        return identity_of_static(leaf)
    except TypeError as error:
        needed = "an array, a number or something that can be hashed, to tell plans apart, is needed"
        raise DtypeError(name, f"{shown(leaf)} as an argument", needed, "Convert it, or capture it") from error


def containers_of(value: Any) -> Any:
    """Return the structure of containers in which each sparse matrix is a leaf, as its stored elements are one.

    >>> import scipy.sparse
    >>> containers_of((scipy.sparse.csr_array([[1.0, 2.0]]), 3.0))
    PyTreeSpec((*, *))
    """
    return flatten(value, lambda x: hasattr(type(x), "tocsr"))[1]


def describe_inputs(call: DerivativeCall) -> str:
    """Return shapes and dtypes of arguments, and the values of those that have none, as errors and plans show them."""
    texts = []
    for value in (*call.args, *call.kwargs.values()):
        leaves = [aval_text(leaf) if isinstance(leaf, ARRAYS) else repr(leaf) for leaf in flatten(value)[0]]
        texts.append(leaves[0] if len(leaves) == 1 else f"[{', '.join(leaves)}]")
    return f"({', '.join(texts)})"


class DerivativeCall(NamedTuple):
    """Hold the arguments of a call.

    Attributes:
        args: those by position.
        kwargs: those by name.
        chosen: the positions of those to differentiate.
        key: what tells their kind: containers, shapes and dtypes of arrays, the values of all else, and how arrays lie
            in memory.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    chosen: tuple[int, ...]
    key: Any

    @property
    def selection(self) -> tuple[Any, ...]:
        """The arguments to differentiate."""
        return tuple(self.args[i] for i in self.chosen)

    @property
    def static(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The positions and names of arguments that are no arrays and floats: integers may count, words may choose."""
        positions = [i for i, x in enumerate(self.args) if i not in self.chosen and not is_traced(x)]
        return tuple(positions), tuple(name for name, x in self.kwargs.items() if not is_traced(x))


class Positional:
    """Be a function of those of its arguments that are traced, all by position; the others are as in a call.

    Attributes:
        values: the traced arguments.
        argnums: which of them are differentiated.
    """

    def __init__(self, fun: Function, call: DerivativeCall) -> None:
        self.fun = self.__wrapped__ = fun
        self.call = call
        positions, names = call.static
        self.positions = [i for i in range(len(call.args)) if i not in positions]
        self.names = [name for name in call.kwargs if name not in names]
        self.values = self.traced_arguments(call.args, call.kwargs)
        self.argnums = tuple(self.positions.index(i) for i in call.chosen)

    def traced_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return those of some arguments that are traced."""
        return [*(args[i] for i in self.positions), *(kwargs[name] for name in self.names)]

    def __call__(self, *values: Any) -> Any:
        """Call the function."""
        args, kwargs = list(self.call.args), dict(self.call.kwargs)
        for i, value in zip(self.positions, values, strict=False):
            args[i] = value
        kwargs.update(zip(self.names, values[len(self.positions) :], strict=True))
        return self.fun(*args, **kwargs)
