"""Sweeps that are recorded themselves, by `create_graph`: derivatives of any order, whatever rules are made of."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import call_of, float_leaves, nodes_of, random_like
from tests.samples.running import over
from tests.test_backward import PASSED_ON
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.transposes import transposition
from wengert.core.values.aval import Aval

DIFFERENTIATED = [s for s in SAMPLES if call_of(s).leaves and s.order >= 1]


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def leaf(array: Any) -> Any:
    """Return a leaf of the tape with the elements of an array."""
    return wg.tensor(array, requires_grad=True)


def arrays(values: Any, like: Any) -> list[Any]:
    """Return what are Tensors, arrays, or None for zeros, as arrays."""
    pairs = zip(values, like, strict=True)
    return [np.zeros(x.shape, x.dtype) if v is None else np.asarray(wg.stop_gradient(v)) for v, x in pairs]


@over(DIFFERENTIATED, few=True, third=True)
def test_second_derivatives_are_those_of_nested_transformations(sample: Sample) -> None:
    call = call_of(sample)

    def function(*xs: Any) -> list[Any]:
        return float_leaves(call(*xs))

    leaves, outs = call.leaves, function(*call.copies())
    if not outs or any(x.dtype.kind == "c" for x in (*leaves, *outs)):
        return  # the tape shows conjugates
    cts, directions = [random_like(out) for out in outs], [random_like(x) for x in leaves]

    def pulled(xs: Any, vs: Any) -> Any:
        return wg.vjp(function, *xs)[1](vs)

    want_first, pullback = wg.vjp(pulled, leaves, cts)
    want = pullback(tuple(directions))
    xs, vs = list(map(leaf, leaves)), list(map(leaf, cts))
    results = function(*xs)
    known = [i for i, out in enumerate(results) if isinstance(out, wg.Tensor) and out.requires_grad]
    if not known:
        return
    results, given = [results[i] for i in known], [vs[i] for i in known]
    first = wg.autograd.grad(results, xs, given, create_graph=True, materialize_grads=True)
    for found, wanted in zip(first, want_first, strict=True):
        np.testing.assert_allclose(found.detach(), wanted, rtol=1e-10, atol=1e-12)
    places = [i for i, slope in enumerate(first) if slope.requires_grad]
    if places:
        slopes, along = [first[i] for i in places], [directions[i] for i in places]
        second = wg.autograd.grad(slopes, [*xs, *vs], along, allow_unused=True, retain_graph=True)
        for found, wanted in zip(arrays(second, [*xs, *vs]), [*want[0], *want[1]], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
        again = wg.autograd.grad(slopes, [*xs, *vs], along, allow_unused=True, create_graph=True)
        for found, wanted in zip(arrays(again, [*xs, *vs]), arrays(second, [*xs, *vs]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def linear_nodes(sample: Sample) -> list[Any]:
    """Return the nodes of linear operations on one operand that a sample records."""
    call = call_of(sample)
    found = nodes_of(call(*map(leaf, call.leaves)))
    found = [node for node in found if isinstance(node.primitive, Linear)]
    return [node for node in found if len(node.inputs) == len(node.primitive.transposes) == 1]


@over([s for s in DIFFERENTIATED if s.order])
def test_operations_that_transposes_are_promise_fresh_cotangents_only_where_they_are(sample: Sample) -> None:
    for node in linear_nodes(sample):
        (parent,) = node.inputs
        primitive, params = transposition(node.primitive, Aval(parent.shape, parent.dtype), node.params, ())
        ct = np.array(np.random.default_rng(1).normal(size=parent.shape), dtype=parent.dtype)
        (found,) = primitive.vjp(ct, None, (None,), (Aval(node.shape, node.dtype),), params)
        np.testing.assert_array_equal(found, node.primitive.evaluate(ct, **node.params))
        if primitive.fresh and isinstance(found, np.ndarray):
            assert not np.shares_memory(found, ct)
            assert found.flags.writeable


@together("form", [np.asarray, wg.tensor, wg.asarray, lambda given: wg.tensor(given)[:]])
@together("function", PASSED_ON.values())
def test_writes_to_what_was_given_or_returned_reach_nothing_else(function: Any, form: Any) -> None:
    x, y = (leaf(np.arange(5000.0) + i) for i in range(2))
    result = function(x, y)
    given = form(np.ones(result.shape))
    found = wg.autograd.grad(result, [x, y], given, create_graph=True, allow_unused=True)
    things = [given, *(thing for thing in found if thing is not None)]
    before = [np.array(thing) for thing in things]
    for i, thing in enumerate(things):
        thing[...] = 7.0
        for j, other in enumerate(things):
            assert j == i or np.array_equal(other, before[j]), (i, j)
        thing[...] = before[i]


LINEAR = {
    "T": lambda x: x.T,
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: np.sum(x, axis=1),
    "mean": lambda x: x.mean(0),
    "part": lambda x: x[1, ::-2],
    "row": lambda x: x[-1],
    "rows": lambda x: x[np.array([0, 1, 0])],
    "mask": lambda x: x[np.array([True, False])],
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "diff": np.diff,
    "repeat": lambda x: np.repeat(x, 2, 0),
    "trace": np.trace,
    "tril": np.tril,
}
ON_PIECES = {
    "sort": np.sort,
    "max": np.max,
    "min of columns": lambda x: np.min(x, axis=0),
    "where": lambda x: np.where(np.array([True, False, True]), x, 0.0),
    "where of both": lambda x: np.where(np.array([[True], [False]]), x, np.ones((4, 1, 1))),
    "clip": lambda x: np.clip(x, 1.0, 4.0),
    "partition": lambda x: np.partition(x, 1),
    "broadcast": lambda x: x + np.ones((4, 1, 3)),
}


@together("function", [*LINEAR.values(), *ON_PIECES.values()])
def test_the_transpose_of_what_is_linear_on_pieces_is_recorded_as_one_operation(function: Any) -> None:
    x = leaf(np.arange(6.0).reshape(2, 3))
    result = function(x)
    v = leaf(np.ones(result.shape))
    (slope,) = wg.autograd.grad(result, x, v, create_graph=True)
    made = slope.grad_fn
    if made.name == "guarded":  # which tells further sweeps that this one passed a mask
        made = made.next_functions[0]
    (behind,) = made.next_functions
    assert behind.name == "leaf"
    assert made.position == result.grad_fn.position


def test_the_cotangent_of_what_was_joined_goes_the_same_ways() -> None:
    x = leaf(np.arange(4.0).reshape(2, 2))
    joined = np.concatenate((np.sort(x), np.zeros((1, 2))))
    v = leaf(np.ones((3, 2)))
    (slope,) = wg.autograd.grad(joined, x, v, create_graph=True)
    (part,) = slope.grad_fn.next_functions
    (behind,) = part.next_functions
    assert [slope.grad_fn.name, part.name, behind.name] == ["sort transposed", "getitem", "leaf"]


PRODUCTS = {
    "matmul": lambda x, y: x @ y.T,
    "dot": lambda x, y: np.dot(x[0], y[1]),
    "tensordot": lambda x, y: np.tensordot(x, y, 2),
    "einsum": lambda x, y: np.einsum("ij,kj->k", x, y),
    "einsum of three": lambda x, y: np.einsum("ij,ij,ij->j", x, y, y),
    "outer": np.outer,
    "kron": np.kron,
    "cross": np.cross,
    "convolve": lambda x, y: np.convolve(x[0], y[1], "same"),
    "with numbers": lambda x, y: x @ np.ones((3, 2)) + y @ np.ones((3, 2)),
}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
def test_derivatives_of_products_up_to_the_third(function: Any) -> None:
    x, y = (np.arange(6.0).reshape(2, 3) % 4 + i for i in (1, 2))

    def on_the_tape(*arrays: Any) -> Any:
        xs = list(map(leaf, arrays))
        total = np.sum(function(*xs) ** 2)
        found = []
        for _ in range(3):
            slopes = wg.autograd.grad(total, xs, create_graph=True)
            found += [slope.detach().numpy() for slope in slopes]
            total = sum(np.sum(np.sin(slope)) for slope in slopes)
        return found

    def value(x: Any, y: Any) -> Any:
        return np.sum(function(x, y) ** 2)

    def summed(function: Any) -> Any:
        return lambda *xs: sum(np.sum(np.sin(slope)) for slope in wg.grad(function, argnums=(0, 1))(*xs))

    want = []
    for function_of_order in (value, summed(value), summed(summed(value))):
        want += wg.grad(function_of_order, argnums=(0, 1))(x, y)
    for found, wanted in zip(on_the_tape(x, y), want, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_products_record_one_operation_for_the_cotangent_of_each_operand() -> None:
    x, y = leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))
    product = x @ y
    v = leaf(np.ones((2, 2)))
    for slope in wg.autograd.grad(product, [x, y], v, create_graph=True):
        assert [behind.name for behind in slope.grad_fn.next_functions] == ["leaf", "leaf"]
        assert slope.grad_fn.position == product.grad_fn.position
