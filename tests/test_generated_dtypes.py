"""Tests of every primitive in single precision and of complex numbers, generated from the samples of real ones.

A sample stands for its form of a call. Left out is what NumPy or SciPy has not in a dtype.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import Call, call_of, float_leaves, random_like, same_values
from tests.samples.running import over, representatives
from tests.test_generated import check_derivatives
from tests.test_generated_modes import (
    arrays,
    assert_alike,
    check_transposition,
    lanes_of,
    listed,
    looped,
    refused_where_elements_decide,
    stacked,
)
from wengert.errors import DtypeError, NumericalError

GAUGES = {"eigh", "svd", "relative_eigh", "scipy_eigh", "scipy_qr", "scipy_svd"}
"""Primitives that have complex samples of their own, which do not depend on the phases of vectors."""
OF_REAL_NUMBERS = {
    *(
        "betainc_derivative",
        "gammainc_derivative",
        "beta_density",
        "betainc_by_shapes",
        "gamma_density",
        "gammainc_by_shape",
        "zeta_derivative",
    ),
    *("polygamma_difference", "incomplete_elliptic_derivative", "logistic", "logistic_derivative"),
    *("logsumexp_sign", "softsign"),
    *("by_eigenvalues", "by_relative_eigenvalues", "by_singular_values"),
    *("normal_solve", "sparse_lsmr", "sparse_lsqr", "sparse_eigh", "sparse_eigvalsh"),
}
"""Primitives that only functions of real numbers have, or have in their rules, and samples that are Hermitian."""
REFUSED = {"ive", "jve", "kve", "riemann_zeta", "yve"}
"""Primitives that SciPy has of complex numbers and whose derivative there is an error."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def with_imaginary_parts(array: Any) -> Any:
    """Return complex numbers beside real ones."""
    other = np.random.default_rng(array.size).uniform(0.1, 0.4, array.shape)
    return np.asarray(array + 1j * np.copysign(other, array))


def changed(arg: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with differentiated arrays changed."""
    if isinstance(arg, list | tuple):
        return type(arg)([changed(item, change) for item in arg])
    return change(arg) if isinstance(arg, np.ndarray) and arg.dtype == np.float64 else arg


def is_known(sample: Sample) -> bool:
    """Tell whether NumPy has a call in its dtypes, with finite results."""
    call = call_of(sample)
    try:
        found = float_leaves(call(*call.copies()))
    except (TypeError, ValueError, IndexError, NotImplementedError, np.linalg.LinAlgError, NumericalError):
        return False
    return bool(found) and all(np.all(np.isfinite(x)) for x in found)


def variants(change: Callable[[Any], Any]) -> list[Sample]:
    """Return samples of another dtype for each form of a call of real numbers, or for a third of them."""
    real = [s for s in SAMPLES if call_of(s).leaves and all(leaf.dtype == np.float64 for leaf in call_of(s).leaves)]
    made = [replace(s, args=tuple(changed(arg, change) for arg in s.args)) for s in representatives(real)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [s for s in some_of(made, "dtypes") if is_known(s)]


SINGLE = variants(lambda array: array.astype(np.float32))
COMPLEX = [s for s in variants(with_imaginary_parts) if s.primitive not in GAUGES | OF_REAL_NUMBERS | REFUSED]
SMOOTH = [s for s in SINGLE if s.order >= 1]


def derivatives(call: Call, leaves: list[Any]) -> Iterator[list[Any]]:
    """Yield the gradient, what forward mode gives along a direction, and the gradient of both."""

    def first(*xs: Any) -> list[Any]:
        outs, pullback = wg.vjp(lambda *ys: float_leaves(call(*ys)), *xs)
        return list(pullback([random_like(out) for out in outs]))

    def pushed(*xs: Any) -> list[Any]:
        return list(wg.jvp(lambda *ys: float_leaves(call(*ys)), xs, [random_like(x) for x in xs])[1])

    yield arrays(first(*leaves))
    yield arrays(pushed(*leaves))
    for function in (first, pushed):
        values, pullback = wg.vjp(function, *leaves)
        yield arrays(pullback([random_like(value) for value in values]))


# Single precision


@over(SINGLE)
def test_single_precision_has_numpys_values(sample: Sample) -> None:
    call = call_of(sample)
    assert same_values(call(*map(wg.asarray, call.leaves)), call(*call.copies()))


def is_told(call: Call) -> bool:
    """Tell whether NumPy warns of the values of a call, whose derivatives may then do so too."""
    try:
        with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("error", RuntimeWarning)
            call(*call.copies())
    except RuntimeWarning:
        return True
    return False


@over(SMOOTH)
def test_single_precision_has_derivatives_of_double_precision_without_warnings(sample: Sample) -> None:
    call = call_of(sample)
    wide = [leaf.astype(np.float64) for leaf in call.leaves]
    found, expected = derivatives(call, call.leaves), derivatives(call, wide)
    told = "ignore" if is_told(call) else "error"
    for _ in range(2 if sample.order == 1 else 4):
        with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
            warnings.simplefilter(told, RuntimeWarning)
            singles = next(found)
        for x, y in zip(singles, next(expected), strict=True):
            scale = max(1.0, float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))))
            np.testing.assert_allclose(x, y, rtol=1e-2, atol=1e-3 * scale)


# Complex numbers


@over(COMPLEX)
def test_complex_numbers_have_numpys_values_and_derivatives_of_differences(sample: Sample) -> None:
    call = call_of(sample)
    assert same_values(call(*map(wg.asarray, call.leaves)), call(*call.copies()))
    if sample.order:
        check_derivatives(sample, order=min(sample.order, 2))
        check_transposition(sample)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_derivatives_of_complex_numbers_that_are_refused_say_so(name: str) -> None:
    found = [s for s in representatives([s for s in SAMPLES if s.primitive == name]) if s.order]
    for sample in found:
        call = call_of(replace(sample, args=tuple(changed(arg, with_imaginary_parts) for arg in sample.args)))
        with pytest.raises(DtypeError, match=r"scipy\.special\.\w+: .* is needed"):
            call.vjp(call.leaves)


# Both, in lanes and traced


@over([*SINGLE, *COMPLEX])
def test_lanes_are_a_loop(sample: Sample) -> None:
    call = call_of(sample)
    lanes = lanes_of(call)
    with refused_where_elements_decide(sample):
        assert_alike(wg.vmap(listed(call))(*stacked(lanes)), stacked(looped(call, lanes)), *call.leaves)


@over([*SINGLE, *COMPLEX])
def test_traced_values_and_gradients_are_those_without_tracing(sample: Sample) -> None:
    call = call_of(sample)

    def pulled(*leaves: Any) -> list[Any]:
        outs, pullback = wg.vjp(lambda *xs: float_leaves(call(*xs)), *leaves)
        return [*outs, *pullback([random_like(out) for out in outs])]

    with refused_where_elements_decide(sample):
        assert_alike(wg.jit(pulled)(*call.leaves), pulled(*call.leaves), *call.leaves)
