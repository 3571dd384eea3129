"""`wengert.numpy` in the place of NumPy: its names, and that what they mean has NumPy's values and gradients."""

from __future__ import annotations

import importlib
import inspect
import io
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from tools import public_names
from wengert.errors import GraphError
from wengert.numpy._namespace import NEWER
from wengert.support.hints import hints, names_left_out
from wengert.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
P, Q = np.array([0.0, 1.0, -2.0, 3.0]), np.array([1.0, 2.0])


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="the lists are of the names of NumPy 2.4")
def test_every_name_of_numpy_is_there_or_left_out_for_a_reason() -> None:
    names = {name for name in dir(np) if not name.startswith("_")}
    there = set(dir(wnp))
    assert names - there - set(names_left_out("numpy")) == set()
    assert not there & set(names_left_out("numpy"))


def test_names_that_are_left_out_say_why() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = wnp.poly1d
    assert str(caught.value) == (
        "numpy.poly1d has no derivative in Wengert; use the functions poly, polyadd, polyder, polyfit, polyint, "
        "polyval and roots."
    )
    with pytest.raises(AttributeError, match=r"module 'wengert\.numpy' has no attribute 'xyz'"):
        _ = wnp.xyz
    assert Path(public_names.LEFT_OUT_PAGE).read_text() == public_names.left_out()


def test_modules_that_are_numpys_own() -> None:
    assert wnp.random is np.random
    assert wnp.exceptions is np.exceptions


def signed(a: Any, b: Any = 2.0) -> Any:
    return a * b if a > 0 else a - b


def rows(x: Any) -> Any:
    return x * x[0]


CALLS: dict[str, Callable[[Any], Any]] = {
    "r_": lambda np: np.r_[1:4, 0, Q, 0:1:5j],
    "r_ of rows": lambda np: np.r_["0,2", Q, Q],
    "r_ of columns": lambda np: np.r_["1,2,0", Q, Q],
    "r_ of the last axis": lambda np: np.r_["-1", X, X],
    "c_": lambda np: np.c_[np.arange(2), Q, [5, 6]],
    "mgrid": lambda np: np.mgrid[0:3, 0:2:3j],
    "ogrid": lambda np: np.ogrid[0:3, 0:2],
    "ix_": lambda np: np.ix_([0, 1], [2, 3]),
    "index_exp": lambda np: X[np.index_exp[1:, ..., 0]] + np.zeros(8),
    "polyadd": lambda np: np.polyadd(P, Q) + np.polyadd(Q, P),
    "polysub": lambda np: np.polysub(P, Q) - np.polysub(Q, P),
    "polymul": lambda np: np.polymul(P, Q),
    "polydiv": lambda np: np.polydiv(P, Q),
    "polydiv by more": lambda np: np.polydiv(Q, P[1:]),
    "polyder": lambda np: np.polyder(P, 2),
    "polyint": lambda np: np.polyint(P, 2, [3.0, 1.0]),
    "poly": lambda np: np.poly([1.0, 2.0, 3.0]),
    "poly of conjugate zeros": lambda np: np.poly([1j, -1j]),
    "poly of a matrix": lambda np: np.poly([[1.0, 2.0], [3.0, 4.0]]),
    "roots": lambda np: np.roots([0.0, 1.0, -6.0, 11.0, -6.0, 0.0]),
    "polyfit": lambda np: np.polyfit(X[:, 0], X[:, 1], 2),
    "polyfit, weights": lambda np: np.polyfit(X[:, 0], X, 2, w=np.arange(1.0, 10.0)),
    "polyfit, covariance": lambda np: np.polyfit(X[:, 0], X[:, 1], 1, cov=True),
    "polyfit, unscaled covariance": lambda np: np.polyfit(X[:, 0], X, 1, cov="unscaled"),
    "polyfit, all": lambda np: list(np.polyfit(X[:, 0], X[:, 1], 2, full=True)[:4]),
    "polyval": lambda np: np.polyval(P, X),
    "apply_along_axis": lambda np: np.apply_along_axis(rows, 0, X),
    "apply_along_axis, more axes": lambda np: np.apply_along_axis(lambda x: x[:, None] * x, 1, X),
    "apply_over_axes": lambda np: np.apply_over_axes(np.sum, X, [0, -1]),
    "vectorize": lambda np: np.vectorize(signed)(X, b=np.ones(3)),
    "vectorize, excluded": lambda np: np.vectorize(np.polyval, excluded={0})([1, 2, 3], np.arange(3)),
    "vectorize, signature": lambda np: np.vectorize(np.dot, signature="(n),(n)->()")(X, X[0]),
    "vectorize, several": lambda np: np.vectorize(lambda x: (x, x > 0))(Q),
    "kaiser": lambda np: np.kaiser(8, 3.0),
    "setxor1d": lambda np: np.setxor1d([1, 2, 3, 2], [2, 5]),
    "trim_zeros": lambda np: np.trim_zeros(np.array([0, 1, 0, 2, 0]), "b"),
    "trim_zeros of rows": lambda np: np.trim_zeros(np.outer([0, 1, 2, 0], [1, 0]), axis=0),
    "histogramdd": lambda np: np.histogramdd(X, [2, 3, 2], density=True)[0],
    "histogramdd, weights": lambda np: np.histogramdd(X, 2, range=[(-1, 1)] * 3, weights=np.arange(9.0))[0],
    "histogram2d": lambda np: np.histogram2d(X[:, 0], X[:, 1], [3, [-1.0, 0.0, 1.0]]),
    "packbits": lambda np: np.packbits([[1, 0, 1, 1]]),
    "unpackbits": lambda np: np.unpackbits(np.array([[7], [200]], np.uint8), axis=1),
    "require": lambda np: np.require([1, 2], float, ["F", "W"]),
    "asarray_chkfinite": lambda np: np.asarray_chkfinite([1.0]),
    "add.reduceat": lambda np: np.add.reduceat(X, [0, 3, 2], axis=0),
    "multiply.reduceat": lambda np: np.multiply.reduceat(X, [0, 3, 2], axis=0),
    "maximum.reduceat": lambda np: np.maximum.reduceat(X, [1, 2], axis=1),
    "broadcast": lambda np: np.array(np.broadcast(X, Q[:1]).shape),
    "ndenumerate": lambda np: np.array([sum(place) * x for place, x in np.ndenumerate(X)]),
}


@together("name", CALLS)
def test_values_are_numpys(name: str) -> None:
    want, found = CALLS[name](np), CALLS[name](wnp)
    for a, b in zip(*(x if isinstance(x, list | tuple) else [x] for x in (found, want)), strict=True):
        for one, other in zip(a, b, strict=True) if isinstance(b, list) else [(a, b)]:
            assert type(one) is wg.Tensor
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "r_": lambda x: wnp.r_[x, 0, x[:1]] ** 2,
    "c_": lambda x: wnp.c_[x, x**2],
    "polydiv": lambda x: np.polydiv(x, x[:2] + 3.0),
    "polymul": lambda x: np.polymul(x, x[:2]),
    "polyint": lambda x: np.polyint(x, 2, x[0] ** 2),
    "poly": lambda x: np.poly(x),
    "roots": lambda x: np.roots(wnp.r_[1.0, x[:3] ** 2 + 1.0]).real,
    "polyfit": lambda x: np.polyfit(x, np.exp(x), 2),
    "polyfit, weights": lambda x: np.polyfit(X[:4, 0], x, 1, w=x**2 + 1.0),
    "vectorize": lambda x: wnp.vectorize(signed)(x, x**2),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v * v[0], 0, x.reshape(2, 2)),
    "kaiser": lambda x: wnp.kaiser(5, x[0] ** 2),
    "histogramdd": lambda x: np.histogramdd(X[:4], 2, weights=x**2)[0],
    "multiply.reduceat": lambda x: np.multiply.reduceat(x, [0, 2]),
}


@together("name", GRADIENTS)
def test_gradients(name: str) -> None:
    check_grads(GRADIENTS[name], (np.array([0.5, -1.5, 2.0, 0.75]),), order=2)


def test_instances_of_ndarray() -> None:
    assert isinstance(wnp.zeros(3), wnp.ndarray)
    assert isinstance(X, wnp.ndarray)
    assert not isinstance(wnp.zeros(3)[0], wnp.ndarray)
    assert not isinstance(1.0, wnp.ndarray)
    assert wg.grad(lambda x: x[0] if isinstance(x, wnp.ndarray) else x[1])(Q).tolist() == [1.0, 0.0]
    assert wnp.ndarray((2, 3), np.float32).dtype == np.float32


def test_files() -> None:
    for write, read, memory in ((wnp.save, wnp.load, io.BytesIO()), (np.savetxt, wnp.loadtxt, io.StringIO())):
        write(memory, wg.asarray(P))
        memory.seek(0)
        found = read(memory)
        assert type(found) is wg.Tensor
        np.testing.assert_array_equal(found, P)
    with pytest.raises(GraphError, match=r"numpy: a Tensor of shape \(2,\) that is being differentiated"):
        wg.grad(lambda x: (wnp.save(io.BytesIO(), x), x[0])[1])(Q)


def test_functions_have_numpys_parameters() -> None:
    for name in wnp.__all__:
        function, numpys = getattr(wnp, name), getattr(np, name, None)
        if not callable(function) or isinstance(function, type) or numpys is None:
            continue
        try:
            wanted = inspect.signature(numpys)
        except (TypeError, ValueError):  # written in C
            continue
        found = [x for x in inspect.signature(function).parameters if x in wanted.parameters or x not in NEWER]
        assert found == list(wanted.parameters), name


@together(
    "module, name, written",
    [
        (wg, "where", "; it is wengert.numpy.where"),
        (wg, "cat", "; write numpy.concatenate"),
        (wg, "linear_transpose", "; write wengert.vjp"),
        (wg, "nonsense", ""),
        (wg.tree, "flatten", "; write wengert.tree.leaves(x) and wengert.tree.structure(x)"),
        (wg.tree, "nonsense", ""),
        (wg.tree, "sin", "; it is wengert.numpy.sin"),
        (wg.numpy, "topk", "; write numpy.sort(x, axis)[..., -k:]"),
        (wg.numpy, "softmax", "; it is wengert.nn.functional.softmax"),
        (wg.numpy, "trapz", "; write numpy.trapezoid(y, x)"),
        (wg.numpy, "float_", "; `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead."),
        (wg.numpy, "cumsum_", "; write x[...] = wengert.numpy.cumsum(x)"),
        (wg.numpy.linalg, "logdet", ""),
        (wg.functional, "relu", "; it is wengert.nn.functional.relu"),
        (wg.functional, "nonsense", ""),
        (wg.nn.functional, "BatchNorm2d", "; write wengert.nn.functional.batch_norm"),
        (wg.nn.functional, "MSELoss", "; write wengert.nn.functional.mse_loss"),
        (
            wg.nn.functional,
            "PixelShuffle",
            "; write x.reshape(n, c, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * r, w * r)",
        ),
        (wg.nn.functional, "Nonsense", ""),
        (wg.nn, "relu", "; it is wengert.nn.functional.relu"),
    ],
)
def test_names_of_others_say_what_is_written_here(module: Any, name: str, written: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(module, name)
    assert str(error.value) == f"module {module.__name__!r} has no attribute {name!r}{written}"


@together(
    "owner, name, written",
    [
        (wg.jit(np.sin), "eval_shape", "wengert.graph.trace(f)(*args).outputs"),
        (wg.jit(np.sin), "py_func", "f.__wrapped__"),
        (wg.jit(np.sin).lower(1.0), "cost_analysis", ".cost"),
        (wg.custom_rule(np.sin), "defjvps", "defjvp, whose rule takes all primals and tangents"),
    ],
)
def test_names_of_others_for_objects_say_what_is_written_here(owner: Any, name: str, written: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    assert str(error.value) == f"{type(owner).__name__!r} object has no attribute {name!r}; write {written}"


def test_the_package_that_compiles_is_no_function() -> None:
    importlib.import_module("wengert.compile")
    with pytest.raises(TypeError, match=r"^'module' object is not callable; write wengert\.jit\(f\)$"):
        wg.compile(np.sin)


def test_what_is_written_for_names_of_others_is_here() -> None:
    for text in hints("modules", "any").values():
        for path in re.findall(r"wengert(?:\.\w+)+", text):
            assert operator.attrgetter(path.removeprefix("wengert."))(wg)
    assert not hints("modules", "any").keys() & {*wg.__all__}


@pytest.mark.parametrize(("name", "written"), hints("modules", "wengert.scipy").items())
def test_modules_of_scipys_that_are_not_here_say_what_to_write(name: str, written: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'wengert\.scipy' has no attribute '{name}'; write {written}$"):
        getattr(wg.scipy, name)
    with pytest.raises(AttributeError, match=r"^module 'wengert\.scipy' has no attribute 'nothing'$"):
        _ = wg.scipy.nothing


def test_what_is_spelled_in_full_is_of_no_other_module() -> None:
    for name, written in {
        "Bounds": "scipy.optimize's own",
        "toms748": "root_scalar(f, bracket=(a, b)) of wengert.optim",
    }.items():
        with pytest.raises(AttributeError, match=f"'{name}'; write {re.escape(written)}$"):
            getattr(wg.scipy.optimize, name)


def test_what_stands_elsewhere_too_is_said_of_functions_first() -> None:
    for name in ("Variable", "gradient", "diff"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; write wengert"):
            getattr(wg, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.argsort(2.0),
        lambda m: m.argpartition(np.array(2.0), 0),
        lambda m: m.bincount([], minlength=2),
        lambda m: m.full(np.array([2, 1]), 3.0),
        lambda m: m.full(range(1, 3), 3.0),
        lambda m: m.repeat([1.0, 2.0], [1.5, 2.0]),
        lambda m: m.repeat([1.0, 2.0], True),
        lambda m: m.repeat(np.ones(2), 2.5),
    ],
)
def test_arguments_of_other_kinds_mean_what_they_do_to_numpy(call: Any) -> None:
    found, expected = call(wnp).numpy(), call(np)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_writing_nothing_changes_nothing() -> None:
    x = wnp.ones((2, 2))
    np.put(x, [0, 1], [])
    np.fill_diagonal(x, [])
    assert np.array_equal(x, np.ones((2, 2)))


@pytest.mark.parametrize(
    "x",
    [
        np.array([2.0, np.nan, 3.0, -1.0, 3.0]),
        np.array([[3, 1, 2], [-128, 127, 0]], np.int8),
        np.array([3, 0, 255], np.uint8),
        np.array([True, False, True]),
        np.array([1 + 1j, 2.0, 1 - 1j]),
    ],
)
def test_from_the_largest_to_the_smallest(x: Any) -> None:
    order = wnp.argsort(x, descending=True)
    found = wnp.sort(x, descending=True).numpy()
    np.testing.assert_array_equal(np.take_along_axis(x, order.numpy(), -1), found)
    missing = np.isnan(found)
    reals = np.where(missing, -np.inf, found.real.astype(float))
    assert np.all(np.diff(reals) <= 0)
    np.testing.assert_array_equal(np.sort(found), np.sort(x))
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(wg.grad(lambda x: wnp.sort(x, descending=True)[0] ** 2)(x), [0, 0, 6, 0, 0])
