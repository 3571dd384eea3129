"""The Python Array API standard 2024.12: names and parameters, and the namespace's description."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import UsageError

UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan "
    "log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan "
    "tanh trunc"
)
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
    "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply nextafter not_equal pow remainder subtract"
)
SIGNATURES = {
    **dict.fromkeys(UNARY.split(), "x, /"),
    **dict.fromkeys(BINARY.split(), "x1, x2, /"),
    "clip": "x, /, min, max",
    "arange": "start, /, stop, step, *, dtype, device",
    "asarray": "obj, /, *, dtype, device, copy",
    "empty": "shape, *, dtype, device",
    "empty_like": "x, /, *, dtype, device",
    "eye": "n_rows, n_cols, /, *, k, dtype, device",
    "from_dlpack": "x, /, *, device, copy",
    "full": "shape, fill_value, *, dtype, device",
    "full_like": "x, /, fill_value, *, dtype, device",
    "linspace": "start, stop, /, num, *, dtype, device, endpoint",
    "meshgrid": "x, y, *, indexing",
    "ones": "shape, *, dtype, device",
    "ones_like": "x, /, *, dtype, device",
    "tril": "x, /, *, k",
    "triu": "x, /, *, k",
    "zeros": "shape, *, dtype, device",
    "zeros_like": "x, /, *, dtype, device",
    "astype": "x, dtype, /, *, copy, device",
    "can_cast": "from_, to, /",
    "finfo": "type, /",
    "iinfo": "type, /",
    "isdtype": "dtype, kind",
    "result_type": "x, y",
    "take": "x, indices, /, *, axis",
    "take_along_axis": "x, indices, /, *, axis",
    "matmul": "x1, x2, /",
    "matrix_transpose": "x, /",
    "tensordot": "x1, x2, /, *, axes",
    "vecdot": "x1, x2, /, *, axis",
    "broadcast_arrays": "x, y",
    "broadcast_to": "x, /, shape",
    "concat": "arrays, /, *, axis",
    "expand_dims": "x, /, *, axis",
    "flip": "x, /, *, axis",
    "moveaxis": "x, source, destination, /",
    "permute_dims": "x, /, axes",
    "repeat": "x, repeats, /, *, axis",
    "reshape": "x, /, shape, *, copy",
    "roll": "x, /, shift, *, axis",
    "squeeze": "x, /, axis",
    "stack": "arrays, /, *, axis",
    "tile": "x, repetitions, /",
    "unstack": "x, /, *, axis",
    "argmax": "x, /, *, axis, keepdims",
    "argmin": "x, /, *, axis, keepdims",
    "count_nonzero": "x, /, *, axis, keepdims",
    "nonzero": "x, /",
    "searchsorted": "x1, x2, /, *, side, sorter",
    "where": "condition, x1, x2, /",
    "unique_all": "x, /",
    "unique_counts": "x, /",
    "unique_inverse": "x, /",
    "unique_values": "x, /",
    "argsort": "x, /, *, axis, descending, stable",
    "sort": "x, /, *, axis, descending, stable",
    "cumulative_prod": "x, /, *, axis, dtype, include_initial",
    "cumulative_sum": "x, /, *, axis, dtype, include_initial",
    "max": "x, /, *, axis, keepdims",
    "mean": "x, /, *, axis, keepdims",
    "min": "x, /, *, axis, keepdims",
    "prod": "x, /, *, axis, dtype, keepdims",
    "std": "x, /, *, axis, correction, keepdims",
    "sum": "x, /, *, axis, dtype, keepdims",
    "var": "x, /, *, axis, correction, keepdims",
    "all": "x, /, *, axis, keepdims",
    "any": "x, /, *, axis, keepdims",
    "diff": "x, /, *, axis, n, prepend, append",
    "linalg.cholesky": "x, /, *, upper",
    "linalg.cross": "x1, x2, /, *, axis",
    "linalg.det": "x, /",
    "linalg.diagonal": "x, /, *, offset",
    "linalg.eigh": "x, /",
    "linalg.eigvalsh": "x, /",
    "linalg.inv": "x, /",
    "linalg.matmul": "x1, x2, /",
    "linalg.matrix_norm": "x, /, *, keepdims, ord",
    "linalg.matrix_power": "x, n, /",
    "linalg.matrix_rank": "x, /, *, rtol",
    "linalg.matrix_transpose": "x, /",
    "linalg.outer": "x1, x2, /",
    "linalg.pinv": "x, /, *, rtol",
    "linalg.qr": "x, /, *, mode",
    "linalg.slogdet": "x, /",
    "linalg.solve": "x1, x2, /",
    "linalg.svd": "x, /, *, full_matrices",
    "linalg.svdvals": "x, /",
    "linalg.tensordot": "x1, x2, /, *, axes",
    "linalg.trace": "x, /, *, offset, dtype",
    "linalg.vecdot": "x1, x2, /, *, axis",
    "linalg.vector_norm": "x, /, *, axis, keepdims, ord",
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft"), "x, /, *, n, axis, norm"
    ),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"), "x, /, *, s, axes, norm"),
    "fft.fftfreq": "n, /, *, d, dtype, device",
    "fft.rfftfreq": "n, /, *, d, dtype, device",
    "fft.fftshift": "x, /, *, axes",
    "fft.ifftshift": "x, /, *, axes",
}
"""The functions of the standard and of its extensions with their parameters."""
OPERATORS = (
    "abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int invert le "
    "lshift lt matmul mod mul ne neg or pos pow rshift setitem sub truediv xor iadd isub imul itruediv ifloordiv ipow "
    "imod imatmul iand ior ixor ilshift irshift radd rsub rmul rtruediv rfloordiv rpow rmod rmatmul rand ror rxor "
    "rlshift rrshift"
)
ATTRIBUTES = "dtype device mT ndim shape size T to_device"
NOT_NUMPYS = {"fft.fftfreq": {"dtype"}, "fft.rfftfreq": {"dtype"}}
"""Parameters that NumPy 2.4 has not got."""


def resolved(name: str) -> Any:
    found = wnp
    for part in name.split("."):
        found = getattr(found, part)
    return found


def test_functions_take_the_parameters_of_the_standard() -> None:
    wrong = []
    for name, parameters in SIGNATURES.items():
        function = resolved(name)
        if isinstance(function, type):  # `finfo` and `iinfo`, which are NumPy's
            continue
        front, _, back = parameters.partition("*")
        before, _, between = front.partition("/") if "/" in front else ("", "", front)
        names = [[x.strip(" /") for x in part.split(",") if x.strip(" /")] for part in (before, between, back)]
        keywords = {x: None for x in names[1] + names[2] if x not in NOT_NUMPYS.get(name, ())}
        if name in ("meshgrid", "result_type", "broadcast_arrays"):  # any number of arrays
            names[0], keywords = names[1], dict.fromkeys(names[2])
        try:
            inspect.signature(function).bind(*names[0], **keywords)
        except TypeError as error:
            wrong.append(f"{name}: {error}")
    assert wrong == []


def test_arrays_have_the_operators_and_attributes_of_the_standard() -> None:
    for name in [*(f"__{operator}__" for operator in OPERATORS.split()), *ATTRIBUTES.split()]:
        assert hasattr(wg.Tensor, name), name


def test_constants_and_the_description_of_the_namespace() -> None:
    assert (wnp.e, wnp.pi, wnp.newaxis) == (np.e, np.pi, None)
    assert np.isinf(wnp.inf)
    assert np.isnan(wnp.nan)
    assert wnp.__array_api_version__ == "2024.12"
    info = wnp.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert list(info.devices()) == ["cpu"]
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.dtypes(kind="complex floating") == {"complex64": np.complex64, "complex128": np.complex128}
    assert info.capabilities()["boolean indexing"] is True
    x = wg.asarray(1.0)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is wnp
    with pytest.raises(UsageError) as caught:
        x.__array_namespace__(api_version="1999.01")
    assert str(caught.value) == (
        "__array_namespace__: api_version='1999.01'; one of 2021.12, 2022.12, 2023.12, 2024.12 is needed. Leave it out."
    )


def test_arrays_come_and_go_by_dlpack() -> None:
    x = np.arange(3.0)
    found = wnp.from_dlpack(x)
    assert type(found) is wg.Tensor
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(np.from_dlpack(wg.asarray(x)), x)
    assert wg.asarray(x).__dlpack_device__() == (1, 0)
    same = wnp.astype(found, np.float64, copy=False)
    assert same is found
    assert wnp.astype(found, np.float64) is not found


def test_elements_are_assigned_in_order_by_flat() -> None:
    want = np.zeros((2, 3))
    want.flat = [1, 2]

    def filled(x: Any) -> Any:
        y = wnp.zeros((2, 3))
        y.flat = x
        return y

    np.testing.assert_array_equal(filled([1, 2]), want)
    assert wg.grad(lambda x: np.sum(filled(x) * np.arange(6.0).reshape(2, 3)))(np.ones(2)).tolist() == [6.0, 9.0]
