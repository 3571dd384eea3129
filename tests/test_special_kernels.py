"""Kernels of SciPy's special functions, as native code: against mpmath all over their ranges, and SciPy at the ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import wengert.random as _random  # noqa: F401 - it declares primitives
import wengert.scipy.sparse.linalg as _linalg  # noqa: F401 - so does this
from tests.cases import OPTIONS, Failures
from tools.special_accuracy import MORE_ROUNDINGS, ROUNDINGS, ROWS, WITHOUT_KERNEL, Row, roundings
from wengert.compile.executable import Compiled
from wengert.core.forms.form import Pointwise, form_of
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply
from wengert.lowering.partition import partition_graph
from wengert.lowering.rules.lower import NAMED
from wengert.lowering.rules.pointwise import expression_of
from wengert.passes.pipeline import flatten_calls
from wengert.primitives.special.declaration import OF_SCIPY
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")

ENDS = (0.0, 1e-307, 1e-300, 1e-20, 1e-3, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 40.0, 710.0, 1e10, 1e200, 1.7e308, np.inf)
GRID = np.array([*ENDS, *(-x for x in ENDS), np.nan])


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def kernel_of(function: Callable[..., Any], xs: Sequence[Any]) -> Compiled | None:
    """Return the native code of a function; None if a part of it is NumPy's."""
    graph = trace(function)(*xs)
    alone = all(part.program is not None for part in partition_graph(flatten_calls(graph)).parts)
    return Compiled(graph) if alone else None


def points_of(row: Row) -> list[Any]:
    """Return random points of a row's ranges, an array for each operand."""
    generator = np.random.default_rng(7)
    count = 400 if OPTIONS.every else 1 if row.slow else 4
    return list(np.array([row.drawn(generator) for _ in range(count)]).T.copy())


@pytest.mark.parametrize("rows", [ROWS[k::8] for k in range(8)])
def test_values_are_within_the_stated_roundings(rows: Sequence[Row]) -> None:
    failures = Failures()
    for row in rows:
        xs = points_of(row)
        run = kernel_of(row.function, xs) if not row.part else None
        if run is None:
            continue
        with failures.of(f"{row.name} {row.ranges}"):
            (found,) = run(xs)
            worst = max(roundings(row, float(y), point) for y, *point in zip(found, *xs, strict=True))
            assert worst <= MORE_ROUNDINGS.get(row.name, ROUNDINGS)
    failures.tell()


def with_kernels() -> list[tuple[np.ufunc, Any]]:
    """Return the ufuncs of SciPy whose primitives have expressions, but for what is rounded."""
    return [(ufunc, p) for ufunc, p in OF_SCIPY.items() if expression_of(p) is not None and ufunc is not sp.round]


LARGE_ARGUMENTS = {"j0", "j1", "y0", "y1", "cosm1"}
"""What SciPy computes with few digits for large arguments."""


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.long)])
def test_ends_are_those_of_scipy(dtype: Any) -> None:
    failures = Failures()
    for ufunc, primitive in with_kernels():
        if f"{np.dtype(dtype).char * ufunc.nin}->{np.dtype(dtype).char}" not in ufunc.types:
            continue
        points = np.array(list(itertools.product(GRID, repeat=ufunc.nin)), dtype)
        xs = list(points.T.copy())
        run = kernel_of(lambda *xs, primitive=primitive: apply(primitive, *xs), xs)
        with failures.of(ufunc.__name__):
            assert run is not None
            (found,), want = run(xs), ufunc(*xs)
            limited = np.abs(xs[-1]) < 100 if ufunc.__name__ in LARGE_ARGUMENTS else True
            special = ~np.isfinite(want) | (want == 0)
            with_places = zip(found, want, *xs, special, strict=True)
            wrong = [(*at, y, w) for y, w, *at, here in with_places if here and not is_same(y, w)]
            assert not wrong
            np.testing.assert_allclose(
                *(np.where(limited & ~special, y, 0) for y in (found, want)),
                rtol=1e-11 if dtype is np.float64 else 1e-6,
                atol=np.finfo(dtype).smallest_normal,
            )
    failures.tell()


def is_same(found: Any, want: Any) -> bool:
    """Tell whether two numbers are NaN, infinities or zeros of one sign; subnormal numbers are zeros to SciPy."""
    near = found == want or abs(found) < np.finfo(found.dtype).smallest_normal > abs(want)
    return bool(near and np.signbit(found) == np.signbit(want)) or bool(np.isnan(found) and np.isnan(want))


def test_the_page_names_what_has_no_kernel() -> None:
    pointwise = [p for p in PRIMITIVES.values() if p.kind == "elementwise" or isinstance(form_of(p), Pointwise)]
    ours = [p for p in pointwise if p.parts is None and p.occasion is None and p.name not in NAMED]
    left = {p.name for p in ours if expression_of(p) is None}
    several = {p.name for p in OF_SCIPY.values() if p.outputs > 1}
    assert left == {name for names in WITHOUT_KERNEL.values() for name in names.split()} | several & left
