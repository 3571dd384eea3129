"""Sparse linear systems and least squares by SciPy's solvers: derivatives against those of full matrices."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.primitives.sparse import direct_solves
from wengert.primitives.sparse.normal_equations import conjugate_gradients
from wengert.scipy.sparse import csr_array, diags_array, linalg

RNG = np.random.default_rng(2)
SIZE = 6
FULL = RNG.normal(size=(SIZE, SIZE)) * (RNG.uniform(size=(SIZE, SIZE)) < 0.4) + 5.0 * np.eye(SIZE)
POSITIVE = FULL @ FULL.T
B, MANY = RNG.normal(size=SIZE), RNG.normal(size=(3, SIZE))
TIGHT: dict[str, Any] = {"rtol": 1e-13}


def on_pattern(full: Any, matrix: Any) -> Any:
    rows, columns = scipy.sparse.coo_array(matrix).coords
    return full[rows, columns]


def in_full(a: Any) -> Any:
    return a.toarray() if hasattr(a, "toarray") else a


def cubes(solve: Any) -> Any:
    return lambda *given: np.sum(solve(*given) ** 3)


def inverse_of_diagonal(a: Any) -> Any:
    return linalg.LinearOperator(a.shape, lambda x: x / a.diagonal())


def solve_full(a: Any, b: Any) -> Any:
    return np.linalg.solve(a.toarray(), b)


SOLVERS: dict[str, Any] = {
    "spsolve": linalg.spsolve,
    "splu": lambda a, b: linalg.splu(a).solve(b),
    "the transpose": lambda a, b: linalg.splu(a.T.tocsc(), diag_pivot_thresh=0.5).solve(b, "T"),
    "the adjoint": lambda a, b: linalg.splu(a.T.tocsc()).solve(b, "H"),
    "factorized": lambda a, b: linalg.factorized(a)(b),
    "gmres": lambda a, b: linalg.gmres(a, b, atol=0.0, restart=10, M=inverse_of_diagonal(a), **TIGHT)[0],
    "bicgstab": lambda a, b: linalg.bicgstab(a, b, np.ones(SIZE), M=diags_array(1 / a.diagonal()), **TIGHT)[0],
    "cg": lambda a, b: linalg.cg(a, b, M=scipy.sparse.diags_array(1.0 / POSITIVE.diagonal()), **TIGHT)[0],
    "minres": lambda a, b: linalg.minres(a, b, **TIGHT)[0],
    "of products": lambda a, b: linalg.gmres(linalg.LinearOperator(a.shape, lambda x: a @ x), b, **TIGHT)[0],
}


@together("name", SOLVERS)
def test_derivatives_of_solutions(name: str) -> None:
    solve, full = SOLVERS[name], POSITIVE if name in ("cg", "minres") else FULL
    matrix = scipy.sparse.csr_array(full)
    np.testing.assert_allclose(solve(matrix, B), np.linalg.solve(full, B), rtol=1e-9)
    want = wg.grad(cubes(solve_full), (0, 1))(matrix, B)
    gradient = wg.grad(cubes(solve), (0, 1))
    both = [gradient(matrix, B), wg.jit(gradient)(matrix, B), wg.grad(wg.jit(cubes(solve)), (0, 1))(matrix, B)]
    for by_matrix, by_vector in both:
        np.testing.assert_allclose(by_matrix.data, want[0].data, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(by_vector, want[1], rtol=1e-6, atol=1e-9)
    direction = 0.1 * matrix
    for run in (solve, wg.jit(solve)):
        tangent = wg.jvp(run, (matrix, B), (direction, MANY[0]))[1]
        np.testing.assert_allclose(tangent, wg.jvp(solve_full, (matrix, B), (direction, MANY[0]))[1], rtol=1e-6)
    second = [wg.hvp(cubes(f), (matrix, B), (direction, B)) for f in (solve, solve_full)]
    for got, wanted in zip(*second, strict=True):
        np.testing.assert_allclose(getattr(got, "data", got), getattr(wanted, "data", wanted), rtol=1e-5, atol=1e-8)
    lanes = wg.vmap(lambda s, b: solve(matrix * s, b))(np.array([1.0, 2.0, 4.0]), MANY)
    np.testing.assert_allclose(
        lanes, [np.linalg.solve(s * full, b) for s, b in zip((1, 2, 4), MANY, strict=True)], rtol=1e-9
    )


def test_preconditioners_may_capture_what_is_differentiated() -> None:
    """The right-hand side is known, so that the matrix alone moves."""
    inverses: list[Any] = [
        lambda a: linalg.LinearOperator(a.shape, lambda x: x / a.diagonal()),
        lambda a: linalg.LinearOperator(a.shape, linalg.splu(a).solve),
        lambda a: np.diag(1 / a.diagonal()),
        lambda a: diags_array(1 / a.diagonal()),
    ]
    matrix = scipy.sparse.csr_array(FULL)
    want = wg.grad(lambda a: np.sum(solve_full(a, B) ** 3))(matrix)
    for inverse in inverses:
        gradient = wg.grad(lambda a, inverse=inverse: np.sum(linalg.gmres(a, B, M=inverse(a), **TIGHT)[0] ** 3))
        for run in (gradient, wg.jit(gradient)):
            np.testing.assert_allclose(run(matrix).data, want.data, rtol=1e-6, atol=1e-9)


@together("format", ["csc", "coo", "dia", "bsr"])
def test_systems_in_every_format(format: str) -> None:
    matrix = scipy.sparse.csr_array(FULL).asformat(format)
    for b in (B, MANY.T):
        np.testing.assert_allclose(linalg.spsolve(matrix, b), np.linalg.solve(FULL, b))
        gradient = wg.grad(lambda a, b=b: np.sum(linalg.spsolve(a, b) ** 2))(matrix)
        want = wg.grad(lambda a, b=b: np.sum(solve_full(a, b) ** 2))(matrix)
        np.testing.assert_allclose(in_full(gradient), in_full(want), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wg.vmap(lambda b: linalg.spsolve(matrix, b))(MANY), np.linalg.solve(FULL, MANY.T).T)


def test_one_factor_serves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    own = direct_solves.factorise
    monkeypatch.setattr(direct_solves, "factorise", lambda *args: made.append(args) or own(*args))
    matrix = scipy.sparse.csr_array(FULL + np.diag(np.arange(SIZE)))
    energy = cubes(linalg.spsolve)
    wg.grad(energy, (0, 1))(matrix, B)
    wg.jvp(energy, (matrix, B), (matrix, B))
    wg.hvp(energy, (matrix, B), (matrix, B))
    wg.jit(wg.grad(energy))(matrix, B)
    wg.vmap(lambda b: wg.grad(energy, 1)(matrix, b))(MANY)
    linalg.splu(matrix).solve(B, "T")
    assert len(made) == 1
    matrix.data[0] += 1.0
    np.testing.assert_allclose(linalg.spsolve(matrix, B), np.linalg.solve(matrix.toarray(), B))
    assert len(made) == 2


def test_loops_of_systems() -> None:
    matrix = scipy.sparse.csr_array(FULL)

    def steps(solve: Any) -> Any:
        return lambda a: np.sum(wg.fori_loop(0, 3, lambda _i, x: solve(a, x + B), B))

    want = wg.grad(lambda a: np.sum(solve_full(a, solve_full(a, solve_full(a, 2 * B) + B) + B)))(matrix).data
    for run in (wg.grad(steps(linalg.spsolve)), wg.jit(wg.grad(steps(linalg.spsolve)))):
        np.testing.assert_allclose(run(matrix).data, want, rtol=1e-9)


def test_numbers_of_other_types() -> None:
    matrix, b = scipy.sparse.csc_array(FULL + 0.5j * np.eye(SIZE)), B + 1j * MANY[0]
    gradient = wg.grad(lambda a, b: np.sum(np.abs(linalg.spsolve(a, b)) ** 2), (0, 1))(matrix, b)
    want = wg.grad(lambda a, b: np.sum(np.abs(solve_full(a, b)) ** 2), (0, 1))(matrix, b)
    np.testing.assert_allclose(gradient[0].data, want[0].data, rtol=1e-9)
    np.testing.assert_allclose(gradient[1], want[1], rtol=1e-9)
    real = scipy.sparse.csr_array(FULL)
    np.testing.assert_allclose(linalg.spsolve(real, b), np.linalg.solve(FULL, b))
    assert wg.grad(lambda a: np.sum(np.abs(linalg.spsolve(a, b)) ** 2))(real).dtype == np.float64
    hermitian = scipy.sparse.csr_array(matrix.toarray() @ matrix.toarray().conj().T)
    found = wg.grad(lambda a: np.sum(np.abs(linalg.cg(a, b, **TIGHT)[0]) ** 2))(hermitian)
    want = wg.grad(lambda a: np.sum(np.abs(solve_full(a, b)) ** 2))(hermitian)
    np.testing.assert_allclose(found.data, want.data, rtol=1e-6)
    single = wg.grad(lambda a: np.sum(linalg.spsolve(a, B.astype(np.float32))))(real.astype(np.float32))
    assert single.dtype == np.float32
    assert linalg.spsolve(scipy.sparse.csr_array(np.eye(2, dtype=int)), np.array([1, 2])).dtype == np.float64
    assert linalg.spsolve(real, np.zeros((SIZE, 0))).shape == (SIZE, 0)


@together("name", ["lsqr", "lsmr"])
def test_least_squares(name: str) -> None:
    full = RNG.normal(size=(9, 4)) * (RNG.uniform(size=(9, 4)) < 0.7) + np.eye(9, 4)
    matrix, b = scipy.sparse.csr_array(full), RNG.normal(size=9)
    tight: dict[str, Any] = {"atol": 1e-15, "btol": 1e-15, "conlim": 0.0}
    tight["iter_lim" if name == "lsqr" else "maxiter"] = 200
    by_products = lambda a: linalg.LinearOperator((9, 4), lambda x: a @ x)
    for damp, form in itertools.product((0.0, 0.5), (lambda a: a, by_products)):

        def solve(a: Any, b: Any, damp: float = damp, form: Any = form) -> Any:
            return getattr(linalg, name)(form(a), b, damp, **tight)[0]

        def of_normal_equations(a: Any, b: Any, damp: float = damp) -> Any:
            whole = a.toarray()
            return np.linalg.solve(whole.T @ whole + damp**2 * np.eye(4), whole.T @ b)

        want = wg.grad(cubes(of_normal_equations), (0, 1))(matrix, b)
        for transform in (wg.grad, lambda f, n: wg.jit(wg.grad(f, n)))[: 1 + bool(damp)]:
            got = transform(cubes(solve), (0, 1))(matrix, b)
            np.testing.assert_allclose(got[0].data, want[0].data, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-6, atol=1e-9)
        got, want = (wg.jvp(f, (matrix, b), (matrix, b))[1] for f in (solve, of_normal_equations))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
        got, want = (wg.hvp(cubes(f), (matrix, b), (matrix, b)) for f in (solve, of_normal_equations))
        np.testing.assert_allclose(got[0].data, want[0].data, rtol=1e-5, atol=1e-8)
    for a in (matrix, by_products(matrix)):
        found, wanted = getattr(linalg, name)(a, b), getattr(scipy.sparse.linalg, name)(matrix, b)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
        with pytest.raises(UsageError, match=f"^{name}: a derivative of what tells how it went; one of the solution "):
            wg.grad(lambda b, a=a: getattr(linalg, name)(a, b)[3])(b)


@together("tol", [1e-3, 1e-8, 1e-12])
def test_normal_equations_take_as_many_products_as_lsqr(tol: float) -> None:
    matrix = scipy.sparse.vstack([scipy.sparse.diags_array(RNG.uniform(0.1, 1.0, 40)), np.diff(np.eye(40), axis=0)])
    right, counts = RNG.normal(size=40), [0, 0]

    def product(x: Any) -> Any:
        counts[0] += 1
        return matrix @ x

    def back(y: Any) -> Any:
        counts[1] += 1
        return matrix.T @ y

    full, limits = matrix.toarray(), {"atol": tol, "btol": tol, "conlim": 1e8}
    exact = np.linalg.solve(full.T @ full, right)
    found = conjugate_gradients(product, back, right, 0.0, most=200, **limits)
    other, _, count, *_ = scipy.sparse.linalg.lsqr(matrix.T, right, iter_lim=200, **limits)
    assert max(counts) <= count + 1
    assert np.linalg.norm(full @ (found - exact)) <= 1.1 * np.linalg.norm(other - full @ exact) + 1e-13
    damped = conjugate_gradients(product, back, right, 0.5, most=200, **limits)
    exact = np.linalg.solve(full.T @ full + 0.25 * np.eye(40), right)
    np.testing.assert_allclose(damped, exact, rtol=0.0, atol=100 * tol * np.max(np.abs(exact)))


@together("name", ["lsqr", "lsmr"])
def test_least_squares_of_dependent_columns(name: str) -> None:
    full, b = RNG.normal(size=(7, 3)), RNG.normal(size=7)
    dependent = np.concatenate([full, full[:, :1] - full[:, 1:2]], axis=1)
    tight = {"atol": 1e-13, "btol": 1e-13}
    for whole in (dependent, full.T, full.T[:1]):  # the latter have more columns
        matrix = (scipy.sparse.coo_array if len(whole) == 1 else scipy.sparse.csr_array)(whole)
        solve = lambda b, matrix=matrix: getattr(linalg, name)(matrix, b, **tight)[0]
        found = wg.jacobian(solve)(b[: len(whole)])
        np.testing.assert_allclose(found, np.linalg.pinv(whole), atol=1e-9)


@together("name", ["lsqr", "lsmr"])
def test_least_squares_by_their_damping(name: str) -> None:
    full, b = RNG.normal(size=(6, 3)), RNG.normal(size=6)
    matrix, calls = scipy.sparse.csr_array(full), []
    tight: dict[str, Any] = {"atol": 1e-15, "btol": 1e-15, "conlim": 0.0}

    def back(a: Any, y: Any) -> Any:
        calls.append(y)
        return a.T @ y

    def of_normal_equations(a: Any, b: Any, damp: Any) -> Any:
        whole = a.toarray()
        return np.linalg.solve(whole.T @ whole + damp**2 * np.eye(3), whole.T @ b)

    by_products = lambda a: linalg.LinearOperator((6, 3), lambda x: a @ x, lambda y: back(a, y))
    for form, run in ((lambda a: a, wg.jit), (by_products, lambda f: f)):
        solve = lambda a, b, damp, form=form: getattr(linalg, name)(form(a), b, damp, **tight)[0]
        got, want = (run(wg.grad(cubes(f), (0, 1, 2)))(matrix, b, 0.4) for f in (solve, of_normal_equations))
        np.testing.assert_allclose(got[0].data, want[0].data, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose([*got[1], got[2]], [*want[1], want[2]], rtol=1e-7, atol=1e-10)
        curved = (wg.grad(wg.grad(lambda d, f=f: cubes(f)(matrix, b, d))) for f in (solve, of_normal_equations))
        np.testing.assert_allclose(*(wg.vmap(f)(np.array([0.2, 0.7])) for f in curved), rtol=1e-7)
    assert calls
    found, wanted = getattr(linalg, name)(matrix, b, wg.tensor(0.3)), getattr(scipy.sparse.linalg, name)(matrix, b, 0.3)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@together("name", ["lsqr", "lsmr"])
def test_least_squares_by_products(name: str) -> None:
    full, b = RNG.normal(size=(9, 4)), RNG.normal(size=9)
    tight: dict[str, Any] = {"atol": 1e-15, "btol": 1e-15, "conlim": 0.0}
    method = getattr(linalg, name)

    def of(scale: Any) -> Any:
        return np.sum(method(linalg.LinearOperator((9, 4), lambda x: np.sin(full * scale) @ x), b, **tight)[0] ** 2)

    def in_full(scale: Any) -> Any:
        return np.sum(np.linalg.lstsq(np.sin(full * scale), b)[0] ** 2)

    scales = np.array([1.0, 0.5])
    for order, run in ((wg.grad, wg.jit), (lambda f: wg.grad(wg.grad(f)), lambda f: f)):
        lanes = [order(in_full)(s) for s in scales]
        np.testing.assert_allclose(run(wg.vmap(order(of)))(scales), lanes, rtol=1e-8)
    single = linalg.LinearOperator((9, 4), lambda x: full.astype(np.float32) @ x)
    with np.errstate(over="ignore"):  # in the condition that SciPy estimates
        assert method(single, b.astype(np.float32))[0].dtype == np.float32
    dependent = linalg.LinearOperator((9, 4), lambda x: full @ (x * np.array([1.0, 1.0, 1.0, 0.0])))
    with pytest.raises(NumericalError, match=f"^{name}: a linear system that cg left with a residual of "):
        wg.grad(lambda b: method(dependent, b)[0].sum())(b)
    early = {"iter_lim" if name == "lsqr" else "maxiter": 1}
    with pytest.raises(NumericalError, match=f"^{name}: a solution that misses its equations by "):
        wg.grad(lambda b: method(linalg.LinearOperator((9, 4), lambda x: full @ x), b, **early)[0].sum())(b)


def test_what_has_not_converged_has_a_value_and_no_derivative() -> None:
    matrix = scipy.sparse.csr_array(POSITIVE)
    x, info = linalg.cg(matrix, B, maxiter=1)
    wanted, said = scipy.sparse.linalg.cg(matrix, B, maxiter=1)
    assert int(info) == said == 1
    np.testing.assert_array_equal(x, wanted)
    text = (
        "cg: after 1 iterations it had not converged; a solution is needed to differentiate. Allow more iterations, "
        "precondition it by M, or use spsolve."
    )
    for run in (lambda f: f, wg.jit):
        with pytest.raises(NumericalError, match="^" + re.escape(text)):
            run(wg.grad(lambda b: np.sum(linalg.cg(matrix, b, maxiter=1)[0])))(B)
        with pytest.raises(NumericalError, match="^" + re.escape(text)):
            wg.jvp(run(lambda b: linalg.cg(matrix, b, maxiter=1)[0]), (B,), (B,))
    tiny = wg.vjp(lambda b: linalg.cg(matrix, b, atol=1e-12, **TIGHT)[0], B)[1](1e-30 * B)[0]
    np.testing.assert_allclose(tiny, 1e-30 * np.linalg.solve(POSITIVE, B), rtol=1e-9)
    assert int(linalg.gmres(linalg.LinearOperator((SIZE, SIZE), lambda x: FULL @ x), B, maxiter=1, restart=2)[1]) == 1


def test_operators_with_a_shift() -> None:
    def solve(d: Any) -> Any:
        return linalg.minres(linalg.LinearOperator((2, 2), lambda x: d * x), np.ones(2), shift=0.5, rtol=1e-12)

    d = np.array([2.0, 4.0])
    assert int(solve(d)[1]) == 0
    np.testing.assert_allclose(wg.grad(lambda d: solve(d)[0].sum())(d), -1 / (d - 0.5) ** 2, rtol=1e-9)


def test_refusals_of_systems() -> None:
    singular = scipy.sparse.csr_array(np.diag([1.0, 0.0]))
    singular.eliminate_zeros()
    text = "spsolve: a singular matrix of shape (2, 2), whose column 1 is empty; one with an inverse is needed. "
    for run in (lambda f: f, wg.jit, wg.grad):
        with pytest.raises(NumericalError, match="^" + re.escape(text)):
            run(lambda a: np.sum(linalg.spsolve(a, np.ones(2))))(singular)
    with pytest.raises(NumericalError, match=r"^splu: a singular matrix of shape \(2, 2\); "):
        linalg.splu(csr_array(scipy.sparse.csr_array(np.ones((2, 2)))))
    square = scipy.sparse.csr_array(FULL)
    for call, kind, said in [
        (lambda: linalg.spsolve(FULL, B), DtypeError, "spsolve: a matrix of type ndarray; a sparse array is needed. "),
        (
            lambda: linalg.spsolve(square[:3], B),
            ShapeError,
            "spsolve: a matrix of shape (3, 6); a square one is needed.",
        ),
        (lambda: linalg.spsolve(square, B[:2]), ShapeError, "spsolve: shape (2,) on the right of 6 equations; shape "),
        (lambda: linalg.spsolve(square, square), DtypeError, "spsolve: a sparse right-hand side; an array is needed. "),
        (lambda: linalg.cg(square, MANY.T), ShapeError, "cg: shape (6, 3) on the right of 6 equations; shape (6,) is "),
        (lambda: linalg.splu(square).solve(B, "X"), UsageError, "solve: trans='X'; 'N', 'T' or 'H' is needed. "),
        (lambda: linalg.LinearOperator((2,), abs), ShapeError, "LinearOperator: shape (2,); two lengths are needed. "),
        (
            lambda: linalg.cg(linalg.LinearOperator((6, 3), abs), B),
            ShapeError,
            "cg: a LinearOperator of shape (6, 3); ",
        ),
        (lambda: linalg.lsqr(linalg.LinearOperator((6, 3), abs), B), ShapeError, "lsqr: a matvec from shape (3,) to "),
        (
            lambda: linalg.lsmr(linalg.LinearOperator((6, 6), lambda x: x * 1j), B),
            DtypeError,
            "lsmr: numbers of dtype complex128; real numbers are needed. ",
        ),
        (lambda: linalg.lsqr(square, B, np.ones(2)), ShapeError, "lsqr: damp of shape (2,); one number is needed. "),
        (lambda: linalg.LinearOperator((6, 6), abs, 1.0), DtypeError, "LinearOperator: 1.0 as the rmatvec; "),
        (lambda: linalg.lsqr(square * 1j, B), DtypeError, "lsqr: complex numbers; real numbers are needed. "),
        (lambda: linalg.cg(square, B, tol=1.0), TypeError, "cg() got an unexpected keyword argument 'tol'"),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value).startswith(said)
