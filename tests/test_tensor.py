"""Tensors as values: construction, NumPy's protocols, conversion, copying, export."""

from __future__ import annotations

import array as array_module
import cmath
import collections
import contextlib
import copy
import functools
import math
import operator
import pickle
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.distance
import scipy.special
import scipy.stats
from numpy._core.overrides import array_function_dispatch

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.errors import (
    DetachedWarning,
    DtypeError,
    GraphError,
    ShapeError,
    TracedTruthError,
    UsageError,
    WengertError,
)


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(values, requires_grad=True)


# Construction


def test_tensor_copies_and_asarray_shares() -> None:
    array = np.array([1.0, 2.0])
    copied, shared = wg.tensor(array), wg.asarray(array)
    assert not np.shares_memory(copied.numpy(), array)
    assert np.shares_memory(shared.numpy(), array)
    shared[0] = 9.0
    np.testing.assert_array_equal(array, [1.0, 2.0])
    assert wg.asarray(copied) is copied
    assert wg.asarray(copied, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1, 2], np.int64),
        ([1.0, 2], np.float64),
        ([True], np.bool_),
        ([1j], np.complex128),
        (np.float32(1), np.float32),
        (3, np.int64),
        (2.5, np.float64),
    ],
)
def test_dtypes_are_numpys(data: Any, dtype: Any) -> None:
    assert wg.tensor(data).dtype == dtype
    assert wg.tensor(data).shape == np.shape(data)


def test_dtype_can_be_given() -> None:
    t = wg.tensor([1, 2], dtype=np.float32, requires_grad=True)
    assert t.dtype == np.float32
    assert t.requires_grad


@pytest.mark.parametrize("make", [wg.tensor, wg.asarray])
def test_data_must_be_numeric(make: Any) -> None:
    for data, dtype in ((None, "object"), (["a"], "<U1")):
        with pytest.raises(DtypeError) as error:
            make(data)
        assert str(error.value).endswith(
            f": data of dtype {dtype}; a numeric dtype is needed. Convert it with .astype(float)."
        )


def test_a_tensor_of_a_tensor_is_a_constant() -> None:
    x = leaf(1.0)
    with pytest.warns(DetachedWarning, match=r"^tensor: .* Write wengert\.asarray\(x\), .* to keep it") as caught:
        assert not wg.tensor(x * 2).requires_grad
    assert caught[0].filename == __file__
    with pytest.warns(DetachedWarning):
        assert wg.grad(lambda x: wg.tensor(x) * 2)(1.0) == 0.0
    assert wg.asarray(x) is x


def test_a_tensor_of_what_is_a_constant_already_does_not_warn() -> None:
    x = leaf(1.0)
    assert wg.tensor(x, requires_grad=True).requires_grad
    assert not wg.tensor(x.detach()).requires_grad
    assert wg.grad(lambda x: wg.tensor(x > 0) * x)(np.array(1.0)) == 1.0
    with wg.no_grad():
        assert not wg.tensor(x).requires_grad


def test_tensor_is_final() -> None:
    with pytest.raises(TypeError) as error:
        type("Sub", (wg.Tensor,), {})
    assert str(error.value) == "Tensor: a subclass Sub; Tensor is final. Hold a Tensor in your class instead."


@pytest.mark.parametrize("arguments", [(), ([1.0],), (2, 3)])
def test_the_class_says_which_functions_make_tensors(arguments: Any) -> None:
    with pytest.raises(TypeError) as error:
        wg.Tensor(*arguments)
    needed = "a function that makes Tensors is needed"
    action = "Use wengert.tensor(data), or wengert.numpy.zeros(shape)"
    assert str(error.value) == f"Tensor: a call of the class; {needed}. {action}."


def test_flags_tell_how_elements_lie() -> None:
    x = wg.tensor(np.ones((2, 3)), requires_grad=True)
    assert (np.isfortran(x), np.isfortran(x.T), x.flags.c_contiguous) == (False, True, True)
    assert not x.flags.writeable
    assert not wg.tensor(1.0).flags.writeable
    assert wg.grad(lambda x: np.sum(x) * np.isfortran(x))(np.asfortranarray(x.detach())).tolist() == [[1.0] * 3] * 2


def test_attributes() -> None:
    t = wg.tensor(np.zeros((2, 3), np.float32))
    assert (t.shape, t.ndim, t.size, t.itemsize, t.nbytes) == ((2, 3), 2, 6, 4, 24)
    assert t.T.shape == (3, 2)
    assert t.mT.shape == (3, 2)


# Promotion


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("scalar", [2, 2.0, True, 2j])
def test_python_scalars_are_weak(dtype: Any, scalar: Any) -> None:
    array = np.array([1, 2], dtype=dtype)
    for operate in (operator.add, operator.mul, operator.truediv):
        for given, expected in (
            (operate(wg.tensor(array), scalar), operate(array, scalar)),
            (operate(scalar, wg.tensor(array)), operate(scalar, array)),
        ):
            assert given.dtype == expected.dtype
            np.testing.assert_array_equal(given.numpy(), expected)


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2)])
def test_numpy_scalars_are_not_weak(scalar: Any) -> None:
    array = np.array([1, 2], dtype=np.float32)
    for given, expected in ((wg.tensor(array) * scalar, array * scalar), (scalar * wg.tensor(array), scalar * array)):
        assert type(given) is wg.Tensor
        assert given.dtype == expected.dtype


def test_zero_dimensional_results_keep_their_dtype() -> None:
    s = wg.tensor(np.float32(2.0))
    assert (s * 2.0).dtype == np.float32
    assert (s + np.float64(1)).dtype == np.float64
    assert s.sum().dtype == np.float32


def test_ndarrays_on_the_left() -> None:
    x = leaf(1.0, 2.0)
    for y in (np.ones(2) * x, np.ones(2) - x, np.add(np.ones(2), x), np.ones((1, 2)) < x):
        assert type(y) is wg.Tensor


# Truth, numbers, containers


def test_truth_and_numbers() -> None:
    assert wg.tensor(2.0)
    assert not wg.tensor([0.0])
    assert int(wg.tensor(2.7)) == 2
    assert float(wg.tensor(2.5)) == 2.5
    assert complex(wg.tensor(2j)) == 2j
    assert operator.index(wg.tensor(3)) == 3
    assert [10, 20][wg.tensor(1)] == 20
    assert list(range(wg.tensor(2))) == [0, 1]
    with pytest.raises(TypeError):
        operator.index(wg.tensor(1.0))


@pytest.mark.parametrize("kind", [bool, int, float, complex])
def test_one_element_is_needed_for_a_number(kind: Any) -> None:
    with pytest.raises(DtypeError) as error:
        kind(wg.tensor([1.0, 2.0]))
    assert str(error.value) == (
        f"{kind.__name__}: a Tensor of shape (2,); a Tensor with exactly one element is needed. "
        + (
            "Reduce it first, with .any() or .all() for instance, or choose element by element with np.where."
            if kind is bool
            else "Reduce it first, with .sum() or .max() for instance, or take one element."
        )
    )


def test_an_array_of_one_element_is_no_number() -> None:
    """As NumPy has it; its truth may be asked for."""
    integers: list[Any] = [int, operator.index, range, [4, 5].__getitem__, np.ones(3)[:2].item]
    others: list[Any] = [float, complex, math.sin, math.ceil, cmath.exp, "{:.2f}".format, "%f".__mod__]
    for one in (np.array([1]), np.array([[1]])):
        for call in integers + others:
            for given in (one, wg.tensor(one)):
                with pytest.raises(TypeError):
                    call(given)
        for call in (lambda n: int(n), lambda n: sum(range(n)), lambda n: [4, 5][n]):
            with pytest.raises(TypeError):
                wg.jit(call)(one)
        t = wg.tensor(one)
        assert bool(t)
        assert t.item() == 1
        assert np.float64(t).shape == np.complex128(t).shape == one.shape
        assert np.arange(3)[t].shape == one.shape
    with pytest.raises(DtypeError) as error:
        float(wg.tensor([1]))
    assert str(error.value) == "float: a Tensor of shape (1,); one without axes is needed. Call .item(), or index it."


def test_len_iteration_and_membership() -> None:
    t = wg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [row.tolist() for row in t] == [[1.0, 2.0], [3.0, 4.0]]
    assert 3.0 in t
    assert 5.0 not in t
    first, second = t
    first[0] = 9.0
    assert t.tolist() == [[9.0, 2.0], [3.0, 4.0]]
    assert second.tolist() == [3.0, 4.0]
    with pytest.raises(TypeError) as error:
        len(wg.tensor(1.0))
    assert str(error.value) == "len: a 0-d Tensor; at least one axis is needed. Use .size for a number of elements."
    with pytest.raises(TypeError):
        iter(wg.tensor(1.0))


def test_iteration_is_differentiated() -> None:
    x = leaf(1.0, 2.0, 3.0)
    sum(v * i for i, v in enumerate(x)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_comparison_is_elementwise_and_hashing_by_identity() -> None:
    a, b = wg.tensor([1.0, 2.0]), wg.tensor([1.0, 3.0])
    assert (a == b).tolist() == [True, False]
    assert (a < b).tolist() == [False, True]
    assert (a != [1.0, 2.0]).tolist() == [False, False]
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1
    assert (a == None) is False  # noqa: E711 - the comparison is the subject
    assert (a != "text") is True


@pytest.mark.parametrize("other", [None, "text", {}, object()])
def test_operands_that_are_no_numbers(other: Any) -> None:
    with pytest.raises(TypeError):
        wg.tensor([1.0]) + other
    with pytest.raises(TypeError):
        other * wg.tensor([1.0])


# Printing


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: wg.tensor([1.0, 2.5]), "tensor([1. , 2.5])"),
        (lambda: wg.tensor(3), "tensor(3)"),
        (lambda: wg.tensor([1.0], dtype=np.float32), "tensor([1.], dtype=float32)"),
        (lambda: leaf(1.0), "tensor([1.], requires_grad=True)"),
        (lambda: leaf(1.0) * 2, "tensor([2.], grad_fn=<multiply>)"),
        (lambda: leaf(1.0, 2.0)[1:], "tensor([2.], grad_fn=<getitem>)"),
    ],
)
def test_printing(made: Any, text: str) -> None:
    assert repr(made()) == text


def test_formatting() -> None:
    assert f"{wg.tensor(2.0):.3f}" == "2.000"
    assert f"{leaf(2.5)[0]:5.1f}" == "  2.5"
    assert f"{wg.tensor([1.0])}" == "tensor([1.])"
    assert f"{wg.tensor([1.0, 2.0]):>20}" == "    tensor([1., 2.])"
    text = r"format: a Tensor of shape \(2,\) with the format '\.2f'; one number is needed\. Format its elements,"
    with pytest.raises(DtypeError, match=text):
        f"{wg.tensor([1.0, 2.0]):.2f}"


def test_printing_inside_a_transformation() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(repr(x * 2))
        return x * 2

    wg.grad(f)(1.5)
    assert seen == ["tensor(3., grad_fn=<multiply>)"]


# Leaving the library


def test_plain_values_become_ndarrays() -> None:
    t = wg.tensor([1.0, 2.0])
    for array in (t.numpy(), np.asarray(t), np.array(t), np.asarray(t, dtype=np.float32)):
        assert type(array) is np.ndarray
        np.testing.assert_array_equal(array, [1.0, 2.0])
    assert np.array(t).flags.writeable
    assert not np.asarray(t).flags.writeable
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float32, copy=False)
    assert (t.tolist(), wg.tensor(2.5).item(), t.item(1)) == ([1.0, 2.0], 2.5, 2.0)
    assert t.tobytes() == np.array([1.0, 2.0]).tobytes()


def test_a_copy_of_an_ndarray_of_a_tensor_is_independent() -> None:
    t = wg.tensor([1.0, 2.0])
    array = np.array(t)
    array[0] = 5.0
    assert t.tolist() == [1.0, 2.0]


ASARRAY = (
    "{}: a Tensor of shape {} that is being differentiated; a plain value is needed, because an ndarray would "
    "silently lose the gradient. {}, or call .detach() first."
)


@pytest.mark.parametrize(
    ("function", "name", "shape"),
    [
        (lambda x: np.asarray(x), "asarray", (2,)),
        (lambda x: np.array(x), "array", (2,)),
        (lambda x: np.array([x, x]), "array", (2,)),
        (lambda x: np.array([x[0], 1.0]), "array", ()),
        (lambda x: np.array([[x[0], -x[1]], [x[1], x[0]]]), "array", ()),
        (lambda x: np.sum([x[0], x[1]]), "sum", ()),
        (lambda x: np.linalg.norm([x[0], x[1]]), "linalg.norm", ()),
        (lambda x: np.r_[x[0], x[1]], "r_", ()),
        (lambda x: np.c_[x, x], "c_", (2,)),
        (lambda x: np.r_[x[1:] - x[:-1] - x[0] * (x[1:] + x[:-1]) / 2, x[1:] ** 2 - x[:-1] ** 2], "r_", (1,)),
        (lambda x: x.numpy(), "numpy", (2,)),
        (lambda x: np.from_dlpack(x), "__dlpack__", (2,)),
        (lambda x: next(map(np.asarray, [x])), "list", (2,)),
    ],
)
def test_differentiated_values_do_not_become_ndarrays(function: Any, name: str, shape: tuple[int, ...]) -> None:
    action = f"Write wengert.numpy.{name}"
    if name in ("array", "asarray"):
        action += ", np.stack for a list, or np.array(..., like=x) with a Tensor x"
    elif name in ("sum", "linalg.norm"):
        action += ", which takes lists of Tensors, or make one array of the list with np.stack"
    elif name not in ("r_", "c_"):
        action = "Use functions of wengert.numpy"
    known = "asarray" if name == "list" else name.rpartition(".")[2]
    with pytest.raises(GraphError) as error:
        function(leaf(1.0, 2.0))
    assert str(error.value) == ASARRAY.format(known, shape, action)
    with pytest.raises(GraphError):
        wg.grad(lambda x: function(x).sum())(np.array([1.0, 2.0]))
    if known != "numpy" and not known.startswith("_") and name != "list":
        with pytest.raises(GraphError, match=re.escape(action)) as error:
            wg.vmap(function)(np.ones((1, 2)))
        assert str(error.value).startswith(f"{known}: ")


def test_libraries_that_ask_for_elements_are_known_by_name() -> None:
    matrix = scipy.sparse.csr_array(np.eye(2))
    x = leaf(1.0, 2.0)
    with pytest.raises(DtypeError, match=r"^dot: data of dtype object; a numeric .* Convert it with \.toarray\(\)\.$"):
        np.dot(matrix, x)
    # pandas itself is not installed with the tests
    multiply = types.FunctionType((lambda x: np.asarray(x)).__code__, {"np": np, "__name__": "pandas.frame"})
    with pytest.raises(GraphError) as error:
        multiply(x)
    action = "Take the numbers of the Series or DataFrame first, with .to_numpy()"
    assert str(error.value) == ASARRAY.format("asarray", (2,), action)


def test_masked_arrays_are_left_to_where() -> None:
    masked = np.ma.masked_invalid(np.array([1.0, np.nan]))
    action = "Write numpy.where(mask, 0.0, array.filled(0.0)), or reductions with where=~mask, for masked arrays"
    with pytest.raises(GraphError) as error:
        masked * leaf(1.0, 2.0)
    assert str(error.value) == ASARRAY.format("asarray", (2,), action)
    with pytest.raises(TracedTruthError, match=re.escape(action)):
        wg.jit(lambda x: np.sum(masked * x))(1.0)


USE = "Use wengert.scipy.{}, or declare a rule by wengert.custom_rule"
WRITE = "Write it with NumPy's functions, for there is no wengert.scipy.{}, or declare a rule by wengert.custom_rule"


POLYNOMIAL = (
    "Use wengert.numpy.polyval(c[::-1], x), polymul or polyfit, whose coefficients begin with the highest power, or "
    "for a constant x the matrix of a basis times the coefficients, as chebvander(x, degree) @ c"
)


@together(
    "function, action",
    [
        (
            scipy.linalg.expm,
            "Use wengert.scipy.linalg.expm, or declare a rule by wengert.custom_rule",
        ),
        (
            scipy.linalg.inv,
            "Use wengert.scipy.linalg.inv, or declare a rule by wengert.custom_rule",
        ),
        (
            lambda x: scipy.linalg.solve_triangular(x, x),  # a decorator asks
            "Use wengert.scipy.linalg.solve_triangular, or declare a rule by wengert.custom_rule",
        ),
        (lambda x: scipy.stats.norm(loc=x).logpdf(2.0), USE.format("stats.norm")),
        (lambda x: scipy.stats.norm.logpdf(x), USE.format("stats.norm")),
        (lambda x: scipy.spatial.distance.cdist(x, x), USE.format("spatial.distance.cdist")),
        (lambda x: scipy.stats.multivariate_normal.logpdf(x, x[0]), USE.format("stats.multivariate_normal")),
        (lambda x: scipy.stats.multivariate_normal([0, 0]).pdf(x), USE.format("stats.multivariate_normal")),
        (lambda x: scipy.stats.zscore(x), USE.format("stats.zscore")),
        (lambda x: scipy.stats.nakagami.pdf(x, 1.0), WRITE.format("stats.nakagami")),
        (lambda x: scipy.stats.gaussian_kde(x), WRITE.format("stats.gaussian_kde")),
        (lambda x: scipy.special.perm(x, 2), WRITE.format("special.perm")),
        (lambda x: scipy.special.sph_harm_y(1, 1, x, x), WRITE.format("special.sph_harm_y")),
        (lambda x: scipy.linalg.schur(x), WRITE.format("linalg.schur")),
        (lambda x: scipy.fft.dct(x[0]), USE.format("fft, where it has the function")),
        (lambda x: np.polynomial.polynomial.polyval(2.0, x[0]), POLYNOMIAL),
        (lambda x: np.polynomial.Polynomial([1.0, 2.0])(x[0]), POLYNOMIAL),
        (
            lambda x: scipy.sparse.coo_array(x),
            "Make matrices of it by csr_array, diags_array, kron and others of wengert.scipy.sparse, and of one that "
            "is known write matrix @ x or x @ matrix, take wengert.scipy.sparse.csr_array(matrix) in its place, or it "
            "in full with .toarray()",
        ),
        (lambda x: scipy.integrate.trapezoid(x), USE.format("integrate.trapezoid")),
        (lambda x: scipy.integrate.odeint(lambda y, t: -y, x[0], [0, 1]), USE.format("integrate.odeint")),
        (
            lambda x: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x[0]),
            USE.format("integrate.solve_ivp"),
        ),
        (
            lambda x: scipy.integrate.RK45(lambda t, y: -y, 0.0, x[0], 1.0),
            "Write the steps of the method with NumPy's functions, in a loop or by wengert.scan, or the sum over fixed "
            "nodes, as wengert.scipy.integrate.fixed_quad, or declare a rule by wengert.custom_rule",
        ),
        (
            lambda x: scipy.optimize.rosen(x[0]),
            "Use wengert.scipy.optimize, where it has the function, whose results have derivatives, or "
            "wengert.implicit.custom_root for other solvers, and write what is minimised with NumPy's functions",
        ),
    ],
)
def test_functions_of_scipy_that_take_no_tensors_say_which_do(function: Any, action: str) -> None:
    with pytest.raises(GraphError) as error:
        function(wg.tensor(np.eye(2), requires_grad=True))
    text = str(error.value)
    assert text.startswith("asarray: a Tensor of shape (2")
    assert text.endswith(ASARRAY.format("", "", action).partition("silently")[2])


SPARSE = (
    "Use wengert.scipy.sparse.linalg, numpy.linalg.solve, eigh or svd of the whole matrix, or declare a rule by "
    "wengert.custom_rule."
)


@together(
    "function, action",
    [
        (scipy.linalg.circulant, f"{USE.format('linalg.circulant')}."),
        (lambda x: scipy.signal.ShortTimeFFT(x[0], 1, 2.0), f"{WRITE.format('signal.ShortTimeFFT')}."),
    ],
)
def test_functions_of_scipy_that_take_arrays_apart_say_what_to_use(function: Any, action: str) -> None:
    needed = "an ndarray is needed, because SciPy takes it apart in memory. "
    with pytest.raises(DtypeError, match=re.escape(needed + action) + "$"):
        function(wg.tensor(np.eye(2), requires_grad=True))
    with pytest.raises(
        WengertError, match=f"{re.escape(needed + action)}$|asked for while the function was being traced"
    ):
        wg.jit(lambda x: function(x))(np.eye(2))
    with pytest.raises(DtypeError, match=re.escape(f"{needed}Give it the array, x.numpy().") + "$"):
        function(wg.tensor(np.eye(2)))


@together("iterate", [lambda x: scipy.sparse.linalg.cg(x, np.ones(2)), lambda x: scipy.sparse.linalg.svds(x, 1)])
def test_iterations_of_scipy_lose_no_gradient_silently(iterate: Any) -> None:
    """Versions of SciPy come upon different operations first, which say the same in their words."""
    said = f"{re.escape(SPARSE)}$|an ndarray would (silently )?lose the gradient"
    with pytest.raises(WengertError, match=said):
        iterate(wg.tensor(np.eye(2), requires_grad=True))
    with pytest.raises(WengertError):
        wg.jit(lambda x: iterate(x))(np.eye(2))


@together(
    "name, written", [("strides", "x.numpy().strides, or"), ("tofile", "wengert.numpy.save("), ("matvec", "matrix @")]
)
def test_names_of_ndarrays_that_are_not_there_say_what_to_write(name: str, written: str) -> None:
    x = leaf(1.0, 2.0)
    assert not hasattr(x, name)
    with pytest.raises(
        AttributeError, match=rf"^'Tensor' object has no attribute '{name}'; write {re.escape(written)}"
    ):
        getattr(x, name)


def test_numbers_that_libraries_ask_for_say_what_to_write_instead() -> None:
    with pytest.raises(GraphError, match=r"to a function that may store it as a number; .* Use wengert.scipy.integr"):
        scipy.integrate.quad(lambda x: x, 0.0, leaf(2.0)[0])


def test_functions_that_numpy_vectorizes_say_which_does_it_for_tensors() -> None:
    twice = np.vectorize(lambda y: 2 * y)
    with pytest.raises(GraphError, match=r"^vectorize: a Tensor of shape \(2,\) .* Write wengert.numpy.vectorize"):
        wg.grad(lambda x: twice(x).sum())(np.ones(2))
    assert wg.jit(lambda x: twice(x).sum())(np.ones(2)) == 4.0


def test_errors_that_c_code_goes_on_after_are_told() -> None:
    for transformation in (wg.grad, wg.jit):
        with pytest.raises(GraphError, match=r"^float: a Tensor that a transformation is|^jit\(.*were asked for"):
            transformation(lambda k: scipy.optimize.brentq(lambda x: x * x - k, 0.0, 3.0))(2.0)


def test_errors_of_any_class_that_c_code_raises_after_ours_give_way() -> None:
    knots = scipy.interpolate.splrep(np.arange(6.0), np.arange(6.0) ** 2)
    for f in (
        lambda a: scipy.interpolate.splint(a, 2.0, knots),  # raises an IndexError
        lambda a: scipy.optimize.milp(np.ones(1), bounds=scipy.optimize.Bounds(a, 5.0)).x,  # a TypeError of pybind11's
        lambda a: scipy.signal.sosfilt(np.array([[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]]) * a, np.ones(3)),
    ):
        for transformation in (wg.grad, wg.jit):
            with pytest.raises(GraphError, match=r"^(float|asarray|assignment): a Tensor|^jit\(.*were asked"):
                transformation(f)(0.5)


C_CODE = {
    "fsolve": lambda a: scipy.optimize.fsolve(lambda x: x**2 - a, np.ones(1)),
    "leastsq": lambda a: scipy.optimize.leastsq(lambda x: x**2 - a, np.ones(1)),
    "root": lambda a: scipy.optimize.root(lambda x: x**2 - a, np.ones(1)),
    "milp": lambda a: scipy.optimize.milp(a * np.ones(2)),
    "lfilter": lambda a: scipy.signal.lfilter([1.0], [1.0, a], np.ones(3)),
}


@pytest.mark.parametrize("name", C_CODE)
def test_what_scipys_c_code_would_refuse_in_its_own_words_is_refused_in_ours(name: str) -> None:
    written = "Use wengert.scipy.signal.lfilter" if name == "lfilter" else "Use wengert.scipy.optimize, where it has"
    with pytest.raises(GraphError, match=f"^asarray: a Tensor of shape .* {written}"):
        C_CODE[name](leaf(0.5)[0])
    with pytest.raises(GraphError, match=f"asarray: a Tensor of shape .* {written}"):
        wg.jit(C_CODE[name])(0.5)


def test_integers_that_scipy_draws_keep_no_gradient_silently() -> None:
    text = r"^rvs: a Tensor of shape \(.*\) .* as loc; .* Add loc to what rvs draws without it\.$"
    for size in (None, 3):

        def draw(loc: Any, size: Any = size) -> Any:
            return scipy.stats.poisson.rvs(3.0, loc=loc, size=size, random_state=0)

        for call in (draw, wg.grad(draw), wg.jit(draw)):
            with pytest.raises(GraphError, match=text):
                call(leaf(2.0)[0] if call is draw else 2.0)
        np.testing.assert_array_equal(draw(wg.tensor(2.0)), draw(2.0))
    moved = wg.grad(lambda loc: loc + scipy.stats.poisson.rvs(3.0, random_state=0))(2.0)
    assert moved == 1.0
    assert int(leaf(2.0)[0]) == 2
    assert leaf(2.0).astype(int).tolist() == [2]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_of_matrices_are_made_by_block() -> None:
    with pytest.raises(
        GraphError, match=r"^bmat: a Tensor of shape \(2, 4\) .* Write wengert\.numpy\.block, which takes"
    ):
        np.bmat([[leaf([1.0, 2.0], [3.0, 4.0]), np.eye(2)]])


def test_errors_that_the_function_drops_before_it_raises_another_are_told() -> None:
    """C code may do so: what it calls with an error pending drops that where CPython's cache of look-ups misses."""

    def dropping(x: Any) -> Any:
        with contextlib.suppress(GraphError):
            return float(x)
        raise ValueError("f(a) and f(b) must have different signs")

    def choosing(x: Any) -> Any:
        try:
            return float(x)
        except GraphError:
            raise ValueError("own") from None

    with pytest.raises(GraphError, match=r"^float: a Tensor that a transformation is") as told:
        wg.grad(dropping)(2.0)
    assert isinstance(told.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="own"):
        wg.grad(choosing)(2.0)


STORED = (
    "assignment: a Tensor of shape {} that is being differentiated, stored into an ndarray; a Tensor is needed to hold "
    "it, because an ndarray would silently lose the gradient. Make the array with wengert.numpy (zeros, empty, or "
    "asarray for one that exists), or store .detach()."
)


def fill(value: Any) -> Any:
    array = np.zeros(2)
    array[0] = value
    return array.sum()


def fill_complex(value: Any) -> Any:
    array = np.zeros(2, complex)
    array[0] = value
    return array.sum().real


def fill_slice(value: Any) -> Any:
    array = np.zeros((2, 2))
    array[0] = value
    return array.sum()


@pytest.mark.parametrize("function", [fill, fill_complex])
@pytest.mark.parametrize("value", [lambda x: x[0], lambda x: x[:1], lambda x: (x * x).sum()])
def test_storing_an_element_into_an_ndarray_is_an_error(function: Any, value: Any) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises((GraphError, ValueError)) as error:
        function(value(x))
    explained = error.value if isinstance(error.value, GraphError) else error.value.__cause__
    assert isinstance(explained, GraphError)  # NumPy raises its own error from ours
    assert str(explained) == STORED.format(value(x).shape)
    with pytest.raises((GraphError, ValueError)):
        wg.grad(lambda z: function(value(z)))(np.array([1.0, 2.0]))


def store_by_variable(array: Any, x: Any) -> None:
    store = array.fill
    store(x)


def store_in_loop(array: Any, x: Any) -> None:
    for _ in map(array.fill, [x]):
        pass


STORES = {
    "a variable": store_by_variable,
    "a loop": store_in_loop,
    "__setitem__": lambda array, x: array.__setitem__(0, x),
    "of the class": lambda array, x: np.ndarray.__setitem__(array, 0, x),
    "operator": lambda array, x: operator.setitem(array, 0, x),
    "partial": lambda array, x: functools.partial(array.fill)(x),
    "map": lambda array, x: list(map(array.fill, [x])),
    "map unpacked": lambda array, x: [*map(array.fill, [x])],
    "map and float": lambda array, x: (float(x), list(map(array.fill, [x]))),
    "from a list": lambda array, x: [array.fill][0](x),
    "arguments": lambda array, x: (lambda f, *rest: f(*rest))(array.fill, x),
    "an attribute": lambda array, x: setattr(array[:1].reshape(()), "real", x),
    "array.array": lambda array, x: array_module.array("d", [x]),
}


@pytest.mark.parametrize("name", STORES)
def test_no_road_stores_a_differentiated_number_in_silence(name: str) -> None:
    with pytest.raises((GraphError, ValueError)) as error:
        STORES[name](np.zeros(3), wg.tensor(2.0, requires_grad=True))
    explained = error.value if isinstance(error.value, GraphError) else error.value.__cause__
    assert "silently lose the gradient" in str(explained)


def test_a_function_that_may_store_a_differentiated_number_is_named() -> None:
    make = array_module.array
    with pytest.raises(GraphError) as error:
        make("d", [wg.tensor(2.0, requires_grad=True)])
    assert str(error.value) == (
        "float: a Tensor of shape () that is being differentiated, given to a function that may store it as a number; "
        "a plain value is needed, because a Python number would silently lose the gradient. "
        "Use wengert.numpy, or give it float(x) or x.detach()."
    )


def test_differentiated_numbers_may_be_read() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    read = float
    assert [float(x), complex(x), read(x), math.sqrt(x) ** 2, np.float64(x)] == pytest.approx([2.0] * 5)
    assert list(map(float, [x])) == [*map(float, [x])] == sorted([x], key=float) == [2.0]
    a, b = map(float, [x, x])
    assert [a, b, *(float(v) for v in [x])] == [2.0] * 3
    assert ["%g" % x, f"{x:g}", "{:g}".format(x)] == ["2"] * 3  # noqa: UP031, UP032 - what is tested
    assert math.isfinite(x)


def test_a_function_that_stores_numbers_is_refused_where_another_statement_reads_some() -> None:
    store = np.zeros(1)
    put = store.fill
    assert float(store[0]) == 0.0
    with pytest.raises(ValueError, match="setting an array element with a sequence") as error:
        list(map(put, [wg.tensor(2.0, requires_grad=True)]))
    assert isinstance(error.value.__cause__, GraphError)


def test_storing_an_array_into_an_ndarray_is_an_error() -> None:
    with pytest.raises(GraphError) as error:
        fill_slice(leaf(1.0, 2.0))
    assert str(error.value) == STORED.format((2,))
    with pytest.raises(GraphError) as error:
        wg.grad(fill_slice)(np.array([1.0, 2.0]))
    assert str(error.value) == STORED.format((2,))


def test_adding_to_an_ndarray_in_place_is_an_error() -> None:
    array = np.zeros(2)
    with pytest.raises(DtypeError) as error:
        array += leaf(1.0, 2.0)
    assert str(error.value) == (
        "add: a result that is a Tensor, to be written (by out= or in place) into type ndarray; a Tensor is "
        "needed, because an ndarray would lose the gradient. Write x = x + y for x += y, or make the array with "
        "wengert.numpy, or call .detach().numpy() on the operands."
    )
    np.testing.assert_array_equal(array, [0.0, 0.0])


def sum_of_chosen(x: Any) -> Any:
    chosen = np.ones(3, bool)
    chosen &= x > 0
    np.logical_and(chosen, x < 4, out=chosen, where=x > 1)
    return np.sum(np.where(chosen, x, 0.0))


def test_ndarrays_take_in_place_what_nothing_is_differentiated_by() -> None:
    x = np.array([1.0, -2.0, 5.0])
    np.testing.assert_array_equal(wg.grad(sum_of_chosen)(x), [1.0, 0.0, 0.0])
    assert wg.jvp(sum_of_chosen, (x,), (x,)) == (1.0, 1.0)
    total = np.zeros(3)
    total += wg.tensor(x)
    total -= wg.stop_gradient(leaf(1.0, 1.0, 1.0))
    assert total.tolist() == [0.0, -3.0, 4.0]
    with pytest.raises(ShapeError, match=r"an ndarray of shape \(2,\); the same shape is needed"):
        np.cumsum(wg.tensor(x), out=np.zeros(2))


def test_ndarrays_do_not_take_in_place_what_has_no_numbers_yet() -> None:
    with pytest.raises(
        DtypeError, match=r"holds numbers\. Write x = x \+ y for x \+= y, or make the array with wengert\.numpy\.$"
    ):
        wg.vmap(sum_of_chosen)(np.ones((2, 3)))
    x = np.array([1.0, -2.0, 5.0])
    assert wg.jit(sum_of_chosen)(x) == sum_of_chosen(x)


def test_arrays_made_like_a_tensor_hold_tensors() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3, like=x)
        y[:2] = np.array([x[0] * 2.0, 1.0], like=x)
        y[2] = x[1] ** 2
        return np.sum(y * y)

    at = np.array([1.0, 2.0])
    assert type(f(at)) is np.float64
    assert wg.grad(f)(at).tolist() == [8.0, 32.0]


def test_plain_values_can_be_stored() -> None:
    array = np.zeros((2, 2))
    array[0] = wg.tensor([1.0, 2.0])
    array[1, 0] = wg.tensor(3.0)
    array[1, 1] = leaf(4.0)[0].detach()
    np.testing.assert_array_equal(array, [[1.0, 2.0], [3.0, 4.0]])


def test_python_numbers_of_differentiated_values() -> None:
    x = leaf(4.0)
    assert float(x[0]) == 4.0
    assert f"{float((x * x).sum()):.1f}" == "16.0"
    with pytest.raises(GraphError) as error:
        wg.grad(lambda z: math.sin(z))(1.0)
    assert str(error.value) == (
        "float: a Tensor that a transformation is differentiating; a plain value is needed, because a Python number "
        "would silently lose the gradient. Write NumPy's function in place of math.sin, or apply "
        "wengert.stop_gradient first."
    )


def test_python_control_flow_on_differentiated_values() -> None:
    def f(x: Any) -> Any:
        total = x
        while total < 100:
            total = total * x
        return total if x > 2 and int(x) == 3 else -total

    assert wg.grad(f)(3.0) == 5 * 3.0**4


# Copies


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_keep_value_dtype_and_requires_grad(duplicate: Any) -> None:
    for t in (wg.tensor([1.0, 2.0], dtype=np.float32), leaf(1.0), wg.tensor(3), wg.tensor([[1, 2]])[:, 1:]):
        other = duplicate(t)
        assert type(other) is wg.Tensor
        assert (other.dtype, other.shape, other.requires_grad) == (t.dtype, t.shape, t.requires_grad)
        np.testing.assert_array_equal(other.detach().numpy(), t.detach().numpy())
        assert not np.shares_memory(other.detach().numpy(), t.detach().numpy())


def test_what_was_recorded_cannot_be_pickled_apart_from_its_graph() -> None:
    with pytest.raises(GraphError) as error:
        pickle.dumps(leaf(1.0) * 2)
    assert str(error.value) == (
        "pickle: a Tensor that is being differentiated (multiply recorded it); a plain Tensor is needed, because "
        "derivatives do not follow a value out of the process. Call .detach() first, or differentiate inside of the "
        "task that gets it."
    )


@pytest.mark.parametrize(
    ("transform", "given"),
    [
        (wg.grad, r"a Tensor that is being differentiated \(an argument of a gradient\); a plain"),
        (wg.vmap, r"a Tensor of vmap\(.*; a plain Tensor .* Return it first, or differentiate inside of the task"),
        (lambda f: lambda x: wg.jvp(f, (x,), (x,)), r"a Tensor of jvp\(.*; a plain Tensor is needed"),
    ],
)
def test_what_is_transformed_cannot_go_to_another_process(transform: Any, given: str) -> None:
    def f(x: Any) -> Any:
        copy.deepcopy(x)
        pickle.dumps({"x": [x]})
        return np.sum(x)

    with pytest.raises(GraphError, match=f"^pickle: {given}"):
        transform(f)(np.ones(2))


def test_deep_copies_of_what_is_computed_carry_the_gradient_in_every_mode() -> None:
    def f(x: Any) -> Any:
        found = copy.deepcopy({"twice": x * 2.0, "row": (x * x)[1:]})
        found["row"] += 1.0
        found["twice"][0] = found["row"][0]
        return np.sum(found["twice"] ** 2 * x)

    x, t = np.array([0.5, 0.6]), np.array([1.0, -2.0])
    value, slope = 0.5 * 1.36**2 + 4 * 0.6**3, np.array([1.36**2, 0.5 * 2 * 1.36 * 1.2 + 12 * 0.6**2])
    leaf_x = leaf(*x)
    f(leaf_x).backward()
    assert leaf_x.grad is not None
    np.testing.assert_allclose(leaf_x.grad.numpy(), slope)
    np.testing.assert_allclose(wg.jvp(f, (x,), (t,)), (value, slope @ t))
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(x[None]), slope[None])
    np.testing.assert_allclose(wg.jit(f)(x), value)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), slope)
    np.testing.assert_allclose(wg.grad(wg.jit(f))(x), slope)
    np.testing.assert_allclose(wg.taylor(f, (x,), (t,), 1), [value, slope @ t])


def test_containers_of_tensors_are_copied_once() -> None:
    t = wg.tensor([1.0])
    first, second = copy.deepcopy([t, t])
    assert first is second


def test_copy_and_astype_carry_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    (copy.copy(x) * x.copy() * x.astype(np.float32)).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [3.0, 12.0])


# Export


def test_dlpack() -> None:
    t = wg.tensor([1.0, 2.0])
    array = np.from_dlpack(t)
    np.testing.assert_array_equal(array, [1.0, 2.0])
    shared = np.from_dlpack(t, copy=False)
    assert np.shares_memory(shared, t.numpy())
    t[0] = 9.0
    np.testing.assert_array_equal(shared, [1.0, 2.0])


def test_what_others_do_with_exported_memory_changes_no_gradient() -> None:
    torch = pytest.importorskip("torch")
    w, t = leaf(1.0, 2.0), wg.tensor([3.0, 4.0])
    y = (w * t).sum()
    torch.from_dlpack(t).zero_()
    y.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 4.0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes export buffers from 3.12 on")
def test_buffer() -> None:
    t = wg.tensor([1.0, 2.0])
    view = memoryview(t)  # type: ignore[arg-type]
    assert view.readonly
    assert view.tolist() == [1.0, 2.0]
    with pytest.raises(GraphError):
        memoryview(leaf(1.0))  # type: ignore[arg-type]


# NumPy's functions and methods


def test_numpy_functions_give_tensors() -> None:
    x = leaf(1.0, 2.0)
    for y in (np.sin(x), np.add(x, 1), np.sum(x), np.reshape(x, (1, 2)), np.where([True, False], x, 0.0)):
        assert type(y) is wg.Tensor
        assert y.requires_grad


def test_wengert_numpy_gives_tensors_for_arrays() -> None:
    for y in (wnp.sin(np.ones(2)), wnp.add(1.0, 2.0), wnp.sum([1.0, 2.0]), wnp.zeros(3)):
        assert type(y) is wg.Tensor
        assert not y.requires_grad


@array_function_dispatch(lambda array, out=None: (array, out))
def strange(array: Any, out: Any = None) -> Any:
    """Be a function that asks NumPy's protocol and that nobody knows."""
    return np.add.reduceat(array, [0], out=out)


@array_function_dispatch(lambda array: (array,))
def strange_view(array: Any) -> Any:
    """Be one that returns a view."""
    return array[1:]


@array_function_dispatch(lambda items: items)
def strange_sum(items: Any) -> Any:
    """Be one that takes a container."""
    return sum(items)


def test_functions_that_are_not_known() -> None:
    text = (
        "; a function that Wengert knows how to differentiate is needed. Use another function of wengert.numpy, "
        "declare a primitive with wengert.extend, or pass .detach()."
    )
    with pytest.raises(DtypeError) as error:
        np.busday_offset(leaf(1.0), 1)
    assert str(error.value) == "numpy.busday_offset: a Tensor that is being differentiated" + text
    unknown = np.frompyfunc(lambda a: a, 1, 1)
    with pytest.raises(DtypeError) as error:
        unknown(leaf(1.0))
    assert str(error.value) == unknown.__name__ + ": a Tensor that is being differentiated" + text


def test_functions_that_are_not_known_serve_tensors_without_gradient(tmp_path: Path) -> None:
    plain = leaf(3.0, 4.0).detach()
    np.savez(tmp_path / "values.npz", plain=plain)
    assert np.load(tmp_path / "values.npz")["plain"].tolist() == [3.0, 4.0]
    total = strange(plain)
    assert type(total) is wg.Tensor
    assert total.tolist() == [7.0]
    assert np.array_str(plain) == "[3. 4.]"


def test_results_of_unknown_functions_may_be_written_to_unless_they_are_views_of_operands() -> None:
    plain = wg.tensor([0.0, 1.0, 2.0])
    sums = strange(plain)
    sums[0] = 5.0
    assert (plain.tolist(), sums.tolist()) == ([0.0, 1.0, 2.0], [5.0])
    trimmed = strange_view(plain)  # in NumPy a write to it changes the operand
    with pytest.raises(UsageError, match=r"^assignment: a Tensor that stands for a read-only array"):
        trimmed[0] = 5.0


def test_a_result_in_memory_of_the_users_is_copied_where_it_is_kept() -> None:
    buffer = np.empty(1)
    total = strange(wg.tensor([1.0, 2.0]), out=buffer)
    q = leaf(1.0)
    loss = (q * total).sum()
    buffer[:] = 0.0
    assert wg.autograd.grad(loss, q)[0].tolist() == [3.0]  # type: ignore[union-attr]


def test_unknown_functions_say_what_they_cannot_take() -> None:
    plain = wg.tensor([1.0, 2.0])
    with pytest.raises(DtypeError, match=r"a Tensor to write to, given as out=.*leave out= away"):
        strange(plain, out=plain[:1])
    with pytest.raises(DtypeError, match="in a container that Wengert does not know"):
        strange_sum(collections.UserList([plain, plain]))
    with pytest.raises(DtypeError, match=r"strange: a Tensor that differs from lane to lane of a batch"):
        wg.vmap(strange)(np.ones((2, 3)))
    with pytest.raises(DtypeError, match=r"strange: a Tensor that is being traced, whose elements are not there yet"):
        wg.jit(strange)(np.ones(3))


def test_a_ufunc_refuses_too_many_operands() -> None:
    x = leaf(1.0)
    with pytest.raises(TypeError, match="sin: 4 operands; 1 are needed"):
        wnp.sin(x, x, x, x)


def test_arrays_of_objects_are_refused() -> None:
    objects = np.array([1.0, None], dtype=object)
    with pytest.raises(DtypeError, match=r"dtype object|Python objects"):
        leaf(1.0, 2.0) * objects


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapeError) as error:
        leaf(1.0, 2.0) + np.ones(3)
    assert str(error.value) == (
        "add: shapes (2,) and (3,); shapes that broadcast are needed: equal from the right, or 1. Reshape one of them."
    )
    with pytest.raises(ShapeError):
        leaf(1.0, 2.0) * wg.tensor(np.ones((2, 3)))


def test_in_place_results_must_fit() -> None:
    t = wg.tensor([1.0, 2.0])
    with pytest.raises(ShapeError) as error:
        t += np.ones((2, 2))
    assert str(error.value) == (
        "add: a result of shape (2, 2) for a Tensor of shape (2,); the same shape is needed to write in place. "
        "Use the operation that makes a new Tensor."
    )
    i = wg.tensor([1, 2])
    with pytest.raises(DtypeError) as dtype_error:
        i += 0.5
    assert str(dtype_error.value) == (
        "add: a result of dtype float64 for a Tensor of dtype int64; a dtype that casts within its kind is needed to "
        "write in place. Convert the Tensor with .astype first."
    )
    f = wg.tensor([1.0], dtype=np.float32)
    f += np.float64(1)
    assert f.dtype == np.float32


def test_out_and_where() -> None:
    x, out = leaf(1.0, 4.0), wg.tensor([10.0, 20.0])
    given = np.sqrt(x, out=out, where=np.array([False, True]))
    assert given is out
    assert out.tolist() == [10.0, 2.0]
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.25]


def test_big_endian_and_unaligned_memory() -> None:
    x = wg.tensor(np.array([1.0, 2.0], dtype=">f8"), requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


# Arrays of other classes


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.ma.masked_array([1.0, 2.0], [False, True]), id="masked"),
        pytest.param(np.ones((1, 2)).view(np.matrix), id="matrix"),
    ],
)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("tensor", wg.tensor),
        ("asarray", wg.asarray),
        ("grad", lambda array: wg.grad(np.sum)(array)),
        ("jvp", lambda array: wg.jvp(np.sum, (array,), (array,))),
        ("taylor", lambda array: wg.taylor(np.sum, (array,), (array,), 1)),
        ("vmap", lambda array: wg.vmap(np.sum)(array)),
        ("multiply", lambda array: wg.tensor([1.0, 2.0]) * array),
        ("add", lambda array: np.add(wg.tensor([1.0, 2.0]), array)),
    ],
)
def test_arrays_that_calculate_in_their_own_way_are_refused(name: str, use: Any, array: Any) -> None:
    with pytest.raises(DtypeError) as error:
        use(array)
    assert str(error.value) == (
        f"{name}: an array of type {type(array).__name__}; an ndarray is needed, because other classes calculate in "
        "their own way, which derivatives would miss. Convert it with numpy.asarray, and take masks or units into "
        "account yourself."
    )


def test_arrays_of_classes_that_calculate_as_ndarrays_are_welcome(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "data", dtype=float, mode="w+", shape=2)
    mapped[:] = [1.0, 2.0]
    assert wg.grad(lambda x: np.sum(x * mapped))(np.ones(2)).tolist() == [1.0, 2.0]
    assert wg.grad(lambda x: np.sum(x * x))(mapped).tolist() == [2.0, 4.0]
    assert wg.tensor(mapped).tolist() == [1.0, 2.0]


def test_flat_elements_are_read_and_set() -> None:
    def f(x: Any) -> Any:
        y = np.copy(x.T)
        y.flat[1:4] = x.flat[0] * np.ones(3)
        first, *_ = y.flat
        return np.sum(y * y) + first + next(x.flat) + x.flat[-1]

    at = np.arange(6.0).reshape(2, 3) + 1.0
    assert len(wg.tensor(at).flat) == 6
    value, gradient = wg.value_and_grad(f)(at)
    assert value == f(at)
    step = 1e-6
    for index in np.ndindex(2, 3):
        moved = np.zeros((2, 3))
        moved[index] = step
        assert abs((f(at + moved) - f(at - moved)) / (2 * step) - gradient[index]) < 1e-6


def test_scalars_are_looked_up_by_their_numbers() -> None:
    """As those of NumPy; arrays, with or without axes, and what is recorded on a tape are told apart."""
    table = {2.0: "two", 3: "three"}
    row = wg.tensor([2.0, 3.0, 0.5])
    assert [table.get(x) for x in row] == ["two", "three", None]
    assert table[row[:2].sum() - 3] == "two"
    assert row[0] in {2}
    assert len({row[0], row[1] - 1, 2.0}) == 1
    one, other = wg.tensor(2.0), wg.tensor(2.0)
    assert len({one, other, row}) == 3
    assert 2.0 not in {one: 1}
    recorded = wg.tensor([2.0], requires_grad=True)[0]
    assert {recorded: 1}[recorded] == 1
    assert recorded not in table
    assert wg.jit(lambda x: {2.0: 10.0}[x[0]])(np.array([2.0])) == 10.0
    with pytest.raises(GraphError, match=r"looked up or stored by its value; .*\n.*test_tensor"):
        wg.grad(lambda x: {2.0: 10.0}[x[0]] * x[0])(np.array([2.0]))
