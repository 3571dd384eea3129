"""Shapes, joining and splitting: what samples cannot say: lists that mix, orders in memory, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp

X = np.arange(12.0).reshape(3, 4)
windows = np.lib.stride_tricks.sliding_window_view


def same(found: Any, want: Any) -> bool:
    """Tell whether a Tensor has the dtype, shape and elements of an array."""
    return found.dtype == want.dtype and found.shape == want.shape and bool(np.all(found.numpy() == want))


# Lists


def test_lists_may_mix_tensors_arrays_and_numbers() -> None:
    t = wg.tensor(2.0)
    assert np.stack([t, 1.0, np.float64(3.0)]).tolist() == [2.0, 1.0, 3.0]
    assert np.concatenate([wg.tensor([1.0]), [2], np.ones(1)]).tolist() == [1.0, 2.0, 1.0]
    assert np.hstack([t, [1, 2]]).tolist() == [2.0, 1.0, 2.0]
    assert np.block([[t, 1], [0, t]]).tolist() == [[2.0, 1.0], [0.0, 2.0]]
    assert wnp.reshape([[t, 1.0], [2.0, t]], -1).tolist() == [2.0, 1.0, 2.0, 2.0]


def test_gradients_reach_tensors_inside_of_lists() -> None:
    gradient = wg.grad(lambda x: np.sum(wnp.stack([[x[0], 1.0], [x[1], x[0]]]) * [[1.0, 2.0], [3.0, 4.0]]))
    assert gradient(np.zeros(2)).tolist() == [5.0, 3.0]


def test_one_array_stands_for_the_list_of_its_rows() -> None:
    x = wg.tensor(X)
    for function in (np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.stack):
        assert same(function(x), function(X))


def test_joined_dtypes_promote_and_cotangents_keep_each_dtype() -> None:
    narrow, wide = np.ones(2, np.float32), np.ones(2)
    _, pullback = wg.vjp(lambda x, y: np.concatenate([x, y]), narrow, wide)
    assert [ct.dtype for ct in pullback(np.ones(4))] == [np.float32, np.float64]
    assert np.stack([wg.tensor(narrow), wide], dtype=np.float32).dtype == np.float32


def test_joining_into_a_tensor() -> None:
    x, out = wg.tensor([1.0, 2.0], requires_grad=True), wg.tensor(np.zeros(4))
    assert np.concatenate([x, 2 * x], out=out) is out
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_list_of_many_scalars_is_one_operation() -> None:
    x = wg.tensor(np.arange(5.0), requires_grad=True)
    y = np.stack(list(x))
    assert y.grad_fn.name == "stack"


# Order in memory


@pytest.mark.parametrize("array", [X, X.T, X[:, ::2], X[::-1], np.asfortranarray(X), X.reshape(2, 3, 2).swapaxes(0, 1)])
@pytest.mark.parametrize("order", ["C", "F", "A", "K", "a", None])
def test_elements_are_read_in_the_order_that_numpy_reads_them(array: Any, order: Any) -> None:
    x = wg.asarray(array)
    assert same(np.ravel(x, order), np.ravel(array, order))
    if order != "K":
        assert same(
            np.reshape(x, (2, 6) if array.size == 12 else 6, order),
            array.reshape((2, 6) if array.size == 12 else 6, order=order),
        )


def test_reshape_without_a_copy() -> None:
    x = wg.tensor(X)
    assert same(np.reshape(x, 12, copy=False), X.reshape(12))
    with pytest.raises(ValueError, match="copy"):
        np.reshape(x.T, 12, copy=False)


# Batches


def test_functions_read_lane_by_lane_in_a_batch() -> None:
    xs = np.arange(24.0).reshape(2, 3, 4)
    for function in (
        lambda x: np.ravel(x, "F"),
        lambda x: np.ravel(x.T, "K"),
        lambda x: np.pad(x, (1, 2), "reflect", reflect_type="odd"),
        lambda x: np.broadcast_to(x[0], (2, 3, 4)),
        lambda x: windows(x, (2, 2)),
        lambda x: np.tile(np.roll(x, 1, 0), (2, 1)),
        lambda x: np.insert(np.delete(x, 1, axis=1), 0, x[:, 0], axis=1),
        lambda x: np.diag(np.diagonal(x)),
    ):
        np.testing.assert_array_equal(wg.vmap(function)(xs), np.stack([function(x) for x in xs]))


# Errors

x = wg.tensor(X)
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: np.squeeze(x, 1),
        "squeeze: axis 1 of length 4; an axis of length one is needed. Choose another axis.",
    ),
    (
        lambda: np.broadcast_to(x, (3, 5)),
        "broadcast_to: a shape (3, 4) to be broadcast to (3, 5); a shape with equal lengths from the right, or 1, is "
        "needed. Reshape the array.",
    ),
    (
        lambda: np.transpose(x, (0,)),
        "transpose: 1 axes for a shape (3, 4); all 2 are needed. Name every axis once.",
    ),
    (
        lambda: np.matrix_transpose(x[0]),
        "matrix_transpose: an array of shape (4,); at least two axes are needed. Reshape it to a matrix.",
    ),
    (
        lambda: np.moveaxis(x, (0, 1), 0),
        "moveaxis: 2 sources and 1 destinations; as many are needed. Pair them.",
    ),
    (
        lambda: np.rollaxis(x, 0, 4),
        "rollaxis: start=4 for an array of 2 axes; a place from -2 to 2 is needed. Use numpy.moveaxis.",
    ),
    (
        lambda: np.fliplr(x[0]),
        "fliplr: an array of shape (4,); at least 2 axes are needed. Reshape it first.",
    ),
    (lambda: np.rot90(x, axes=(0,)), "rot90: axes (0,); two axes are needed. Name the plane of the turn."),
    (
        lambda: np.diag(x[0, 0]),
        "diag: an array of shape (); one axis or two are needed. Use numpy.diagonal.",
    ),
    (
        lambda: windows(x, 2, writeable=True),
        "sliding_window_view: writeable=True for a Tensor; a read-only view is needed, because its elements overlap. "
        "Write into the array itself.",
    ),
    (
        lambda: np.stack([x, x[0]]),
        "stack: arrays of shapes (3, 4), (4,); at least one array, and equal shapes, are needed. Broadcast them first.",
    ),
    (lambda: np.block([x, (x,)]), "block: a tuple; lists are needed to arrange blocks. Write [...] in its place."),
    (
        lambda: np.block([x, [x]]),
        "block: lists nested [0, 1] deep; lists of equal depth, not empty, are needed. Complete the nested lists.",
    ),
    (lambda: np.resize(x, -1), "resize: a shape (-1,); lengths from 0 are needed. Correct the shape."),
    (
        lambda: np.insert(x, 4, 0.0, axis=0),
        "insert: index 4; indices from -3 to 3 are needed. Insert within the axis.",
    ),
    (
        lambda: np.insert(x, [[1]], 0.0, axis=0),
        "insert: indices of shape (1, 1); at most one axis is needed. Flatten them.",
    ),
    (
        lambda: np.meshgrid(x[0], indexing="ji"),
        'meshgrid: indexing=\'ji\'; "xy" or "ij" is needed. Choose one of the two.',
    ),
    (lambda: np.vander(x), "vander: an array of shape (3, 4); one axis is needed. Flatten it."),
    (
        lambda: np.split(x, 2),
        "split: 2 sections for an axis of length 3; a divisor of the length is needed. "
        "Use array_split for parts of different lengths.",
    ),
    (
        lambda: np.array_split(x, 0),
        "array_split: 0 sections; at least one is needed. Pass a positive number.",
    ),
    (
        lambda: np.pad(x, 1, lambda vector, widths, axis, options: None),
        "pad: a function as mode; one of constant, edge, empty, linear_ramp, maximum, mean, median, minimum, reflect, "
        "symmetric, wrap is needed. Build another padding with numpy.concatenate.",
    ),
    (
        lambda: np.pad(x, 1, "edge", end_values=0),
        "pad: the options ['end_values'] for mode 'edge'; none is allowed. Leave them out.",
    ),
    (
        lambda: np.pad(x, 1.5),
        "pad: pad_width of dtype float64; whole numbers are needed. Convert them to int.",
    ),
    (lambda: np.pad(x, -1), "pad: a negative pad_width; numbers from 0 are needed. Use slices to remove."),
    (
        lambda: np.pad(x[:0], 1, "edge"),
        "pad: an empty axis 0 with mode 'edge'; elements are needed. Use the mode \"constant\".",
    ),
    (
        lambda: np.pad(x, 1, "maximum", stat_length=0),
        "pad: stat_length 0 for mode 'maximum'; elements are needed. Pass a positive stat_length.",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[text.split(";")[0][:50] for _, text in ERRORS])
def test_errors_say_what_was_given_and_what_is_needed(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    assert str(caught.value) == text
