"""Small matrices as machine code: systems, inverses and factors are those of NumPy and SciPy, and so are the errors."""

from __future__ import annotations

import functools
import itertools
import math
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from tests.cases import Failures, some_of, together
from tests.guarded_memory import guarded
from tests.test_emission import TARGETS
from wengert.compile.executable import Compiled, NativeGraph, holds_native
from wengert.compile.programs import Processor
from wengert.core.graph.graph import Graph
from wengert.core.values.dispatch import apply
from wengert.emission.routines import lapack_routines
from wengert.errors import UsageError
from wengert.implicit.banded import band_factors, band_solution
from wengert.kernel.backend import Backend
from wengert.lowering import matrix_steps
from wengert.lowering.matrix_steps import FEW, LARGEST, MOST
from wengert.lowering.partition import partition_graph
from wengert.native.entries import callee
from wengert.native.lapack import ONE_THREAD
from wengert.passes.equations import may_be_step
from wengert.passes.pipeline import flatten_calls
from wengert.scipy import linalg
from wengert.support import config
from wengert.transforms.tracing import trace

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


def random(shape: Any, dtype: Any = float) -> Any:
    found = RNG.normal(size=shape)
    return (found + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


def matrices(*shape: int, dtype: Any = float) -> Any:
    """Return well-conditioned matrices, also where only a triangle of them is read."""
    size = 4 * np.sqrt(shape[-1]) if shape[-1] > FEW else np.sqrt(shape[-1])
    return (random(shape, dtype) / size + 2.0 * np.eye(shape[-1])).astype(dtype)


def positive(*shape: int, dtype: Any = float) -> Any:
    found = matrices(*shape, dtype=dtype)
    return (found @ found.mT.conj() + np.eye(shape[-1])).astype(dtype)


def has_steps(graph: Graph) -> bool:
    """Tell whether machine code computes small matrices or loops of a graph."""
    parts = Compiled(graph).segments.parts
    native = [e for part in parts if part.program is not None for e in part.graph.equations]
    return any(map(may_be_step, native)) or any(holds_native(part.graph) for part in parts)


def require_same(function: Callable[..., Any], *args: Any, exact: bool = True) -> None:
    """Require what NumPy gives of a jitted function, by whatever road: called by Python, and by an entry."""
    assert has_steps(trace(function)(*args))
    want, run = function(*args), wg.jit(function)
    given = [x.copy("K") for x in args]
    wants = want if isinstance(want, tuple) else (want,)
    for _ in range(4):
        found = run(*args)
        for a, b in zip(found if isinstance(found, tuple) else (found,), wants, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.flags.c_contiguous == b.flags.c_contiguous or a.size <= 1 or not exact
            tolerance = 1e-4 if a.real.itemsize == 4 else 1e-9
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=0.0))
    for a, b in zip(given, args, strict=True):
        np.testing.assert_array_equal(a, b)


ROUTINES: dict[str, tuple[Callable[..., Any], Callable[..., Any], bool]] = {
    "solve": (np.linalg.solve, matrices, True),
    "inv": (np.linalg.inv, matrices, False),
    "det": (np.linalg.det, matrices, False),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), matrices, False),
    "cholesky": (np.linalg.cholesky, positive, False),
    "cholesky, upper": (lambda a: np.linalg.cholesky(a, upper=True), positive, False),
    "scipy solve": (linalg.solve, matrices, True),
    "scipy solve, general": (lambda a, b: linalg.solve(a, b, assume_a="gen", check_finite=False), matrices, True),
    "scipy solve, positive": (lambda a, b: linalg.solve(a, b, assume_a="pos"), positive, True),
    "scipy solve, positive, lower": (lambda a, b: linalg.solve(a, b, lower=True, assume_a="pos"), positive, True),
    "scipy inv": (linalg.inv, matrices, False),
    "scipy cholesky": (linalg.cholesky, positive, False),
    "scipy cholesky, lower": (lambda a: linalg.cholesky(a, lower=True), positive, False),
    "cho_factor": (lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), positive, True),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, lower=True), matrices, True),
    "solve_triangular, upper": (linalg.solve_triangular, matrices, True),
    "solve_triangular, transposed": (lambda a, b: linalg.solve_triangular(a, b, trans=1), matrices, True),
    "solve_triangular, transposed, lower": (
        lambda a, b: linalg.solve_triangular(a, b, trans="T", lower=True, check_finite=False),
        matrices,
        True,
    ),
    "solve_triangular, ones": (
        lambda a, b: linalg.solve_triangular(a / 9, b, lower=True, unit_diagonal=True),
        matrices,
        True,
    ),
    "cho_solve": (lambda a, b: linalg.cho_solve((a, True), b), matrices, True),
    "cho_solve, upper": (lambda a, b: linalg.cho_solve((a, False), b), matrices, True),
    "lu_factor": (linalg.lu_factor, matrices, False),
    **{
        f"lu_solve, {trans}": (
            lambda a, b, trans=trans: linalg.lu_solve(linalg.lu_factor(a), b, trans=trans),
            matrices,
            True,
        )
        for trans in (0, 1, 2)
    },
}


BY_LAPACK = 34, 71
"""Rows of real matrices that are here as those that kernels of our own take longer for."""
SIZES = [
    *[(np.float64, n) for n in (1, 2, 7, 32, 33, 70, *BY_LAPACK)],
    *[(np.float32, n) for n in (3, 32, 33, *BY_LAPACK[:1])],
    *[(np.complex128, n) for n in (1, 3, 32, 70)],
    *[(np.complex64, n) for n in (2, 33)],
]


@pytest.mark.parametrize("name", ROUTINES)
def test_routines_give_what_lapack_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, make, has_right = ROUTINES[name]
    failures = Failures()
    for dtype, size in some_of(SIZES, name):
        monkeypatch.setattr(matrix_steps, "LARGEST", min(BY_LAPACK) - 1 if size in BY_LAPACK else LARGEST)
        a = make(size, size, dtype=dtype)
        rights = (random(size, dtype), random((size, 3), dtype), np.asfortranarray(random((size, 9), dtype)))
        for matrix, right in some_of(
            list(itertools.product((a, np.asfortranarray(a)), rights if has_right else [None])), f"{name}, {size}"
        ):
            with failures.of(f"{np.dtype(dtype)}, {size}"):
                require_same(function, matrix, *[right] * has_right)
    failures.tell()


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (np.linalg.solve, [(5, 3, 3), (5, 3, 2)]),
        (np.linalg.solve, [(3, 3), (5, 3, 2)]),
        (np.linalg.solve, [(2, 5, 3, 3), (3, 2)]),
        (np.linalg.inv, [(2, 5, 4, 4)]),
        (np.linalg.det, [(2, 5, 4, 4)]),
        (lambda a: tuple(np.linalg.slogdet(a)), [(5, 4, 4)]),
        (np.linalg.cholesky, [(2, 3, 4, 4)]),
    ],
)
def test_stacks_are_many_problems(function: Callable[..., Any], shapes: Any) -> None:
    make = positive if function is np.linalg.cholesky else matrices
    require_same(function, make(*shapes[0]), *(RNG.normal(size=shape) for shape in shapes[1:]))
    lanes = np.stack([make(4, 4) for _ in range(3)])
    if len(shapes) == 1:
        require_same(wg.vmap(function), lanes)


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 2), (np.float32, 3), (np.float64, 4)])
def test_few_rows_are_exchanged_in_registers(dtype: Any, size: int) -> None:
    run = wg.jit(lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a.T)))
    tolerance, least = (1e-12, 1e-8) if dtype is np.float64 else (1e-4, 1e-4)
    b = random((size, 2), dtype)
    for order in itertools.permutations(range(size)):
        a = np.maximum(np.triu(matrices(size, size, dtype=dtype)), least)[list(order)]  # without exchanges inexact
        for mine, known in zip(run(a, b), (np.linalg.solve(a, b), np.linalg.inv(a.T)), strict=True):
            np.testing.assert_allclose(mine, known, tolerance, tolerance)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run(np.ones((size, size), dtype), b)
    assert np.isnan(run(np.full((size, size), np.nan, dtype), b)[1]).all()


def solve_banded(below: int, above: int, transposed: bool, bands: Any, right: Any) -> Any:
    packed, pivots = apply(band_factors, bands, below=below, above=above)
    return apply(band_solution, packed, right, pivots, below=below, above=above, transposed=transposed)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_banded_systems_are_solved_as_lapack_does(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeGraph, "instead", None)  # all stays native
    for size, below, above, columns in ((1, 0, 0, 1), (7, 2, 1, 3), (9, 0, 2, 1), (40, 25, 3, 2)):
        bands, right = random((size, below + above + 1), dtype), random((size, columns), dtype)
        bands[:, above] += 1
        i, j = np.indices((size, size))
        place = i - j + above
        inside = (place >= 0) & (place <= below + above)
        matrix = np.where(inside, bands[j, np.where(inside, place, 0)], 0)
        for transposed in (False, True):
            solve = functools.partial(solve_banded, below, above, transposed)
            require_same(solve, bands, right)
            require_same(wg.vmap(solve), np.stack([bands, 2 * bands]), np.stack([right, right]), exact=False)
            found = solve(bands, right)
            np.testing.assert_allclose((matrix.T if transposed else matrix) @ found, right, rtol=1e-3, atol=1e-3)


SPECTRA: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda a: tuple(np.linalg.eigh(a)),
    "eigh, upper": lambda a: tuple(np.linalg.eigh(a, "U")),
    "eigvalsh": np.linalg.eigvalsh,
    "svd": lambda a: tuple(np.linalg.svd(a)),
    "svd, reduced": lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
    "svdvals": np.linalg.svdvals,
    "qr": lambda a: (*np.linalg.qr(a), np.linalg.qr(a, "r")),
    "eig": lambda a: tuple(np.linalg.eig(a + 0j)),
    "eigvals": lambda a: np.linalg.eigvals(a + 0j),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_spectra_and_orthogonal_factors_are_numpys(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeGraph, "instead", None)  # all stays native
    shapes = [(1, 1), (5, 5), (70, 70)] if "eig" in name else [(1, 1), (3, 5), (70, 70), (60, 20), (20, 60)]
    for shape, way in some_of(list(itertools.product(shapes, ("C", "F", "lanes"))), f"{name}, {dtype}", 3):
        if way == "lanes":
            require_same(wg.vmap(SPECTRA[name]), random((3, *shape), dtype), exact=False)
        else:
            require_same(SPECTRA[name], np.asarray(random(shape, dtype), order=way))


USUAL: dict[str, Callable[[Any], Any]] = {
    "function of a symmetric matrix": lambda a: np.sum((lambda w, v: (v * np.exp(w)) @ v.T)(*np.linalg.eigh(a)) ** 2),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 3),
    "svdvals": lambda a: np.sum(linalg.svdvals(a) ** 3),
    "det": lambda a: sum(np.sum(wg.grad(np.linalg.det)(a[:n, :n] + np.eye(n)) ** 2) for n in (1, 2, 3, 5)),
    "qr": lambda a: np.sum(np.linalg.qr(a[:, :4])[1] ** 3),
    "eigvals": lambda a: np.sum(np.linalg.eigvals(a + 0j) ** 3).real,
    "eig": lambda a: np.sum(np.abs((lambda w, v: np.exp(w) * v)(*np.linalg.eig(a + 0j))) ** 3),
    "expm": lambda a: np.sum(linalg.expm(a / 2) ** 2),
    "pinv": lambda a: np.sum(np.linalg.pinv(a[:, :4]) ** 2) + np.sum(linalg.pinv(a[:4]) ** 3),
    "lstsq": lambda a: sum(map(np.sum, np.linalg.lstsq(a[:, :4], a[:, 4:], rcond=1e-9))) + np.linalg.matrix_rank(a),
}


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.long] * (x in ("eig", "expm"))) for x in USUAL])
def test_derivatives_are_native_in_usual_cases(name: str) -> None:
    function, turned = USUAL[name], random((5, 5))
    for way in (wg.grad(function), lambda a: wg.jvp(function, (a,), (turned + turned.T,))[1]):
        graph = flatten_calls(trace(way)(turned))
        program = partition_graph(graph).whole
        assert program is not None
        assert name not in ("eigvalsh", "svdvals") or str(program).count("'lapack.") == 1
        run = wg.jit(way)
        for a in (turned + turned.T, np.diag([3.0, 3.0, 1.0, 2.0, 2.0]), 40 * turned):
            for _ in range(2):
                found, want = outcome(run, a), outcome(way, a)
                assert type(found) is type(want), (found, want)
                if not isinstance(want, str):
                    np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-8)


def test_eigenvalues_of_very_large_and_small_matrices_have_their_size() -> None:
    for size in (1e-200, 1e200):
        require_same(SPECTRA["eigvals"], size * random((3, 3), np.complex128))


EMPTY: dict[str, Callable[[Any], Any]] = {
    "pinv": lambda a: np.sum(np.linalg.pinv(a)) + np.sum(linalg.pinv(a)),
    "expm": lambda a: np.sum(linalg.expm(a[:, : len(a)])),
    "norm": lambda a: np.linalg.norm(a, 2),
    "eig": lambda a: np.sum(np.abs(np.linalg.eig(a[:, : len(a)] + 0j)[1])),
    "lstsq": lambda a: np.sum(np.linalg.lstsq(a, np.ones((len(a), 2)))[1]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_usual_cases_without_elements_or_residuals(name: str) -> None:
    for shape in [(0, 0), (0, 2), (2, 2)]:
        a = np.reshape([2.0, 0.5, -1.0, 3.0][: math.prod(shape)], shape)
        for way in (EMPTY[name], wg.grad(EMPTY[name]), lambda a: wg.jvp(EMPTY[name], (a,), (a,))[1]):
            np.testing.assert_allclose(wg.jit(way)(a), way(a), rtol=1e-12, atol=1e-14)


def test_spectra_of_what_is_not_finite_are_numpys() -> None:
    a = np.full((3, 3), np.nan)
    for name, function in SPECTRA.items():
        if name != "qr":
            found, want = (outcome(f, a) for f in (wg.jit(function), function))
            assert type(found) is type(want), name
            if isinstance(want, str):
                assert want in found
    rows = wg.jit(lambda xs: wg.scan(lambda c, x: (c @ np.linalg.eigh(c + x)[1], np.linalg.svdvals(c)), np.eye(4), xs))
    xs = random((5, 4, 4))
    assert Compiled(trace(lambda xs: np.linalg.eigh(xs))(xs)).callee is not None
    for _ in range(3):
        for found, want in zip(rows(xs), rows.__wrapped__(xs), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-10)


STACKS = [
    (np.float64, 19, 5, "lanes"),
    (np.float64, 8, 21, "lanes"),
    (np.float32, 37, 3, "lanes"),
    (np.float64, 3, 32, "small"),
]


@pytest.mark.parametrize("name", ROUTINES)
def test_stacks_are_shared_by_threads_and_many_problems_are_lanes(name: str) -> None:
    function, make, has_right = ROUTINES[name]
    failures = Failures()
    for dtype, count, size, family in some_of(STACKS, name):
        with failures.of(f"{np.dtype(dtype)}, {count}, {size}"):
            a = make(count, size, size, dtype=dtype)
            rights = [random((count, size), dtype), random((count, size, 3), dtype)] if has_right else []
            graph = str(wg.jit(wg.vmap(function)).lower(a, *rights[:1]).kernels)
            assert f"routine {family}." in graph
            layouts = a, np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0), a.mT.copy().mT
            for matrices, right in some_of(list(itertools.product(layouts, rights or [None])), f"{name}, {count}"):
                require_same(wg.vmap(function), matrices, *[right] * has_right, exact=False)
            for right in rights:
                require_same(wg.vmap(function, in_axes=(None, 0)), a[0], right, exact=False)
    failures.tell()


def outcome(function: Callable[..., Any], *operands: Any) -> Any:
    """Return what a function gives, or the error that it raises, as text."""
    try:
        return function(*operands)
    except np.linalg.LinAlgError as error:
        return str(error)


@pytest.mark.parametrize("place", [0, 12, 18])
def test_one_of_many_problems_may_have_no_solution(place: int) -> None:
    a, b = positive(19, 3, 3), random((19, 3))
    for function, args in ((np.linalg.solve, (b,)), (np.linalg.inv, ()), (np.linalg.cholesky, ())):
        run = wg.jit(wg.vmap(function))
        for value in (0.0, np.nan):
            changed = a.copy()
            changed[place] = value
            found, want = [outcome(lambda x, f=f, args=args: f(x, *args), changed) for f in (run, wg.vmap(function))]
            if isinstance(want, str):
                assert want in found
            else:
                np.testing.assert_allclose(found, want, rtol=1e-9)
        require_same(wg.vmap(function), a, *args, exact=False)
    huge = np.full((19, 2, 2), np.eye(2) * 1e-200)
    np.testing.assert_array_equal(wg.jit(np.linalg.det)(huge), np.linalg.det(huge))


def test_what_is_between_stays_native_and_nothing_is_handed_to_python() -> None:
    def f(a: Any, b: Any) -> Any:
        x = np.linalg.solve(a, np.sin(b))
        return np.sum(np.linalg.cholesky(np.outer(x, x) + np.eye(3)) * np.linalg.inv(a.T)) + np.linalg.slogdet(a)[1]

    a, b = matrices(3, 3), RNG.normal(size=3)
    for function in (f, wg.grad(f, (0, 1)), wg.hessian(f, 1)):
        require_same(function, a, b, exact=function is f)
        assert Compiled(trace(function)(a, b)).callee is not None
    require_same(wg.vmap(f, in_axes=(None, 0)), a, np.stack([b, 2 * b]))


def newton(a: Any, x: Any) -> Any:
    """Solve A x + x^3 = 1 step by step."""
    step = np.ones_like(x)
    while np.max(np.abs(step)) > 1e-10:
        step = np.linalg.solve(a + np.diag(3 * x**2), 1 - a @ x - x**3)
        x = x + step
    return x


def test_what_runs_at_different_times_works_in_the_same_memory() -> None:
    def solved(a: Any, b: Any, count: int) -> Any:
        for _ in range(count):
            b = np.linalg.solve(a + b[0, 0], b)
        return b

    a, b = RNG.standard_normal((40, 40)) + 40 * np.eye(40), RNG.standard_normal((40, 4))
    jitted = wg.jit(solved, static_argnums=2, native=True)
    np.testing.assert_allclose(jitted(a, b, 6), solved(a, b, 6), rtol=1e-10)
    two, six = (jitted.lower(a, b, count).cost.memory for count in (2, 6))
    assert six < two + a.nbytes


OF_ONE_MATRIX: dict[str, Callable[[Any, Any, Any], list[Any]]] = {
    "systems and their transposes": lambda a, b, c: [
        np.linalg.solve(a, b) @ np.linalg.solve(a.T, c),
        np.linalg.solve(a, np.linalg.solve(a, b)),
    ],
    "inverses and determinants": lambda a, b, c: [
        np.linalg.inv(a.T) @ b,
        *np.linalg.slogdet(a),
        np.linalg.det(a.T),
        a @ c,
    ],
    "gradients": lambda a, b, c: wg.grad(lambda a: b @ np.linalg.solve(a, b) + np.linalg.slogdet(a)[1])(a),
    "loops": lambda a, b, c: wg.scan(
        lambda x, _: (np.linalg.solve(a + x[0], np.linalg.solve((a + x[0]).T, b)), np.linalg.slogdet(a + x[0])[1]),
        b,
        length=3,
    ),
    "loops that do not change it": lambda a, b, c: [
        wg.fori_loop(0, 2, lambda _, x: wg.fori_loop(0, 3, lambda _, y: np.linalg.solve(a, y + b), x), b),
    ],
    "loops of unknown length": lambda a, b, c: [
        wg.while_loop(lambda s: s[1] < 2, lambda s: (np.linalg.solve(a.T, np.sin(s[0])), s[1] + 1), (b, 0))[0],
    ],
}


@together("name", OF_ONE_MATRIX)
def test_what_has_one_matrix_factorises_it_once(name: str) -> None:
    function, rng = OF_ONE_MATRIX[name], np.random.default_rng(7)
    jitted = wg.jit(function, native=True)
    for size, sign in itertools.product((5, 60), (1, -1)):
        a, b, c = (rng.standard_normal(shape) for shape in ((size, size), size, (size, 2)))
        a[0] *= sign
        for ours, theirs in zip(jitted(a, b, c), function(a, b, c), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        if sign < 0:
            continue
        kernels = str(jitted.lower(a, b, c).kernels)
        assert kernels.count(".lu_factor.") == 1
        assert name == "loops" or re.search(r"^routine \w+\.lu_factor\.", kernels, re.M)
        assert not any(text in kernels for text in (".solve.", ".inv.", "det.", "by NumPy"))
        with np.errstate(invalid="ignore"):
            for given in (np.ones_like(a), a * np.nan):
                assert str(outcome(jitted, given, b, c)) == str(outcome(function, given, b, c))


def test_stacks_are_factorised_once_too() -> None:
    def likelihood(a: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve(a, b) * b) + np.sum(np.linalg.slogdet(a)[1])

    both = wg.grad(likelihood, (0, 1))
    for dtype, *shape, family in ((float, 2, 9, 5, "lanes"), (np.float32, 17, 4, "lanes")):
        a, b = random((*shape, shape[-1]), dtype), random((*shape, 2), dtype)
        a[0] *= -1
        jitted = wg.jit(both)
        kernels = re.findall(r"^routine (\w+)\.(\w+)", str(jitted.lower(a, b).kernels), re.M)
        assert [own for own, _ in kernels] == [family] * len(kernels)
        assert sum("factor" in name for _, name in kernels) == 1
        assert all("factor" in name or name.startswith(("solve_in", "lu_solve")) for _, name in kernels)
        for ours, theirs in zip(jitted(a, b), both(a, b), strict=True):
            scale = np.abs(theirs).max(initial=1)
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=scale * (1e-8 if dtype is float else 1e-2))
        a[-1] = 0
        assert str(outcome(jitted, a, b)) == str(outcome(both, a, b)) == "Singular matrix"


def test_loops_that_solve_are_machine_code() -> None:
    a, x = positive(4, 4), np.ones(4)
    require_same(newton, a, x)
    assert Compiled(trace(newton)(a, x)).callee is not None
    found = wg.jit(wg.grad(lambda a: np.sum(newton(a, x))))
    for _ in range(3):
        np.testing.assert_allclose(found(a), wg.grad(lambda a: np.sum(newton(a, x)))(a), rtol=1e-8)


def test_filters_and_their_gradients_are_one_kernel() -> None:
    """Rows are left behind that a round is given, and those that it computes before and after it solves."""
    step, noise, look, seen = matrices(3, 3) / 4, 0.3 * np.eye(3), RNG.normal(size=(2, 3)), RNG.normal(size=(9, 2))

    def f(step: Any, noise: Any, seen: Any) -> Any:
        def update(state: Any, value: Any) -> Any:
            mean, spread = step @ state[0], step @ state[1] @ step.T + noise
            across = look @ spread
            scatter = across @ look.T + np.eye(2)
            surprise = value - look @ mean
            gain = np.linalg.solve(scatter, across).T
            term = surprise @ np.linalg.solve(scatter, surprise) + np.linalg.slogdet(scatter)[1]
            return (mean + gain @ surprise, spread - gain @ across), (term, mean)

        (_, spread), (terms, means) = wg.scan(update, (np.zeros(3), np.eye(3)), seen)
        return np.sum(terms) + np.sum(means**2) + np.trace(spread)

    for function in (f, wg.grad(f, (0, 1, 2)), lambda *a: wg.jvp(f, a, a)):
        require_same(function, step, noise, seen, exact=False)
        assert Compiled(trace(function)(step, noise, seen)).callee is not None


def test_they_are_shown() -> None:
    lowered = wg.jit(newton).lower(positive(3, 3), np.ones(3))
    shown = str(lowered.kernels)
    assert shown.count("routine small.solve.float64 of ") == 2
    assert "by NumPy" not in shown
    assert "\nloop rounds " in shown
    assert str(lowered.cost).endswith("not counted: 1 routines of matrices, of machine code")
    assert repr(lowered).startswith("<11 of 11 equations")


SINGULAR: dict[str, tuple[Callable[..., Any], Any]] = {
    "solve": (lambda a: np.linalg.solve(a, a), np.zeros((2, 2))),
    "inv": (np.linalg.inv, np.ones((3, 3))),
    "inv of a stack": (np.linalg.inv, np.stack([np.eye(3), np.ones((3, 3))])),
    "cholesky": (np.linalg.cholesky, -np.eye(2)),
    "solve_triangular": (lambda a: linalg.solve_triangular(a, a), np.diag([1.0, 0.0, 2.0])),
    "solve_triangular of NaN": (lambda a: linalg.solve_triangular(a, a), np.full((2, 2), np.nan)),
    "cho_solve of an infinity": (lambda a: linalg.cho_solve((a, True), a), np.diag([1.0, np.inf])),
    "scipy solve": (lambda a: linalg.solve(a, a), np.zeros((2, 2))),
    "scipy solve of NaN": (lambda a: linalg.solve(a, a), np.full((2, 2), np.nan)),
    "scipy solve, positive": (lambda a: linalg.solve(a, a, assume_a="pos"), np.diag([1.0, -1.0])),
    "scipy inv": (linalg.inv, np.zeros((3, 3))),
    "scipy inv of an infinity": (linalg.inv, np.diag([1.0, np.inf])),
    "scipy det of NaN": (linalg.det, np.full((2, 2), np.nan)),
    "scipy cholesky": (linalg.cholesky, -np.eye(2)),
    "scipy cholesky of NaN": (linalg.cholesky, np.full((2, 2), np.nan)),
    "newton": (lambda a: newton(a, np.zeros(len(a))), np.zeros((2, 2))),
    "lu_factor of NaN": (lambda a: linalg.lu_factor(a)[0], np.full((2, 2), np.nan)),
}


def among_others(matrix: Any, size: int) -> Any:
    """Return a matrix of so many rows, if that is more than it has, in the middle of which a given one stands."""
    count = max(size - matrix.shape[-1], 0)
    found = np.zeros((*matrix.shape[:-2], *[n + count for n in matrix.shape[-2:]]), matrix.dtype)
    found[...] = 2 * np.eye(found.shape[-1])
    start = count // 2
    found[..., start : start + matrix.shape[-1], start : start + matrix.shape[-1]] = matrix
    return found


@pytest.mark.parametrize("size", [0, 50])
@pytest.mark.parametrize("case", SINGULAR)
def test_errors_are_numpys(case: str, size: int) -> None:
    function, matrix = SINGULAR[case]
    matrix = among_others(matrix, size)
    with pytest.raises((np.linalg.LinAlgError, ValueError)) as want:
        function(matrix)
    run = wg.jit(function)
    for _ in range(2):
        with pytest.raises(type(want.value), match=str(want.value)[:20]):
            run(matrix)
        if "newton" not in case:
            regular = np.broadcast_to(2.0 * np.eye(matrix.shape[-1]), matrix.shape)
            np.testing.assert_allclose(run(regular), function(regular))


@pytest.mark.parametrize("dtype", [float, complex])
def test_factors_of_singular_matrices_are_scipys(dtype: Any) -> None:
    factor = wg.jit(linalg.lu_factor)
    solve = wg.jit(lambda a, pivots: linalg.lu_solve((a, pivots), a))
    factor(positive(3, 3, dtype=dtype))
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Singular"):
        found = factor(np.ones((3, 3), dtype))
    with pytest.warns(scipy.linalg.LinAlgWarning, match="Singular"):
        np.testing.assert_array_equal(found[0], scipy.linalg.lu_factor(np.ones((3, 3), dtype))[0])
    for pivots in (np.array([0, 1], np.int32), np.array([1, 1])):
        a = np.diag([1.0, 2.0]).astype(dtype)
        np.testing.assert_allclose(solve(a, pivots), scipy.linalg.lu_solve((a, pivots), a))
    for pivots in ([0, 2], [-1, 1]):
        with pytest.raises(UsageError, match="from 0 to 1, are needed"):
            solve(np.eye(2, dtype=dtype), np.array(pivots, np.int32))


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "function",
    [np.linalg.det, np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, np.ones(len(a), a.dtype))],
)
def test_nan_singular_and_extreme_matrices_are_as_numpy_has_them(
    function: Callable[..., Any], dtype: Any, size: int
) -> None:
    run = wg.jit(function)
    a = among_others(positive(3, 3, dtype=dtype), size)
    last = a.size - 1
    for k, value in [(0, np.nan), (last // 2, np.nan), (last, np.nan), (0, 1e-200), (last, 1e200)]:
        changed = a.copy()
        changed.flat[k] = value
        with np.errstate(invalid="ignore"):
            found, want = outcome(run, changed), outcome(function, changed)
        if isinstance(want, str):
            assert want in found
        else:
            largest = np.abs(want).max()
            np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-15 * largest if largest < np.inf else 0.0)


def test_determinants_of_singular_huge_and_tiny_matrices() -> None:
    run = wg.jit(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)))
    gradient = wg.jit(wg.grad(np.linalg.det))
    by_scipy = wg.jit(linalg.det)
    for matrix in (np.ones((3, 3)), np.zeros((3, 3)), np.eye(3) * 1e-150, np.diag([1e-200, 1e-200, 1e300])):
        for _ in range(3):
            found = run(matrix)
            np.testing.assert_allclose(found, (np.linalg.det(matrix), *np.linalg.slogdet(matrix)), rtol=1e-12)
            np.testing.assert_allclose(by_scipy(matrix), linalg.det(matrix), rtol=1e-12)
            np.testing.assert_allclose(gradient(matrix), wg.grad(np.linalg.det)(matrix), rtol=1e-12)


NEARLY: dict[str, Callable[[Any], Any]] = {
    "solve": lambda a: linalg.solve(a, a[0]),
    "solve, general": lambda a: linalg.solve(a, a, assume_a="gen"),
    "solve, positive": lambda a: linalg.solve(a, a[0], assume_a="pos"),
    "inv": linalg.inv,
}


@pytest.mark.parametrize("case", NEARLY)
@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 3), (np.float32, 3), (np.float64, 40), (np.complex64, 40)])
def test_scipy_warns_of_nearly_singular_matrices(case: str, dtype: Any, size: int) -> None:
    run, warned = wg.jit(NEARLY[case]), 0
    for power in range(18):  # conditions from 1 to 1e17
        basis = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
        a = among_others((basis * np.array([1.0, 1.0, 10.0**-power]) @ basis.T).astype(dtype), size)
        results = []
        for function in (NEARLY[case], run, run):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    results.append((function(a), None, len(found)))
                except np.linalg.LinAlgError as error:
                    results.append((None, str(error), 0))
        (want, *rest), *others = results
        warned += rest != [None, 0]
        for value, *other in others:
            assert other == rest
            if not any(rest):
                tolerance = 20 * 10.0**power * np.finfo(dtype).eps
                np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    assert warned


def test_one_triangle_of_what_is_said_to_be_positive_definite_is_read() -> None:
    a, b = positive(3, 3), RNG.normal(size=(3, 2))
    for lower in (False, True):
        changed = a + (np.triu if lower else np.tril)(RNG.normal(size=(3, 3)), 1 if lower else -1)
        require_same(lambda a, b, lower=lower: linalg.solve(a, b, lower=lower, assume_a="pos"), changed, b)


def test_very_large_matrices_other_dtypes_and_those_without_a_library_are_numpys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = np.array([[2, 1], [1, 3]])
    assert not has_steps(trace(np.linalg.inv)(np.eye(MOST + 1)))
    assert not has_steps(trace(np.linalg.inv)(whole))
    np.testing.assert_allclose(wg.jit(np.linalg.inv)(whole), np.linalg.inv(whole))
    monkeypatch.setattr(lapack_routines, "are_offered", lambda names: False)
    for matrix in (matrices(37, 37, dtype=complex), np.eye(5) + 1j):  # of shapes that no other test compiles
        assert not has_steps(trace(np.linalg.inv)(matrix))
        np.testing.assert_allclose(wg.jit(np.linalg.inv)(matrix), np.linalg.inv(matrix))


def test_blocks_of_right_sides_are_problems_of_their_own() -> None:
    a, b = matrices(20, 20), random((20, 256))
    for function in (linalg.solve_triangular, lambda a, b: linalg.cho_solve((a, True), b)):
        require_same(function, a, b)
        require_same(function, np.asfortranarray(a), np.asfortranarray(b))
        assert " count 4," in str(wg.jit(function).lower(a, b).kernels)


@pytest.mark.long
@together("target", [name for name in TARGETS if name != "host"])
def test_each_processor_computes_rows_alike(target: str) -> None:
    backend: Backend[Any, Any] = Processor(TARGETS[target])
    for name in ("solve", "slogdet", "cholesky", "lu_solve, 0", "lu_solve, 1"):
        function, make, has_right = ROUTINES[name]
        for size, dtype in ((37, np.float64), (21, np.float32)):
            right = random((size, 9) if name == "solve" else size, dtype)  # those of factors are vectors
            args = [make(size, size, dtype=dtype), *[right] * has_right]
            program = partition_graph(trace(function)(*args)).whole
            assert program is not None
            *found, failed = backend.compile_program(program)(args)
            assert not failed
            want, tolerance = function(*args), 1e-4 if dtype == np.float32 else 1e-10
            for a, b in zip(found, want if isinstance(want, tuple) else (want,), strict=True):
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


BESIDE = [
    *[(np.float64, 7, None), (np.float64, 9, 9), (np.float64, 17, None), (np.float64, 33, 31)],
    *[(np.float32, 8, 1), (np.float32, 16, 3), (np.float32, 31, 5), (np.float32, 65, 33)],
]
"""Rows and columns on both sides of whole vectors, squares and panels."""


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by other functions there")
@pytest.mark.parametrize("name", ROUTINES)
def test_what_lies_beside_matrices_and_room_is_not_touched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, make, has_right = ROUTINES[name]
    for dtype, size, columns in some_of(BESIDE, name):
        rights = [random((size, columns) if columns else size, dtype)] * has_right
        args = [np.asarray(x, order="F" if size % 2 else "C") for x in (make(size, size, dtype=dtype), *rights)]
        want = function(*args)
        wants = [np.asarray(x) for x in (want if isinstance(want, tuple) else (want,))]
        (program,) = wg.jit(function).lower(*args).programs
        run, tolerance = Processor().compile_program(program), 1e-4 if dtype == np.float32 else 1e-9
        for at_end in (False, True):
            monkeypatch.setattr(callee, "room", lambda size, at_end=at_end: guarded(size, at_end))
            memory = [guarded(x.nbytes, at_end) for x in (*args, *wants, np.ones(1, bool))]
            for place, x in zip(memory, args, strict=False):
                place[...] = x.ravel("K").view(np.uint8)
            run.callee.call([place.ctypes.data for place in memory])
            *results, failed = memory[len(args) :]
            assert not failed
            for found, x in zip(results, wants, strict=True):
                pairs = [np.sort(y, axis=None) for y in (found.view(x.dtype), x)]  # which lie in one order or another
                np.testing.assert_allclose(*pairs, rtol=tolerance, atol=tolerance)


def test_as_accurate_as_lapack() -> None:
    """Backward errors are those of elimination with pivots, whatever the condition."""
    for size in (2, 5, 12, 70):
        for condition in (1e2, 1e8, 1e14):
            u, _, v = np.linalg.svd(RNG.normal(size=(size, size)))
            a = u * np.geomspace(1, 1 / condition, size) @ v
            b = RNG.normal(size=size)
            x = wg.jit(np.linalg.solve)(a, b)
            residual = np.linalg.norm(a @ x - b) / (np.linalg.norm(a) * np.linalg.norm(x))
            assert residual < 20 * size * np.finfo(float).eps
    tiny = np.array([[1e-20, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(wg.jit(np.linalg.solve)(tiny, np.array([1.0, 2.0])), [1.0, 1.0])


@pytest.mark.parametrize("name", ["expm", "logm", "solve"])
def test_what_wakes_threads_for_few_rows_has_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, function = [], getattr(scipy.linalg, name)

    def counting(*args: Any, **options: Any) -> Any:
        counts.append(len(ONE_THREAD.undos))
        return function(*args, **options)

    monkeypatch.setattr(scipy.linalg, name, counting)
    args = [positive(3, 3), *[np.ones(3)] * (name == "solve")]
    wg.jvp(lambda a: getattr(linalg, name)(a, *args[1:]), (args[0],), (args[0],))
    assert counts
    assert min(counts) > 0
    assert not ONE_THREAD.undos
