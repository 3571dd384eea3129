"""Tests of every sample in forward mode, in lanes and traced, generated from the samples."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import Call, call_of, float_leaves, leaves_of, precision, random_like
from tests.samples.running import LOOKING, over
from wengert.errors import WengertError

FACTORS = (1.0, 1.0625, 0.96875)  # of the lanes: near enough to stay in every domain

DIFFERENTIATED = [s for s in SAMPLES if call_of(s).leaves]
SMOOTH = [s for s in DIFFERENTIATED if s.order >= 1]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's mean of an empty slice
        yield


@contextlib.contextmanager
def refused_where_elements_decide(sample: Sample) -> Iterator[None]:
    """Accept an error of the library for the samples that look at elements."""
    try:
        yield
    except WengertError:
        if sample.primitive not in LOOKING:
            raise


def arrays(result: Any) -> list[Any]:
    """Return what is in nested lists and tuples as arrays."""
    return [np.asarray(x.numpy() if isinstance(x, wg.Tensor) else x) for x in leaves_of(result)]


def assert_alike(found: Any, wanted: Any, *given: Any) -> None:
    """Compare shapes, dtypes and, to a few thousand units in the last place of them, and of what was given, values."""
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if other.dtype.kind in "fc":
            tolerance = 4096 * precision(other, *given)
            scale = max(1.0, float(np.max(np.abs(other[np.isfinite(other)]), initial=0.0)))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(one, other)


def listed(call: Call) -> Callable[..., list[Any]]:
    """Return a call whose results are in one list."""
    return lambda *leaves: leaves_of(call(*leaves))


# Forward mode


@over(SMOOTH)
def test_forward_mode_is_the_transpose_of_reverse_mode(sample: Sample) -> None:
    check_transposition(sample)


def check_transposition(sample: Sample) -> None:
    """Check that forward mode multiplies by the matrix whose transpose reverse mode multiplies by."""
    call = call_of(sample)
    outs, _ = call.vjp(call.leaves)
    if not outs:
        return  # integers and truth values have no derivatives
    cts, ts = [random_like(out) for out in outs], [random_like(2 * leaf) for leaf in call.leaves]
    _, pulled = call.vjp(call.leaves, cts)
    _, pushed = wg.jvp(lambda *leaves: float_leaves(call(*leaves)), call.leaves, ts)
    left = [ct * t for ct, t in zip(cts, arrays(pushed), strict=True)]
    right = [ct * t for ct, t in zip(pulled, ts, strict=True)]
    magnitude = sum(np.sum(np.abs(terms)) for terms in (*left, *right))
    difference = sum(np.sum(terms).real for terms in left) - sum(np.sum(terms).real for terms in right)
    assert abs(difference) <= 1000 * precision(*ts, *outs) * magnitude


# Lanes


def lanes_of(call: Call) -> list[list[Any]]:
    """Return slightly different arguments for each lane."""
    return [[(leaf * leaf.dtype.type(factor))[...] for leaf in call.leaves] for factor in FACTORS]


def stacked(lanes: Sequence[Sequence[Any]], axis: int = 0) -> list[Any]:
    """Return what all lanes have, with an axis for the lanes."""
    return [np.stack(values, axis) for values in zip(*lanes, strict=True)]


def looped(call: Call, lanes: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return NumPy's results for each lane."""
    return [arrays(call(*[np.copy(leaf)[()] for leaf in lane])) for lane in lanes]


@over(DIFFERENTIATED)
def test_lanes_are_a_loop(sample: Sample) -> None:
    call = call_of(sample)
    lanes = lanes_of(call)
    wanted = looped(call, lanes)
    for axis in (0, -1):
        with refused_where_elements_decide(sample):
            found = wg.vmap(listed(call), in_axes=axis, out_axes=axis)(*stacked(lanes, axis))
            assert_alike(found, stacked(wanted, axis))
    with refused_where_elements_decide(sample):
        found = wg.vmap(wg.vmap(listed(call)))(*stacked([stacked(lanes), stacked(lanes[::-1])]))
        assert_alike(found, stacked([stacked(wanted), stacked(wanted[::-1])]))


@over([s for s in DIFFERENTIATED if len(call_of(s).leaves) > 1])
def test_arguments_without_lanes_are_those_of_every_lane(sample: Sample) -> None:
    call = call_of(sample)
    lanes = lanes_of(call)
    for kept in range(len(call.leaves)):
        mixed = [[leaf if i == kept else lanes[0][i] for i, leaf in enumerate(lane)] for lane in lanes]
        axes = tuple(0 if i == kept else None for i in range(len(call.leaves)))
        arguments = [stacked(mixed)[i] if i == kept else lanes[0][i] for i in range(len(call.leaves))]
        with refused_where_elements_decide(sample):
            found = wg.vmap(listed(call), in_axes=axes)(*map(wg.asarray, arguments))  # ndarrays hold no lanes
            assert_alike(found, stacked(looped(call, mixed)))


# Graphs


@over(SAMPLES, few=True, third=True)
def test_traced_values_are_those_of_numpy(sample: Sample) -> None:
    call = call_of(sample)
    leaves = call.copies()
    with refused_where_elements_decide(sample):
        found = wg.jit(listed(call))(*leaves)
        assert_alike(found, call(*call.copies()))
        results = [x for x in found if isinstance(x, np.ndarray)]
        assert all(x.flags.writeable for x in results)
        assert not any(np.shares_memory(x, leaf) for x in results for leaf in leaves)
        if call.leaves:
            lanes = lanes_of(call)
            assert_alike(wg.jit(wg.vmap(listed(call)))(*stacked(lanes)), stacked(looped(call, lanes)))


@over(SMOOTH, few=True, third=True)
def test_traced_derivatives_are_those_without_tracing(sample: Sample) -> None:
    call = call_of(sample)
    outs, _ = call.vjp(call.leaves)
    cts, ts = [random_like(out) for out in outs], [random_like(leaf) for leaf in call.leaves]

    def function(*leaves: Any) -> list[Any]:
        return float_leaves(call(*leaves))

    def pushed(leaves: Any, tangents: Any) -> Any:
        return list(wg.jvp(function, leaves, tangents))

    def pulled(leaves: Any, cotangents: Any) -> Any:
        results, pullback = wg.vjp(function, *leaves)
        return [results, list(pullback(cotangents))]

    with refused_where_elements_decide(sample):
        assert_alike(wg.jit(pushed)(call.leaves, ts), pushed(call.leaves, ts), *call.leaves)
        assert_alike(wg.jit(pulled)(call.leaves, cts), pulled(call.leaves, cts), *call.leaves)


@over([s for s in SMOOTH if s.order >= 2], few=True, third=True)
def test_traced_second_derivatives_warn_only_where_values_do(sample: Sample) -> None:
    call = call_of(sample)
    known = all(leaf.dtype.kind == "f" for leaf in call.leaves) and call.vjp(call.leaves)[0]
    if not known or warns(lambda: call(*call.copies())):
        return

    def total(leaves: Any) -> Any:
        return sum(np.sum(np.real(out)) for out in float_leaves(call(*leaves)))

    leaves = [*call.leaves]
    with refused_where_elements_decide(sample):
        assert not warns(lambda: wg.jit(lambda x, t: wg.jvp(wg.grad(total), (x,), (t,)))(leaves, leaves))


def warns(run: Callable[[], Any]) -> bool:
    """Tell whether NumPy warns of what is computed."""
    with np.errstate(all="warn", under="ignore"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", RuntimeWarning)
        run()
    return any(issubclass(one.category, RuntimeWarning) for one in told)
