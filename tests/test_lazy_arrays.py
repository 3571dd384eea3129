"""Arrays whose elements are elsewhere: those of Dask's tasks are never computed unasked, and say what to write."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.errors import DtypeError

ELEMENTS = np.arange(4.0)
REMEDY = (
    r"\. Write x\.compute\(\) for all of it at once, x\.map_blocks\(f\) for a function of each block, or "
    r"wengert\.distributed\.value_and_grad\(loss, x\) for a sum over its rows\.$"
)


class Lazy:
    """Have the protocols of Dask's arrays, which know no Tensors."""

    shape, dtype, ndim = (4,), np.dtype(float), 1
    __module__ = "dask.array.core"

    def __init__(self, graph: Any = ()) -> None:
        self.graph = graph

    def __dask_graph__(self) -> Any:
        return self.graph

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.graph is not None:
            raise AssertionError("computed")
        return ELEMENTS

    def __array_ufunc__(self, _ufunc: Any, _method: str, *inputs: Any, **_options: Any) -> Any:
        return NotImplemented if any(type(x) is wg.Tensor for x in inputs) else self

    def __array_function__(self, _function: Any, types: Any, _args: Any, _options: Any) -> Any:
        return NotImplemented if wg.Tensor in types else self

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)


LAZY, T = Lazy(), wg.tensor(np.ones(4))
CALLS: dict[str, Any] = {
    "grad": lambda: wg.grad(np.sum)(LAZY),
    "jit": lambda: wg.jit(np.sum)({"x": LAZY}),
    "vmap": lambda: wg.vmap(np.sin)(LAZY),
    "multiply": lambda: T * LAZY,
    "multiply by": lambda: LAZY * T,
    "matmul": lambda: LAZY @ T,
    "add": lambda: np.add(np.ones(4), T, out=None) + LAZY,
    "stack": lambda: np.stack([T, LAZY]),
    "where": lambda: np.where(LAZY, T, 0.0),
    "sin": lambda: wnp.sin(LAZY),
    "concatenate": lambda: wnp.concatenate([T, LAZY]),
    "dot": lambda: wnp.dot(T, LAZY),
    "multiply in a gradient": lambda: wg.grad(lambda w: np.sum(LAZY * w))(ELEMENTS),
    "multiply under jit": lambda: wg.jit(lambda w: np.sum(w * LAZY))(ELEMENTS),
    "matmul in lanes": lambda: wg.vmap(lambda w: w @ LAZY)(np.eye(4)),
}


@together("name", CALLS)
def test_tasks_are_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(DtypeError, match=rf"^{name.split()[0]}: an? .*(dask\.)?Lazy.*; .* are needed.*{REMEDY}"):
        CALLS[name]()


def test_what_has_the_protocol_and_elements_is_an_array() -> None:
    """Arrays of xarray say that they have no graph where what they hold is in memory."""
    held = Lazy(graph=None)
    np.testing.assert_array_equal(wg.vmap(lambda x: x * 2.0)(held), ELEMENTS * 2.0)
    assert np.sin(ELEMENTS)[1] == wnp.sin(held)[1]


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """Be an array whose class is a dataclass, as Zarr's is."""

    path: str
    count: int

    shape = (4,)
    dtype = np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return ELEMENTS


def test_arrays_that_are_dataclasses_are_no_containers() -> None:
    stored = StoredArray("x", 4)
    assert wg.tree.leaves({"x": stored}) == [stored]
    np.testing.assert_array_equal(wg.vmap(lambda x: x * 2.0)(stored), ELEMENTS * 2.0)
    with pytest.raises(DtypeError, match=r"^grad: an argument of type .*StoredArray; .*Convert it first, by numpy"):
        wg.grad(np.sum)(stored)
    np.testing.assert_array_equal(wg.grad(lambda w: np.sum(w * stored))(np.ones(4)), ELEMENTS)
