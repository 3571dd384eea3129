"""Views: a program that writes through them does on Tensors what it does on ndarrays, and gradients follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import UsageError
from wengert.testing import check_grads

windows = np.lib.stride_tricks.sliding_window_view

VIEWS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: np.reshape(x, (4, 3)),
    "reshape a part": lambda x: np.reshape(x[1:], -1),
    "reshape that copies": lambda x: np.reshape(x.T, -1),
    "reshape, Fortran order": lambda x: np.reshape(x.T, -1, order="F"),
    "reshape, any order": lambda x: np.reshape(x.T, -1, order="A"),
    "reshape with a copy": lambda x: np.reshape(x, -1, copy=True),
    "ravel": np.ravel,
    "ravel that copies": lambda x: np.ravel(x[:, ::2]),
    "ravel of a strided vector": lambda x: np.ravel(x[0, ::2]),
    "ravel of a reversed vector": lambda x: np.ravel(x[0, ::-1]),
    "ravel, Fortran order": lambda x: np.ravel(x.T, "F"),
    "ravel, any order": lambda x: np.ravel(x.T, "A"),
    "ravel, memory order": lambda x: np.ravel(x.reshape(2, 3, 2).transpose(1, 0, 2), "K"),
    "ravel of a part, memory order": lambda x: np.ravel(x.T[::2], "K"),
    "transpose": np.transpose,
    "permute_dims": lambda x: np.permute_dims(x.reshape(2, 3, 2), (2, 0, 1)),
    "matrix_transpose": lambda x: np.matrix_transpose(x.reshape(2, 3, 2)),
    "swapaxes": lambda x: np.swapaxes(x.reshape(2, 3, 2), 0, 2),
    "moveaxis": lambda x: np.moveaxis(x.reshape(2, 3, 2), 0, -1),
    "rollaxis": lambda x: np.rollaxis(x.reshape(2, 3, 2), 2),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "squeeze to nothing": lambda x: np.expand_dims(np.squeeze(x[1:2, 2:3]), 0),
    "flip": np.flip,
    "fliplr of flipud": lambda x: np.fliplr(np.flipud(x)),
    "rot90": np.rot90,
    "rot90 twice": lambda x: np.rot90(x, 2),
    "rot90 not at all": lambda x: np.rot90(x, 4),
    "split": lambda x: np.split(x, 2, axis=1)[1],
    "array_split": lambda x: np.array_split(x, 3, axis=1)[0],
    "hsplit": lambda x: np.hsplit(x, [1, 3])[1],
    "vsplit": lambda x: np.vsplit(x, 3)[2],
    "dsplit": lambda x: np.dsplit(x[..., None], 1)[0],
    "unstack": lambda x: np.unstack(x, axis=1)[2],
    "atleast_1d": lambda x: np.atleast_1d(x[0]),
    "atleast_2d": lambda x: np.atleast_2d(x[0]),
    "atleast_3d": np.atleast_3d,
    "broadcast_arrays of one shape": lambda x: np.broadcast_arrays(x, x)[1],
    "meshgrid without copies": lambda x: np.meshgrid(x[0], x[1, :2], sparse=True, copy=False)[1],
    "view of a view of a view": lambda x: np.flip(np.reshape(x.T[1:3], (2, 3)).T, 0)[1:],
}


def programme(view_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a program that writes through a view and through its base in turns."""

    def run(x: Any) -> Any:
        base = np.copy(x)
        view = view_of(base)
        view[0] = 2 * view[-1]
        base *= 3
        view += 1
        base[1] = base[0] * view.reshape(-1)[-1]
        return np.concatenate([base.reshape(-1), view.reshape(-1)])

    return run


@together("view_of", VIEWS.values())
def test_writes_go_where_they_go_in_numpy(view_of: Callable[[Any], Any]) -> None:
    run = programme(view_of)
    x = np.random.default_rng(0).normal(size=(3, 4))
    want = run(x)
    plain, recorded = run(wg.asarray(x)), run(wg.tensor(x, requires_grad=True))
    np.testing.assert_array_equal(plain.numpy(), want)
    np.testing.assert_array_equal(recorded.detach().numpy(), want)


@together("view_of", VIEWS.values())
def test_gradients_follow_writes(view_of: Callable[[Any], Any]) -> None:
    check_grads(programme(view_of), (np.random.default_rng(0).normal(size=(3, 4)),), order=2, rtol=1e-6)


READ_ONLY: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
    "diagonal": np.diagonal,
    "diag": np.diag,
    "linalg.diagonal": np.linalg.diagonal,
    "sliding_window_view": lambda x: windows(x, 2, axis=1),
}


@pytest.mark.parametrize("view_of", READ_ONLY.values(), ids=READ_ONLY)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_that_numpy_makes_read_only_are_so(view_of: Callable[[Any], Any], requires_grad: bool) -> None:
    base = wg.tensor(np.zeros((3, 4)), requires_grad=requires_grad) * 1
    view = view_of(base)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0


@pytest.mark.parametrize("view_of", READ_ONLY.values(), ids=READ_ONLY)
def test_read_only_views_see_writes_to_their_base(view_of: Callable[[Any], Any]) -> None:
    def run(x: Any) -> Any:
        base = np.copy(x)
        view = view_of(base)
        base[1:] = base[1:] * base[:-1]
        return np.copy(view)

    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_array_equal(run(wg.asarray(x)).numpy(), run(x))
    check_grads(run, (x,), order=2, rtol=1e-6)


def test_overlapping_windows_cannot_be_written_through() -> None:
    with pytest.raises(UsageError, match=r"sliding_window_view: writeable=True"):
        windows(wg.tensor(np.zeros(3)), 2, writeable=True)


def test_results_that_are_no_views_are_left_alone_by_writes() -> None:
    x = wg.tensor(np.arange(4.0))
    results = [
        np.concatenate([x]),
        np.tile(x, 1),
        np.roll(x, 0),
        np.repeat(x, 1),
        np.pad(x, 0),
        np.pad(x, 0, "edge"),
        np.delete(x, []),
        np.insert(x, [], []),
        np.resize(x, 4),
        np.block(x),
        np.meshgrid(x)[0],
    ]
    x[:] = 7.0
    for result in results:
        assert result.tolist() == [0.0, 1.0, 2.0, 3.0]


WITHOUT_AXES: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda t: t.reshape(()).reshape(1),
    "squeeze": lambda t: np.atleast_1d(np.squeeze(t)),
    "transpose": lambda t: np.expand_dims(t.T, 0),
    "everything": lambda t: t[...].ravel(),
    "a new axis and none": lambda t: np.squeeze(t[None])[None],
}


@pytest.mark.parametrize("requires_grad", [False, True])
@together("view_of", WITHOUT_AXES.values())
def test_views_of_views_without_axes_see_writes(view_of: Callable[[Any], Any], requires_grad: bool) -> None:
    def run(t: Any) -> Any:
        base = t.copy()
        view = view_of(base)
        base[...] = 9.0
        view += 1.0
        return base

    assert run(np.array(1.5)) == 10.0
    assert run(wg.tensor(np.array(1.5), requires_grad=requires_grad)).item() == 10.0
