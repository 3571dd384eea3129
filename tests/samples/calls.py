"""Samples as functions of the arrays that are differentiated, and what the generated tests do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert as wg
from tests.samples.base import Fixed, Sample
from wengert.core.memory.views import current
from wengert.support import config
from wengert.traces.nodes import Node

__all__ = [
    "Call",
    "call_of",
    "float_leaves",
    "leaves_of",
    "nodes_of",
    "precision",
    "random_like",
    "same_bits",
    "same_traced",
    "same_values",
]

Leaves = list[Any]


@dataclass(frozen=True)
class Call:
    """Hold a sample's differentiated arrays, and the call as a function of them."""

    leaves: Leaves
    function: Callable[..., Any]

    def __call__(self, *leaves: Any) -> Any:
        return self.function(*leaves)

    def copies(self) -> Leaves:
        """Return copies of the differentiated arrays."""
        return [leaf.copy(order="K") for leaf in self.leaves]

    def vjp(self, leaves: Sequence[Any], cts: Leaves | None = None) -> tuple[Leaves, Leaves]:
        """Return the float results for leaves in whatever layout, and the gradients for (random) cotangents."""
        results, pullback = wg.vjp(lambda *xs: float_leaves(self(*xs)), *map(wg.asarray, leaves))
        cts = [random_like(leaf) for leaf in results] if cts is None else cts
        return [leaf.numpy() for leaf in results], [leaf.numpy() for leaf in pullback(cts)]


def precision(*values: Any) -> float:
    """Return the distance from 1 to the next number in the least precise dtype of some arrays."""
    return max(float(np.finfo(value.dtype).eps) for value in values)


def is_float(value: Any) -> bool:
    """Tell whether a value is an array that a sample differentiates."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def call_of(sample: Sample) -> Call:
    """Return a sample as a function of its differentiated arrays."""
    leaves: Leaves = []

    def collect(arg: Any) -> None:
        if is_float(arg):
            leaves.append(arg)
        elif isinstance(arg, list | tuple):
            for item in arg:
                collect(item)

    def filled(arg: Any, rest: Iterator[Any]) -> Any:
        if is_float(arg):
            return next(rest)
        if isinstance(arg, Fixed):
            return arg.value
        if isinstance(arg, list | tuple):
            return type(arg)([filled(item, rest) for item in arg])
        return arg

    collect(sample.args)
    kwargs = {
        key: filled(value, iter(())) if isinstance(value, Fixed) else value for key, value in sample.kwargs.items()
    }
    return Call(leaves, lambda *values: sample.function(*filled(sample.args, iter(values)), **kwargs))


def leaves_of(result: Any) -> Leaves:
    """Return what is in nested lists and tuples."""
    return [x for item in result for x in leaves_of(item)] if isinstance(result, list | tuple) else [result]


def float_leaves(result: Any) -> Leaves:
    """Return the arrays in nested lists and tuples that have derivatives."""
    return [leaf for leaf in leaves_of(result) if hasattr(leaf, "dtype") and leaf.dtype.kind in "fc"]


def random_like(value: Any) -> Any:
    """Return random numbers of the shape and dtype of an array."""
    generator = np.random.default_rng(0)
    found = generator.normal(size=value.shape)
    if value.dtype.kind == "c":
        found = found + 1j * generator.normal(size=value.shape)
    return np.asarray(found, dtype=value.dtype)


def same_bits(found: Any, want: Any) -> bool:
    """Tell whether two arrays have the same dtype, shape and elements, NaN and the sign of zero included."""
    found, want = np.asarray(found), np.asarray(want)
    if found.dtype != want.dtype or found.shape != want.shape:
        return False
    return np.array_equal(found, want, equal_nan=True) and all(
        np.array_equal(np.signbit(x)[x == x], np.signbit(y)[y == y])
        for x, y in zip(parts(found), parts(want), strict=True)
    )


def same_traced(found: Any, want: Any) -> bool:
    """Tell whether what a jitted function gave has NumPy's bits; if it is native code, all but a few roundings."""
    if not config.NATIVE:
        return same_bits(found, want)
    found, want = np.asarray(found), np.asarray(want)
    rounding = 32 * precision(want) if want.dtype.kind in "fc" else 0.0
    alike = found.dtype == want.dtype and found.shape == want.shape
    return alike and np.allclose(found, want, rtol=rounding, atol=0, equal_nan=True)


def parts(array: Any) -> list[Any]:
    """Return the real and imaginary parts of a complex array, a float array itself, and nothing of others."""
    return {"c": [array.real, array.imag], "f": [array]}.get(array.dtype.kind, [])


def same_values(found: Any, want: Any) -> bool:
    """Tell whether a result is NumPy's, with Tensors in place of arrays."""
    if isinstance(want, list | tuple):
        alike = isinstance(found, type(want)) and len(found) == len(want)
        return alike and all(map(same_values, found, want))
    if isinstance(want, np.ndarray | np.generic):
        return isinstance(found, wg.Tensor) and same_bits(found.numpy(), want)
    return type(found) is type(want) and found == want


def nodes_of(results: Any) -> list[Node]:
    """Return every node that recorded Tensors depend on."""
    found: dict[Node, None] = {}
    tensors = [leaf for leaf in float_leaves(results) if isinstance(leaf, wg.Tensor)]
    stack = [current(leaf)._node for leaf in tensors if leaf.requires_grad]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found[node] = None
            stack.extend(node.inputs)
    return list(found)
