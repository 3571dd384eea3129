"""Tests of `wengert.implicit.qp`: solutions, multipliers, derivatives by all data, and what is no solution."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

import wengert as wg
import wengert.scipy.sparse as sp
from tests.cases import together
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.implicit import qp
from wengert.implicit.quadratic_programs.dependent_rows import rows_left_out

RNG = np.random.default_rng(4)
PROGRAMS = [(2, 0, 3), (3, 1, 0), (4, 2, 6), (8, 2, 20)]


def program(n: int, m: int, p: int) -> tuple[Any, ...]:
    """Return a program with a solution, most of whose constraints are not active."""
    root, inside = RNG.normal(size=(n, n)), RNG.normal(size=n)
    A, G = RNG.normal(size=(m, n)), RNG.normal(size=(p, n))
    return root @ root.T + np.eye(n), 3 * RNG.normal(size=n), A, A @ inside, G, G @ inside + RNG.uniform(0.1, 1.0, p)


def by_slsqp(P: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Any:
    limits = [optimize.LinearConstraint(A, b, b)] * bool(len(b)) + [optimize.LinearConstraint(G, ub=h)] * bool(len(h))
    start = np.linalg.lstsq(A, b, rcond=None)[0] if len(b) else np.zeros(len(q))
    found = optimize.minimize(
        lambda x: 0.5 * x @ P @ x + q @ x, start, jac=lambda x: P @ x + q, constraints=limits, method="SLSQP", tol=1e-12
    )
    assert found.success
    return found.x


@together("shape", PROGRAMS)
@together("solver", [None, by_slsqp])
def test_solutions_meet_the_conditions_and_have_derivatives_by_all_data(shape: Any, solver: Any) -> None:
    data = program(*shape)
    P, q, A, b, G, h = data
    x, y, z = qp(*data, solver=solver)
    np.testing.assert_allclose(P @ x + q + y @ A + z @ G, 0, atol=1e-12)
    np.testing.assert_allclose(A @ x, b, atol=1e-12)
    assert np.all(G @ x <= h + 1e-12)
    assert np.all(z >= 0)
    np.testing.assert_allclose(z * (h - G @ x), 0, atol=1e-12)

    def loss(*data: Any) -> Any:
        x, y, z = qp(*data, solver=solver)
        return np.sum(np.sin(x)) + np.sum(y * y) + np.sum(z * z)

    along = [RNG.normal(size=part.shape) for part in data]
    along[0] = along[0] + along[0].T

    def shifted(t: Any) -> Any:
        return loss(*(part + t * change for part, change in zip(data, along, strict=True)))

    slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5
    assert wg.jvp(loss, data, along)[1] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    gradient = wg.grad(loss, range(6))(*data)
    assert sum(np.sum(g * t) for g, t in zip(gradient, along, strict=True)) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    first = wg.grad(shifted)
    assert wg.grad(first)(0.0) == pytest.approx((first(1e-5) - first(-1e-5)) / 2e-5, rel=1e-5, abs=1e-5)


def test_programs_in_lanes_and_graphs_are_those_alone() -> None:
    P, q, A, b, G, h = program(4, 1, 5)

    def loss(q: Any) -> Any:
        return np.sum(qp(P, q, A, b, G, h).x ** 2)

    several = np.stack([q, 2 * q, -q])
    expected = np.stack([wg.grad(loss)(one) for one in several])
    np.testing.assert_allclose(wg.vmap(wg.grad(loss))(several), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(loss)))(several), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(q), expected[0], rtol=1e-9, atol=1e-12)


@together("shape", [(2, 0, 3), (3, 1, 0), (4, 2, 6)])
def test_native_programs_are_those_of_python(shape: Any) -> None:
    data = program(*shape)
    lists = (part.tolist() if part.size else part for part in data)
    for found, expected in zip(wg.jit(qp, native=True)(*data), qp(*lists), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.long
@together("relax", [0.0, 0.1])
def test_derivatives_of_native_programs_and_in_lanes_are_those_of_python(relax: float) -> None:
    data, along = program(3, 1, 4), program(3, 1, 4)

    def loss(t: float) -> Any:
        x, y, z = qp(*(part + t * change for part, change in zip(data, along, strict=True)), relax=relax)
        return np.sum(np.sin(x)) + np.sum(y * y) + np.sum(z * z)

    def slopes(t: Any) -> Any:
        first = wg.grad(loss)
        return np.stack([loss(t), *wg.jvp(first, (t,), (1.0,))])

    several = np.array([0.0, 0.01])
    expected = np.stack([slopes(t) for t in several])
    for found in (np.stack([wg.jit(slopes, native=True)(t) for t in several]), wg.vmap(slopes)(several)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_relaxed_programs_are_on_the_central_path_and_have_its_derivatives() -> None:
    corner = lambda t: qp(np.eye(1), np.reshape(t, 1), G=-np.eye(1), h=np.zeros(1), relax=1e-2).x[0]
    for t in (-0.3, 0.0, 0.3):  # x + t - 0.01 / x = 0
        expected = (-t + np.sqrt(t * t + 0.04)) / 2
        assert corner(t) == pytest.approx(expected, rel=1e-8)
        assert wg.grad(corner)(t) == pytest.approx(-expected / np.sqrt(t * t + 0.04), rel=1e-7)
    small = lambda t: qp(1e18 * np.eye(1), np.reshape(1e9 * t, 1), G=-np.eye(1), h=np.zeros(1), relax=1e-2).x[0]
    assert small(0.3) == pytest.approx(1e-9 * corner(0.3), rel=1e-8, abs=0)
    assert wg.grad(small)(0.3) == pytest.approx(1e-9 * wg.grad(corner)(0.3), rel=1e-7, abs=0)
    with pytest.raises(UsageError, match=r"relax=-1\.0; a number that is not negative is needed"):
        qp(np.eye(1), np.ones(1), relax=-1.0)
    with pytest.raises(UsageError, match="the interior point method of ours is needed"):
        qp(np.eye(1), np.ones(1), relax=1.0, solver=by_slsqp)


def test_native_programs_leave_what_is_uncertain_to_python() -> None:
    one = np.array([[1.0, 1.0]])
    nearest = wg.jit(lambda q, h: qp(np.eye(2), q, G=one, h=h).x, native=True)
    with pytest.warns(UserWarning, match=r"^qp: rows \[0\] of G are active with a multiplier of zero"):
        np.testing.assert_allclose(nearest(np.full(2, -0.5), np.ones(1)), [0.5, 0.5])
    saddle = wg.jit(lambda q: qp(np.diag([1.0, -1.0]), q, np.array([[0.0, 1.0]]), np.ones(1)).x, native=True)
    np.testing.assert_allclose(saddle(np.ones(2)), [-1.0, 1.0])
    between = wg.jit(lambda h: qp(np.eye(1), np.zeros(1), G=np.array([[1.0], [-1.0]]), h=h).x, native=True)
    np.testing.assert_allclose(between(np.array([2.0, -1.0])), [1.0])
    with pytest.raises(NumericalError, match="infeasible constraints"):
        between(-np.ones(2))
    with pytest.raises(NumericalError, match="infeasible constraints"):
        wg.vmap(between)(np.stack([np.array([2.0, -1.0]), -np.ones(2)]))


@pytest.mark.filterwarnings("ignore:qp. rows")
def test_constraints_that_depend_on_each_other_have_the_solution_of_one() -> None:
    def least(q: Any, P: Any, A: Any, b: Any, G: Any, h: Any) -> Any:
        return qp(P, q, A, b, G, h).x

    native = wg.jit(least, native=True)
    slope = wg.jacobian(least)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        factor, q, A, b = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(1, 3)), rng.normal(size=1)
        P, G, h = factor @ factor.T + 0.1 * np.eye(3), rng.normal(size=(2, 3)), rng.uniform(size=2)
        h += G @ np.linalg.pinv(A) @ b
        alone, own = least(q, P, A, b, G, h), slope(q, P, A, b, G, h)
        twice = np.concatenate([A, A]), np.concatenate([b, b])
        total = np.concatenate([G, [G[0] + A[0]]]), np.concatenate([h, [h[0] + b[0]]])
        for constraints in ((*twice, G, h), (A, b, *total)):
            np.testing.assert_allclose(native(q, P, *constraints), alone, rtol=1e-7, atol=1e-7)
            sparsely = (sparse.csr_array(P), *(sparse.csr_array(c) if c.ndim == 2 else c for c in constraints))
            for P_given, *given in (sparsely, (P, *constraints)):
                np.testing.assert_allclose(slope(q, P_given, *given), own, atol=1e-7)
    lanes = wg.vmap(slope, (0, *5 * (None,)))(q[None], P, *constraints)[0]
    smallest = wg.jacobian(lambda q: qp(P, q, *constraints, singular="minimum_norm").x)(q)
    for found in (lanes, smallest, wg.jit(slope)(q, P, *constraints)):
        np.testing.assert_allclose(found, own, atol=1e-7)


@together("distance", [0.0, 1e-9, 3e-6])
def test_rows_that_depend_on_each_other_nearly_have_the_derivatives_of_dependent_ones(distance: float) -> None:
    for seed in range(6):
        count, rng = 3 + seed // 2, np.random.default_rng(seed)
        base, A = rng.normal(size=(2, 4)), rng.normal(size=(1, 4))
        rng = np.random.default_rng([seed, count])  # of 4 multipliers seem to be zero beside those of opposite rows
        mixed = [base[0] + base[1], -base[0], base[1] - A[0]]  # opposite ones have multipliers as large as one likes
        G = np.concatenate([base, mixed + distance * rng.normal(size=(3, 4))])[:count]
        root, x, z = rng.normal(size=(4, 4)), rng.integers(-16, 17, 4) / 8, rng.uniform(0.5, 1.5, len(G))
        P = root @ root.T + np.eye(4)
        A, G = (np.rint(rows * 2.0**40) / 2.0**40 for rows in (A, G))  # so that right sides are exact, and so x is
        given = [(sparse.csr_array if seed % 2 else np.asarray)(matrix) for matrix in (P, A, G)]
        slope = wg.jacobian(lambda q, m=given, x=x: qp(m[0], q, m[1], m[1] @ x, m[2], m[2] @ x).x)
        with warnings.catch_warnings(action="ignore"):
            found = slope(-P @ x - A[0] - z @ G)
            solved = qp(given[0], -P @ x - A[0] - z @ G, A, given[1] @ x, G, given[2] @ x).x
        np.testing.assert_allclose(solved, x, rtol=0, atol=1e-9)
        wanted = [-free @ np.linalg.solve(free.T @ P @ free, free.T) for free in free_directions(A, base, G)]
        assert min(np.max(np.abs(found - own)) for own in wanted) < 1e-6, seed


def free_directions(A: Any, base: Any, G: Any) -> Any:
    """Yield what independent constraints leave free, and all of them."""
    for rows in (base, G):
        sizes, directions = np.linalg.svd(np.concatenate([A, rows]))[1:]
        yield directions[np.sum(sizes > 1e-12) :].T


def test_what_is_active_depends_on_no_unit_of_a_row() -> None:
    x, G = np.array([1.0, -2.0, 0.5]), np.eye(3)
    for form in (np.asarray, sparse.csr_array):
        for z in (np.array([1e-4, 50.0, 2e-4]), np.array([1e-4, 2e-4, 50.0])):
            rows = np.diag([31.0, 33.0, 31.0]) @ G  # the second has a unit of 1024, and a thousandth of its multiplier
            given = form(np.eye(3)), -x - z, form(rows)
            slope = wg.jacobian(lambda h, m=given: qp(m[0], m[1], G=m[2], h=h).x)(rows @ x)
            np.testing.assert_allclose(slope, np.linalg.inv(rows), atol=1e-12)


def test_larger_programs_are_solved_to_rounding() -> None:
    P, q, A, b, G, h = program(150, 10, 150)
    x, y, z = qp(P, q, A, b, G, h)
    size = np.max(np.abs(P)) * np.max(np.abs(x)) * len(q)
    np.testing.assert_allclose(P @ x + q + y @ A + z @ G, 0, atol=1e-13 * size)
    assert np.all(G @ x <= h + 1e-11)


def test_constraints_that_just_hold_are_named_and_left_out() -> None:
    one = np.array([[1.0, 1.0]])
    with pytest.warns(UserWarning, match=r"^qp: rows \[0\] of G are active with a multiplier of zero; derivatives are"):
        slope = wg.jacobian(lambda q: qp(np.eye(2), q, G=one, h=np.ones(1)).x)(np.full(2, -0.5))
    np.testing.assert_allclose(slope, -np.eye(2))


@together("around", [wg.jit, wg.checkpoint, lambda f: lambda q: wg.fori_loop(0, 1, lambda i, x: f(q) + 0 * x, 0.0)])
def test_solvers_of_several_results_stay_calls_in_graphs_in_graphs(around: Any) -> None:
    value = around(lambda q: np.sum(qp(np.eye(2), q, G=np.eye(2), h=np.array([0.5, 5.0])).x ** 2))
    for transformed in (wg.grad(value), wg.jit(wg.grad(value))):
        np.testing.assert_allclose(transformed(-np.ones(2)), [0.0, -2.0], atol=1e-9)


@together(
    "program, text",
    [
        ((np.eye(2), np.zeros(2), np.ones((2, 2)), np.array([1.0, 2.0])), "infeasible constraints"),
        ((np.eye(1), np.zeros(1), None, None, np.array([[1.0], [-1.0]]), -np.ones(2)), "infeasible constraints"),
        ((np.eye(1), np.zeros(1), None, None, np.ones((1, 1)), np.array([np.inf])), "NaN or infinity"),
        ((np.zeros((1, 1)), np.ones(1), None, None, np.ones((1, 1)), np.ones(1)), "falls for ever"),
        ((-np.eye(2), np.zeros(2), None, None, np.eye(2), np.ones(2)), "P with an eigenvalue of -1 times its largest"),
        ((np.diag([1.0, -1.0]), np.ones(2), np.array([[1.0, 0.0]]), np.ones(1)), "P with an eigenvalue of -1 times"),
    ],
)
def test_programs_without_a_solution_are_refused(program: Any, text: str) -> None:
    with pytest.raises(NumericalError, match=text):
        qp(*program)
    saddle = np.diag([1.0, -1.0]), np.ones(2), np.array([[0.0, 1.0]]), np.ones(1)
    np.testing.assert_allclose(qp(*saddle).x, [-1.0, 1.0])  # A leaves nothing free where it falls


def test_what_is_no_solution_is_refused() -> None:
    P, q, A, b, G, h = program(3, 1, 4)
    with pytest.raises(NumericalError, match="qp: a point that is not optimal"):
        qp(P, q, A, b, G, h, solver=lambda *data: by_slsqp(*data) + 0.1)
    with pytest.raises(ShapeError, match=r"G of shape \(4, 3\); \(4, 2\) is needed beside q of shape \(2,\)"):
        qp(np.eye(2), np.zeros(2), G=G, h=h)
    with pytest.raises(
        ShapeError, match=r"q of shape \(5, 2\); \(2,\) is needed\. Reshape it, or use wengert\.vmap for "
    ):
        qp(np.eye(2), np.zeros((5, 2)))
    with pytest.raises(DtypeError, match=r"csr_array as q; .* Convert it, with \.toarray\(\)\.$"):
        qp(np.eye(2), sparse.eye_array(2, format="csr"))
    with pytest.raises(UsageError, match="A and b are needed together"):
        qp(P, q, A=A)
    with pytest.raises(ShapeError, match=r"a solver that returned shape \(2,\)"):
        qp(P, q, solver=lambda *data: np.zeros(2))
    twice, along = np.array([[1.0, 0.0, 0.0]] * 2), lambda b: qp(np.eye(3), np.zeros(3), twice, b).x[0]
    with pytest.warns(UserWarning, match=r"^qp: rows \[1\] of A follow from others that are active; derivatives, and"):
        np.testing.assert_allclose(wg.grad(along)(np.ones(2)), [1.0, 0.0])
    with pytest.raises(NumericalError, match=r"singular .* \(0, 1\) free"):
        wg.grad(lambda q: qp(np.diag([1.0, 0.0]), q).x[0])(np.zeros(2))


def test_solvers_by_name_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"the package qpsolvers is not installed; .* Run pip install qpsolvers\[osqp\]"
    ):
        qp(np.eye(2), np.zeros(2), solver="osqp")


def test_osqp_is_told_to_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, float] = {}

    def solve_qp(P: Any, q: Any, *rest: Any, solver: str, **options: float) -> Any:
        told.update(options)
        return -q

    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "qpsolvers", SimpleNamespace(solve_qp=solve_qp))
    np.testing.assert_allclose(qp(np.eye(2), np.ones(2), solver="osqp").x, -np.ones(2))
    assert max(told["eps_abs"], told["eps_rel"]) <= 1e-9


def test_gradients_in_graphs_are_one_native_program_with_one_factorisation() -> None:
    n = 96  # constants of this size are told apart by their place in memory
    G, h = RNG.normal(size=(n, n)), RNG.uniform(0.1, 1.0, n)
    P = np.eye(n) + np.diag(np.full(n - 1, 0.1), 1)
    loss = lambda q: np.sum(np.sin(qp(P, q, G=G, h=h).x))
    for loops, transform in ((1, wg.grad), (2, lambda f: wg.vmap(wg.grad(f)))):
        q = RNG.normal(size=(3, n)) if loops == 2 else RNG.normal(size=n)
        kernels = str(wg.jit(transform(loss)).lower(q).kernels)
        assert "NumPy" not in kernels
        assert kernels.count("lu_factor") == 1
        assert sum(line.lstrip().startswith("loop rounds") for line in kernels.splitlines()) == loops


def test_sparse_programs_are_those_in_full_with_derivatives_on_their_patterns() -> None:
    random = np.random.default_rng(0)
    n, m, p = 12, 3, 20
    root = sparse.random_array((n, n), density=0.2, rng=random)
    P = sparse.csr_array(root @ root.T + sparse.eye_array(n))
    A = sparse.random_array((m, n), density=0.5, rng=random, format="csc")
    G = sparse.random_array((p, n), density=0.4, rng=random, format="coo")
    inside, q = random.normal(size=n), 3 * random.normal(size=n)
    data = P, q, A, A @ inside, G, G @ inside + random.uniform(0.1, 1.0, p) * random.integers(0, 2, p)
    full = tuple(x.toarray() if sparse.issparse(x) else x for x in data)

    def loss(*data: Any, **options: Any) -> Any:
        return sum(np.sum(np.sin(part)) for part in qp(*data, **options))

    for options in ({}, {"relax": 0.01}, {"solver": lambda P, q, *_: qp(*full).x}):
        for one, other in zip(qp(*data, **options), qp(*full, **options), strict=True):
            assert type(one) is np.ndarray
            np.testing.assert_allclose(one, other, atol=1e-10)
        found, expected = (wg.grad(loss, tuple(range(6)))(*given, **options) for given in (data, full))
        for one, other, matrix in zip(found, expected, data, strict=True):
            if sparse.issparse(matrix):
                assert (type(one), one.nnz) == (type(matrix), matrix.nnz)
                one, other = one.toarray(), other * (matrix.toarray() != 0)
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    of_q = lambda given: lambda q: loss(given[0], q, *given[2:])
    for transform in (
        wg.hessian,
        lambda f: wg.jit(wg.grad(f)),
        lambda f: lambda q: wg.vmap(wg.grad(f))(np.stack([q, -q])),
    ):
        np.testing.assert_allclose(transform(of_q(data))(q), transform(of_q(full))(q), atol=1e-8)


def test_rows_of_any_size_follow_from_others_only_where_they_do() -> None:
    for size in (1e-200, 1.0, 1e200):
        rows = size * np.array([[1.0, 0.0], [1.0, 1.0], [-2.0, 0.0]])
        for chosen, left in (([0, 1], []), ([0, 1, 2], [2])):
            for form in (np.asarray, sparse.csr_array):
                found = rows_left_out(form(rows[chosen]), np.ones(len(chosen)), np.zeros(len(chosen), bool))
                assert found == left


def test_what_is_no_sparse_program_and_constraints_that_depend_on_each_other() -> None:
    eye, q, row = sparse.eye_array(3).tocsr(), np.array([1.0, 2.0, 3.0]), sparse.csr_array(np.ones((1, 3)))
    twice = sparse.vstack([row, row]).tocsr()
    with pytest.warns(UserWarning, match=r"rows \[1\] of A follow"):
        np.testing.assert_allclose(qp(eye, q, twice, np.ones(2)).x, qp(eye, q, row, np.ones(1)).x, atol=1e-7)
    with pytest.raises(NumericalError, match=r"qp: a singular matrix .* \(0, 1\) free"):
        wg.grad(lambda q: qp(sparse.diags_array([1.0, 0.0]), q).x[0])(np.zeros(2))
    for given, text in (
        ((-eye, q), "P with a negative eigenvalue"),
        ((0 * eye, q), "falls for ever"),
        ((eye, q, None, None, sparse.vstack([row, -row]), -np.ones(2)), "infeasible"),
    ):
        with pytest.raises(NumericalError, match=text):
            qp(*given)
    indefinite = sparse.diags_array([1.0, 1.0, -1.0])  # but positive where A x = b
    assert qp(indefinite, q, sparse.csr_array([[0.0, 0.0, 1.0]]), np.ones(1)).x[2] == pytest.approx(1.0)
    with pytest.raises(UsageError, match="minimum_norm"):
        qp(eye, q, singular="minimum_norm")
    with pytest.raises(ShapeError, match="A of shape"):
        qp(eye, q, eye[:, :2], np.ones(3))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e2, 1e6])
def test_constraints_without_a_multiplier_have_the_derivatives_of_the_inside_at_every_scale(scale):
    solve = lambda h: qp(scale * np.eye(2), -scale * np.ones(2), G=np.eye(2), h=h).x
    with pytest.warns(UserWarning, match="multiplier of zero"):
        np.testing.assert_array_equal(wg.jacobian(solve)(np.ones(2)), np.zeros((2, 2)))


@pytest.mark.long
def test_the_solution_of_a_scaled_program_is_the_scaled_solution() -> None:
    G = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    data = np.diag([1.0, 2.0, 0.5]), np.array([-5.0, -0.5, 1.0]), np.ones((1, 3)), np.array([2.0]), G
    data = *data, np.array([1.0, 1.0, 3.0, 1.0])
    stored_data = (*(sp.csr_array(part) if part.ndim == 2 else part for part in data),)

    def scaled(t: Any, objective: Any, unit: Any, rows: Any, stored: bool = False) -> Any:
        """Return x and the multipliers of the program of x / unit, in the units of the program itself."""
        parts = zip(stored_data if stored else data, (0.3, -0.7, 0.2, 0.4, -0.1, 0.5), strict=True)
        P, q, A, b, G, h = (part * (1.0 + t * change) for part, change in parts)
        sides = A * rows, b * (unit * rows), G * rows, h * (unit * rows)
        found = qp(P * (objective / unit**2), q * (objective / unit), *sides)
        multipliers = np.concatenate([found.equality, found.inequality]) * rows
        return np.concatenate([found.x / unit, multipliers * (unit / objective)])

    def both(objective: Any, unit: Any, rows: Any = 1.0, stored: bool = False) -> Any:
        value = lambda t: scaled(t, objective, unit, rows, stored)
        return np.concatenate([value(0.0), wg.jacfwd(value)(0.0), wg.jacrev(value)(0.0)])

    expected, native = both(1.0, 1.0), wg.jit(both, native=True)
    assert np.sum(expected[4:8] > 0.1) == 1
    for scales in ((1e-12, 1.0), (1.0, 1e12), (1e12, 1e-12), (1.0, 1.0, 1e-170), (1.0, 1.0, 1e170)):
        for found in (both(*scales), both(*scales, stored=True), native(*scales)):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_constraints_that_nearly_follow_from_others_are_told_apart() -> None:
    G = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [1.0, 0.0]])
    for form in (np.asarray, sparse.csr_array):

        def nearest(c: float, form: Any = form) -> Any:
            return qp(form(np.eye(2)), np.array([-3.0, -0.9]), G=form(G), h=np.stack([0 * c, 0 * c, 1 + 0 * c, c])).x

        for room in (3e-6, 1e-6, 1e-8, -1e-8, -1e-6):  # of the last constraint where the two before it hold
            least = min(room, 0.0)
            np.testing.assert_allclose(nearest(1.0 + room), [1.0 + least, -least], rtol=0, atol=1e-14)
            slope = np.array([1.0, -1.0]) * (room < 0)
            np.testing.assert_allclose(wg.jacrev(nearest)(1.0 + room), slope, rtol=0, atol=1e-12)
    twice, rows = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0 + 3e-12]]), np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(UserWarning, match=r"rows \[1\] of A follow"):
        found = qp(np.eye(3), np.array([-5.0, 1.0, -9.0]), twice, twice @ np.ones(3), rows, rows @ np.ones(3)).x
    np.testing.assert_allclose(found, 1.0, atol=1e-8)
    rows = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [2.0, 1.0, 2.0], [-2.0, -2.0, -1.0], [1.999, 2.0, 0.999]])
    with pytest.warns(UserWarning, match=r"rows \[.*\] of G (follow|are active with a multiplier of zero)"):
        found = qp(sparse.eye_array(3), np.array([5.0, 4.0, -3.0]), G=sparse.csr_array(rows), h=rows @ np.ones(3)).x
    np.testing.assert_allclose(found, 1.0, atol=1e-8)
