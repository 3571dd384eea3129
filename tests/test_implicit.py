"""Tests of `wengert.implicit`: derivatives of what solvers find, in every mode, and what is said of bad luck."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import linalg, optimize, sparse
from scipy.sparse.linalg import LinearOperator, cg, gmres, spsolve

import wengert as wg
from tests.cases import together
from wengert.control import subgraphs
from wengert.control.loop import LoopPrimitive
from wengert.core.values.dispatch import apply
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.implicit import (
    attaching,
    custom_fixed_point,
    custom_root,
    factored,
    linear_solve,
    solution,
    stationary,
    systems,
)
from wengert.implicit.newton_iteration import LastStep
from wengert.passes.pipeline import flatten_calls
from wengert.scipy.sparse import linalg as iterative

CALLS: list[str] = []
Z = np.array([0.7, 1.3, 2.0, 3.0])
"""Two parameters and two right-hand sides."""


def equations(x: Any, p: Any, b: Any) -> Any:
    return {"u": x["u"] ** 3 + p["a"] * x["v"] - b, "v": x["v"] - np.tanh(x["u"]) * p["c"]}


def newton(p: Any, b: Any, u: Any) -> Any:
    v = np.tanh(u) * p["c"]
    return (u**3 + p["a"] * v - b) / (3 * u * u + p["a"] * p["c"] * (1 - np.tanh(u) ** 2))


@custom_root(equations)
def by_scipy(p: Any, b: Any) -> Any:
    """Solve as a program that knows nothing of Tensors."""
    CALLS.append("scipy")
    a, c = float(p["a"]), float(p["c"])
    assert type(b) is np.ndarray

    def residual(z: Any) -> Any:
        u, v = z.reshape(2, -1)
        return np.concatenate([u**3 + a * v - b, v - np.tanh(u) * c])

    found = optimize.root(residual, np.ones(2 * b.size), tol=1e-13).x
    return {"u": found[: b.size], "v": found[b.size :]}


@custom_root(equations)
def by_loop(p: Any, b: Any) -> Any:
    """Solve in NumPy, and count the calls, which a graph could not."""
    CALLS.append("loop")
    return by_traced_loop.solver(p, b)


@custom_root(equations)
def by_traced_loop(p: Any, b: Any) -> Any:
    """Solve by what can be traced."""
    u, error = np.ones_like(b), 1.0
    while error > 1e-13:
        step = newton(p, b, u)
        u = u - step
        error = np.max(np.abs(step))
    return {"u": u, "v": np.tanh(u) * p["c"]}


def unrolled(p: Any, b: Any) -> Any:
    u = np.ones_like(b)
    for _ in range(9):
        u = u - newton(p, b, u)
    return {"u": u, "v": np.tanh(u) * p["c"]}


def loss_of(solver: Any) -> Any:
    def loss(z: Any) -> Any:
        x = solver({"a": z[0], "c": z[1]}, z[2:])
        return np.sum(x["u"] ** 2 * np.array([1.0, 2.0]) + x["v"])

    return loss


def lanes(z: Any) -> Any:
    return np.stack([z, 1.1 * z, 1.2 * z])


MODES: dict[str, tuple[Any, int]] = {
    "value": (lambda f: f, 1),
    "grad": (wg.grad, 1),
    "value_and_grad": (wg.value_and_grad, 1),
    "jvp": (lambda f: lambda z: wg.jvp(f, (z,), (np.ones(4),)), 1),
    "vjp": (lambda f: lambda z: wg.vjp(f, z)[1](2.0), 1),
    "linearize": (lambda f: lambda z: wg.linearize(f, z)[1](np.ones(4)), 1),
    "hessian": (wg.hessian, 1),
    "forward twice": (lambda f: wg.jacfwd(wg.jacfwd(f)), 1),
    "reverse twice": (lambda f: wg.jacrev(wg.jacrev(f)), 1),
    "hvp": (lambda f: lambda z: wg.hvp(f, (z,), (np.ones(4),)), 1),
    "third": (lambda f: lambda z: wg.jvp(wg.hessian(f), (z,), (np.ones(4),))[1], 1),
    "third in reverse": (lambda f: wg.grad(lambda z: np.sum(wg.hessian(f)(z) ** 2)), 1),
    "taylor": (lambda f: lambda z: wg.taylor(f, (z,), (np.ones(4),), 3), 1),
    "vmap": (lambda f: lambda z: wg.vmap(f)(lanes(z)), 3),
    "grad in lanes": (lambda f: lambda z: wg.vmap(wg.grad(f))(lanes(z)), 3),
    "lanes in grad": (lambda f: wg.grad(lambda z: np.sum(wg.vmap(f)(lanes(z)))), 3),
    "hessian in lanes": (lambda f: lambda z: wg.vmap(wg.hessian(f))(lanes(z)), 3),
    "lanes of lanes": (lambda f: lambda z: wg.vmap(wg.vmap(wg.grad(f)))(np.stack([lanes(z), lanes(2 * z)])), 6),
}


@together("mode", list(MODES))
def test_each_mode_solves_once_and_agrees_with_the_derivatives_of_all_steps(mode: str) -> None:
    transform, solves = MODES[mode]
    expected = wg.tree.leaves(transform(loss_of(unrolled))(Z))
    for solver in (by_scipy, by_loop):
        solver.notes.refuses_lanes = True  # known from the first call on
        CALLS.clear()
        found = wg.tree.leaves(transform(loss_of(solver))(Z))
        assert len(CALLS) == solves
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.long
@together("mode", ["grad", "jvp", "hessian", "third", "grad in lanes", "lanes in grad"])
def test_jitted_functions_call_once_what_cannot_be_traced(mode: str) -> None:
    transform, solves = MODES[mode]
    expected = wg.tree.leaves(transform(loss_of(unrolled))(1.05 * Z))
    for solver in (by_scipy, by_traced_loop):
        for jitted in (wg.jit(transform(loss_of(solver))), transform(wg.jit(loss_of(solver)))):
            jitted(Z)
            CALLS.clear()
            found = wg.tree.leaves(jitted(1.05 * Z))
            assert len(CALLS) == (solves if solver is by_scipy else 0)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_solvers_that_can_be_traced_are_loops_of_the_graph() -> None:
    translation = wg.jit(wg.grad(loss_of(by_traced_loop))).lower(Z)
    assert "while_loop" in str(translation.graph)
    assert "NumPy" not in str(translation.kernels)


def test_tapes_record_solutions_and_derivatives_of_their_sweeps() -> None:
    z = wg.tensor(Z, requires_grad=True)
    loss = loss_of(by_scipy)(z)
    (gradient,) = wg.autograd.grad(loss, [z], create_graph=True)
    (second,) = wg.autograd.grad(gradient.sum(), [z])
    np.testing.assert_allclose(second.numpy(), wg.hessian(loss_of(unrolled))(Z).sum(0), rtol=1e-9)
    loss_of(by_loop)(z).backward()
    np.testing.assert_allclose(z.grad.numpy(), wg.grad(loss_of(unrolled))(Z), rtol=1e-9)


def test_one_factorisation_serves_all_cotangents_tangents_and_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    factorise = systems.factorise

    def noted(matrix: Any) -> Any:
        if not np.array_equal(matrix, np.eye(len(matrix))):  # of which shapes are found
            made.append(matrix)
        return factorise(matrix)

    monkeypatch.setattr(systems, "factorise", noted)
    loss = loss_of(by_scipy)
    for derivative in (
        wg.grad(loss),
        wg.hessian(loss),
        wg.jacfwd(wg.grad(loss)),
        wg.grad(lambda z: wg.grad(loss)(z)[0]),
    ):
        made.clear()
        derivative(Z)
        assert len(made) <= 1  # none if an equal matrix is still there
    made.clear()
    pullback = wg.vjp(loss, Z)[1]
    pullback(1.0), pullback(2.0)
    assert len(made) <= 1


def test_solvers_whose_own_errors_hide_that_they_look_at_numbers_are_called_one_by_one() -> None:
    @custom_root(lambda x, a: x**3 + x - a)
    def root(a: Any) -> Any:
        return optimize.brentq(lambda x, a: x**3 + x - a, -10.0, 10.0, args=(a,))

    @custom_root(lambda x, a: x**3 + x - a)
    def hidden(a: Any) -> Any:
        try:
            return root.solver(a)
        except (RuntimeError, TypeError, ValueError):
            return 0.0 * a

    for solve in (root, hidden):
        np.testing.assert_allclose(wg.vmap(wg.grad(solve))(np.array([0.0, 2.0])), [1.0, 0.25])
        np.testing.assert_allclose(wg.jit(wg.grad(solve))(2.0), 0.25)


def test_plain_calls_are_those_of_the_solver() -> None:
    CALLS.clear()
    found = by_scipy({"a": 0.7, "c": 1.3}, Z[2:])
    assert type(found["u"]) is np.ndarray
    assert CALLS == ["scipy"]


def square_root_of_captured(a: Any) -> Any:
    """Return the root of what both functions capture."""
    solver = custom_root(lambda x, two: x**two - a)(lambda two: float(np.sqrt(float(a))))
    return solver(2.0)


def test_captured_values_are_differentiated_like_arguments() -> None:
    for derivative, expected in (
        (wg.grad(square_root_of_captured), 0.25),
        (wg.grad(wg.grad(square_root_of_captured)), -0.03125),
        (lambda a: wg.jvp(wg.grad(square_root_of_captured), (a,), (1.0,))[1], -0.03125),
        (wg.jit(wg.grad(square_root_of_captured)), 0.25),
        (lambda a: wg.vmap(wg.grad(square_root_of_captured))(np.array([a]))[0], 0.25),
    ):
        assert derivative(4.0) == pytest.approx(expected, rel=1e-12)


def test_equations_may_decide_and_have_complex_unknowns_and_any_containers() -> None:
    @custom_root(lambda z, a: z * z - a if a.real < 0 else z * z + a)
    def root(a: Any) -> Any:
        return np.sqrt(np.asarray(a if a.real < 0 else -a, complex))

    for a in (-4.0 + 0j, 4.0 + 1j):
        tangent = wg.jvp(root, (a,), (1.0 + 0j,))[1]
        assert tangent == pytest.approx((1 if a.real < 0 else -1) / (2 * root(a)), rel=1e-12)
    # not holomorphic: |z|^2 and the real part
    conjugate = custom_root(lambda z, a: (np.abs(z) ** 2 - a, z.real - 1.0))(lambda a: 1.0 + 1j * np.sqrt(a - 1.0))
    assert wg.grad(lambda a: conjugate(a).imag)(5.0) == pytest.approx(0.25, rel=1e-12)


def test_fixed_points_and_where_the_solution_stands() -> None:
    @custom_fixed_point(lambda x, a: {"x": np.cos(x["x"]) * a})
    def solve(a: Any) -> Any:
        x = np.ones(2)
        for _ in range(200):
            x = np.cos(x) * np.asarray(a)
        return {"x": x}

    a = np.array([0.3, 0.8])
    x = solve(a)["x"]
    np.testing.assert_allclose(
        wg.jacobian(lambda a: solve(a)["x"])(a), np.diag(np.cos(x) / (1 + a * np.sin(x))), rtol=1e-12, atol=1e-14
    )
    second = custom_root(lambda a, x: x**3 - a, argnums=1)(lambda a: np.cbrt(np.asarray(a)))
    np.testing.assert_allclose(wg.grad(second)(8.0), 1 / 12)


A = np.array([[4.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 5.0]])
B = np.array([1.0, 2.0, 3.0])


def by_gmres(matvec: Any, b: Any) -> Any:
    return gmres(LinearOperator((b.size, b.size), matvec, dtype=b.dtype), b, rtol=1e-13, restart=3)[0]


def solved(a: Any, b: Any) -> Any:
    return np.sum(np.sin(linear_solve(lambda x: a @ x, b, by_gmres)))


def solved_by_captured(a: Any, b: Any) -> Any:
    solve, other = (lambda _, b: np.linalg.solve(a, b)), (lambda _, b: np.linalg.solve(a.T, b))
    return np.sum(np.sin(linear_solve(lambda x: a @ x, b, solve, other)))


@together("mode", ["value", "grad", "jvp", "hessian", "forward twice", "vmap", "grad in lanes", "jit"])
def test_linear_solves_agree_with_those_of_numpy(mode: str) -> None:
    def of(solve: Any) -> Any:
        return lambda z: solve(A * z[:3, None] + np.outer(z[1:], z[:3]), B * z[3])

    transform = wg.jit if mode == "jit" else MODES[mode][0]
    if mode == "jit":
        transform = lambda f: wg.jit(wg.grad(f))
    expected = transform(of(lambda a, b: np.sum(np.sin(np.linalg.solve(a, b)))))(Z)
    for solve in (solved, solved_by_captured):
        found = transform(of(solve))(Z)
        for one, other in zip(wg.tree.leaves(found), wg.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_factors_need_a_solver_of_the_transpose() -> None:
    factors = linalg.lu_factor(A)

    def loss(b: Any, transpose_solve: Any) -> Any:
        solve = lambda _matvec, b: linalg.lu_solve(factors, b)
        return np.sum(linear_solve(lambda x: A @ x, b, solve, transpose_solve) ** 2)

    right = wg.grad(loss)(B, lambda _matvec, b: linalg.lu_solve(factors, b, trans=1))
    np.testing.assert_allclose(right, wg.grad(lambda b: np.sum(np.linalg.solve(A, b) ** 2))(B), rtol=1e-12)
    with pytest.raises(NumericalError, match=r"linear_solve: a linear system of which .* remains; at most 1e-06"):
        wg.grad(loss)(B, None)


def test_where_factors_of_few_elements_take_less_time_systems_have_these() -> None:
    def gradient(x: Any, linear_solver: str, reach: Any, singular: str = "raise") -> Any:
        solve = custom_root(lambda x, a: x + x**3 + 0.1 * reach(x) - a, linear_solver=linear_solver, singular=singular)
        return wg.jit(wg.grad(lambda a: np.sum(np.sin(solve(lambda a: x)(a)))))

    def is_sparse(size: int, reach: Any, **options: Any) -> bool:
        x = np.linspace(-1.0, 1.0, size)
        a = x + x**3 + 0.1 * reach(x)
        found, dense = (gradient(x, way, reach, **options) for way in ("auto", "dense"))
        np.testing.assert_allclose(found(a), dense(a), rtol=1e-12, atol=1e-14)
        return "sparse_solve" in str(found.lower(a).graph)

    beside, everywhere, some = np.flip, lambda x: np.mean(x) * x, np.random.default_rng(0).integers(0, 256, (3, 256))
    assert is_sparse(256, beside)
    assert not is_sparse(100, beside)
    assert not is_sparse(256, everywhere)
    assert not is_sparse(256, lambda x: x[some[0]] * x[some[1]] + x[some[2]])  # factors would be full
    assert not is_sparse(256, beside, singular="minimum_norm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attaching, "DENSE", 200)  # beyond which it would be GMRES
        assert is_sparse(255, beside)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attaching, "length_of_factors", Mock(side_effect=AssertionError))
        assert not is_sparse(256, everywhere)  # which is known


def by_cg(matvec: Any, b: Any) -> Any:
    return cg(LinearOperator((b.size, b.size), matvec, dtype=b.dtype), b, rtol=1e-12)[0]


@together("method", ["cg", "minres", "gmres", "lsmr", "sparse"])
def test_methods_without_a_matrix_and_sparse_factors_agree_with_dense_ones(method: str) -> None:
    stiffness = np.diag(np.arange(2.0, 8.0)) + (np.eye(6, k=5) if method == "sparse" else 0.3)

    def of(linear_solver: str) -> Any:
        @custom_root(lambda x, a: x**3 + stiffness @ x - a * a, linear_solver=linear_solver)
        def solve(a: Any) -> Any:
            return optimize.root(lambda x: x**3 + stiffness @ x - a * a, np.ones(6), tol=1e-13).x

        return lambda a: np.sum(np.cos(solve(a)))

    a = np.linspace(0.5, 1.5, 6)
    for transform in (wg.grad, wg.hessian, lambda f: lambda a: wg.vmap(wg.grad(f))(np.stack([a, 2 * a]))):
        np.testing.assert_allclose(transform(of(method))(a), transform(of("dense"))(a), rtol=1e-7, atol=1e-9)


CHAIN = sparse.diags_array([np.arange(3.0, 11.0), -np.ones(7), -np.ones(7)], offsets=[0, 1, -1], format="csr")
FOUND: dict[str, Any] = {
    "custom_root": custom_root(lambda x, a: CHAIN @ x - a, linear_solver="cg")(lambda a: spsolve(CHAIN, np.asarray(a))),
    "linear_solve": lambda a: linear_solve(lambda x: CHAIN @ x, a, by_cg, symmetric=True),
    "operator": lambda a: iterative.cg(iterative.LinearOperator((8, 8), lambda x: CHAIN @ x), a, rtol=1e-12)[0],
    "bicgstab": lambda a: iterative.bicgstab(CHAIN, a, rtol=1e-12)[0],
    "lsqr": lambda a: iterative.lsqr(CHAIN, a, atol=1e-13, btol=1e-13)[0],
    "vectors": lambda a: iterative.eigsh(CHAIN * a[0], k=2, v0=np.ones(8))[1][:, 0] * a,
}


@together("name", FOUND)
def test_cotangents_of_any_size_are_solved_for(name: str) -> None:
    a, function = np.linspace(1.0, 2.0, 8), lambda a: FOUND[name](a) @ np.arange(8.0)
    expected = wg.grad(function)(a)
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(
            wg.grad(lambda a, size: size * function(a))(a, size) / size, expected, rtol=1e-9, atol=1e-9
        )
        tangent = wg.jvp(function, (a,), (np.full(8, size),))[1] / size
        np.testing.assert_allclose(tangent, np.sum(expected), rtol=1e-9)


def test_optimal_values_need_no_system_at_first_order() -> None:
    def cost(x: Any, a: Any) -> Any:
        return np.sum(x**4 / 4 - a * x)

    a = np.array([1.0, 8.0])
    least = stationary(cost, lambda a: np.cbrt(np.asarray(a)))
    np.testing.assert_allclose(wg.grad(least)(a), [-1.0, -2.0])
    np.testing.assert_allclose(wg.hessian(least)(a), np.diag([-1 / 3, -1 / 12]), atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.hessian(least))(a), np.diag([-1 / 3, -1 / 12]), atol=1e-12)
    flat = stationary(lambda x, a: a * (x - 1.0) ** 4, lambda a: 1.0)  # no derivative of the optimum exists
    assert wg.grad(flat)(2.0) == 0.0
    assert wg.grad(wg.grad(flat))(2.0) == 0.0  # a zero times what is not known


def test_points_that_solve_nothing_have_values_and_no_derivatives() -> None:
    solve = custom_root(lambda x, a: 1e9 * (x * x - a))(lambda a: 1.1 * np.sqrt(np.asarray(a)))
    assert solve(4.0) == 2.2
    text = (
        r"^custom_root: a solution that misses its equations by .+ of their terms; at most 1.0e-03 \(tol\) is needed "
        r"to differentiate. Let the solver go on, raise an error where it does not converge, or allow more with tol\.$"
    )
    for derivative in (
        wg.grad(solve),
        wg.jit(wg.grad(solve)),
        lambda a: wg.jvp(solve, (a,), (1.0,)),
        lambda a: wg.vmap(wg.grad(solve))(np.array([a])),
    ):
        with pytest.raises(NumericalError, match=text):
            derivative(4.0)
    loose = custom_root(lambda x, a: x * x - a, tol=0.5)(lambda a: 1.1 * np.sqrt(np.asarray(a)))
    assert wg.grad(loose)(4.0) == pytest.approx(1 / 4.4)


def test_singular_systems_name_the_direction_that_is_free() -> None:
    def of(singular: str) -> Any:
        residual = lambda x, a: np.stack([x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a])
        return custom_root(residual, singular=singular)(lambda a: np.full(2, np.asarray(a) / 2))

    text = (
        r"^custom_root: equations whose Jacobian is singular at the solution \(condition \S+\): they leave the "
        r"direction \(-?0.707, -?0.707\) free; a regular one is needed to differentiate. Add an equation that fixes "
        r"it, or pass singular='minimum_norm' for derivatives without it\.$"
    )
    for derivative in (wg.jacrev(of("raise")), wg.jit(wg.jacfwd(of("raise")))):
        with pytest.raises(NumericalError, match=text):
            derivative(2.0)
    for derivative in (wg.jacrev, wg.jacfwd, lambda f: wg.jit(wg.jacrev(f))):
        np.testing.assert_allclose(derivative(of("minimum_norm"))(2.0), [0.5, 0.5])


def test_what_has_not_converged_is_an_error() -> None:
    indefinite = np.diag([1.0, -1.0])
    solve = custom_root(lambda x, a: indefinite @ x - a, linear_solver="cg")(lambda a: np.asarray(a) / [1.0, -1.0])
    with pytest.raises(NumericalError, match=r"a linear system that cg left with a residual of \S+ after \d+ products"):
        wg.grad(lambda a: np.sum(solve(a)))(np.ones(2))


def test_failures_in_the_middle_leave_nothing_behind() -> None:
    a = wg.tensor(4.0, requires_grad=True)
    fail = True

    @custom_root(lambda x: x * x - a)
    def solve() -> Any:
        if fail:
            raise RuntimeError("the solver gave up")
        return float(a) ** 0.5

    with pytest.raises(RuntimeError, match="the solver gave up"):
        solve()
    assert a.requires_grad
    fail = False
    solve().backward()
    assert a.grad == 0.25


@together(
    "make, error, text",
    [
        (lambda: custom_root(3), DtypeError, "custom_root: "),
        (lambda: custom_root(np.sin)(3), DtypeError, "custom_root: "),
        (lambda: custom_root(np.sin, argnums=-1), UsageError, "argnums=-1"),
        (lambda: custom_root(np.sin, linear_solver="qmr"), UsageError, "'minres'"),
        (lambda: custom_root(np.sin, singular="ignore"), UsageError, "'raise' or 'minimum_norm'"),
        (lambda: custom_root(np.sin, tol=0), UsageError, "a positive, finite number"),
        (lambda: custom_root(np.sin, tol=np.inf), UsageError, "a positive, finite number"),
        (
            lambda: custom_root(np.sin, linear_solver="sparse", singular="minimum_norm"),
            UsageError,
            "'raise' is needed with sparse factors",
        ),
        (lambda: wg.grad(custom_root(lambda x, a: x)(lambda a: 3))(2.0), DtypeError, "a solution of dtype int64"),
        (lambda: wg.grad(custom_root(lambda x, a: (x, a))(lambda a: 3.0))(2.0), ShapeError, "as many equations"),
        (
            lambda: wg.grad(custom_fixed_point(lambda x, a: (x, a))(lambda a: 3.0))(2.0),
            ShapeError,
            "the same containers and shapes",
        ),
        (
            lambda: linear_solve(lambda x: x[:2], wg.tensor(B, requires_grad=True), lambda _, b: b),
            ShapeError,
            "the same containers and shapes",
        ),
    ],
)
def test_wrong_use_is_refused(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_matrices_may_be_more_precise_than_right_hand_sides() -> None:
    spring = np.array([[4.0, 1.0], [1.0, 3.0]])

    def energy(b: Any) -> Any:
        return np.sum(linear_solve(lambda x: spring @ x, b, lambda _, b: np.linalg.solve(spring, b)) ** 2)

    b, inverse = np.array([1.0, 2.0], np.float32), np.linalg.inv(spring)
    np.testing.assert_allclose(wg.grad(energy)(b), 2 * inverse @ inverse @ b, rtol=1e-6)


def test_symmetric_systems_need_one_solver() -> None:
    spring = np.array([[2.0, 1.0], [1.0, 3.0]])

    def solve(matvec: Any, b: Any) -> Any:
        return cg(LinearOperator((2, 2), matvec, dtype=float), b, rtol=1e-13)[0]

    def energy(k: Any) -> Any:
        return B[:2] @ linear_solve(lambda x: k * (spring @ x), B[:2], solve, symmetric=True)

    assert wg.grad(wg.grad(energy))(2.0) == pytest.approx(B[:2] @ np.linalg.solve(spring, B[:2]) / 4)


def test_adjoints_of_symmetric_systems_take_direct_products_and_are_checked() -> None:
    products: list[Any] = []

    def work(matrix: Any, b: Any) -> Any:
        def solve(matvec: Any, b: Any) -> Any:
            products.append(matvec(np.eye(3)[0]))
            return np.linalg.solve(np.stack([matvec(e) for e in np.eye(3)], axis=1), b)

        return B[:3] @ linear_solve(lambda x: matrix @ x, b, solve, symmetric=True)

    spring = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
    assert np.allclose(wg.grad(work, 1)(spring, B[:3]), np.linalg.solve(spring, B[:3]))
    turned = np.triu(spring)
    with pytest.raises(NumericalError, match="symmetric only where matvec is its own"):
        wg.grad(work, 1)(turned, B[:3])
    assert type(products[-1]) is np.ndarray
    assert np.allclose(products[-1], turned[:, 0])  # not its first row


@pytest.mark.parametrize("size", [3, 60])  # our own elimination, and LAPACK's
def test_graphs_factorise_once_and_leave_what_is_nearly_singular_to_python(size: int) -> None:
    random = np.random.default_rng(0)
    regular = np.eye(size) + random.normal(size=(size, size)) / (4 * size)
    left, right = np.linalg.qr(random.normal(size=(size, size)))[0], np.linalg.qr(random.normal(size=(size, size)))[0]
    singular = left @ np.diag([*np.ones(size - 1), 1e-17]) @ right.T
    b, d = left[:, 0], random.normal(size=size)

    def third(matrix: Any, b: Any) -> Any:
        solve = custom_root(lambda x, b: matrix @ x + x**3 / 100 - b)(lambda b: steps_of_newton(matrix, b))
        gradient = wg.grad(lambda b: np.sum(np.sin(solve(b))))
        change = lambda b: wg.jvp(gradient, (b,), (d,))[1]
        return gradient(b), change(b), wg.grad(lambda b: d @ change(b))(b)

    native = wg.jit(third, native=True)
    for found, expected in zip(native(regular, b), third(regular, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    names = [e.primitive.name for e in flatten_calls(native.lower(regular, b).graph).equations]
    assert names.count("jacobian_factors") == 1

    def linear(matrix: Any, b: Any) -> Any:
        solve = custom_root(lambda x, b: matrix @ x - b)(lambda b: right[:, 0])
        return wg.vjp(solve, b)[1](d)

    again = wg.jit(linear, native=True)
    np.testing.assert_allclose(again(left @ right.T, b), linear(left @ right.T, b), rtol=1e-10, atol=1e-12)
    with pytest.raises(NumericalError, match=r"singular at the solution \(condition \S+\): they leave the direction"):
        again(singular, b)
    several = np.stack([regular, regular.T])
    for found, expected in zip(
        wg.jit(wg.vmap(third, (0, None)))(several, b), zip(*[third(m, b) for m in several], strict=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    many = wg.jit(wg.vmap(linear, (0, None)), native=True)
    with pytest.raises(NumericalError, match=r"singular at the solution \(condition \S+\): they leave the direction"):
        many(np.stack([left @ right.T, singular]), b)


@pytest.mark.parametrize(("off", "wrong"), [(1e-9, 0.0), (1e-3, 0.0), (0.0, 1e-2)], ids=["near", "far", "unsolved"])
def test_factors_of_a_jacobian_nearby_serve_where_one_refinement_is_enough(off: float, wrong: float) -> None:
    matrix, ones = A / 2, np.ones(3)
    residual = lambda x, b: matrix @ x + np.tanh(x) - b
    b = residual(ones, 0.0) + wrong
    jacobian = matrix + np.diag(1 - np.tanh(ones + off) ** 2)
    packed, pivots = (np.asarray(x) for x in apply(factored.factors, jacobian.T))

    def weight(b: Any, last: Any) -> Any:
        options: Any = {"name": "test", "tol": 1e-3, "own_tol": 1e-8, "last": last}
        return np.sum(np.sin(attaching.implicit_solution(residual, ones, (b,), success=np.bool_(True), **options)))

    def derivatives(last: Any) -> Any:
        gradient = wg.grad(lambda b: weight(b, last))
        return gradient(b), wg.jvp(lambda b: weight(b, last), (b,), (ones,))[1], wg.jvp(gradient, (b,), (ones,))[1]

    full = Mock(side_effect=solution.solution_of)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solution, "solution_of", full)
        if wrong:
            with pytest.raises(NumericalError, match="misses its equations by"):
                derivatives(LastStep(packed, pivots))
            return
        found = derivatives(LastStep(packed, pivots))
        assert bool(full.call_count) == (off > 1e-6)
    for own, expected in zip(found, derivatives(None), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-13)


def steps_of_newton(matrix: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for _ in range(8):
        x = x - np.linalg.solve(matrix + np.diag(x**2) * 0.03, matrix @ x + x**3 / 100 - b)
    return x


def test_equations_may_write_to_their_arguments() -> None:
    def step(x: Any, a: Any) -> Any:
        x *= 0.5
        found = x + 0.25 * a
        a *= 3.0
        return found

    def cost(x: Any, a: Any) -> Any:
        x -= a
        found = np.sum(x**2) + np.sum(a)
        a *= 2.0
        return found

    b = np.array([1.0, 2.0])
    solve, least = custom_fixed_point(step)(lambda a: np.asarray(a) * 0.5), stationary(cost, np.asarray)
    np.testing.assert_allclose(wg.jacobian(solve)(b), 0.5 * np.eye(2))
    assert least(b) == 3.0
    np.testing.assert_allclose(wg.grad(least)(b), [1.0, 1.0])
    np.testing.assert_array_equal(b, [1.0, 2.0])


def repeated(x: Any, a: Any) -> Any:
    """Return equations with rounds that the data end, and a loop of known length."""
    y, rounds = x, 0
    while np.sum(y * y) > 1e-3:
        y, rounds = y * 0.9 + 0.01 * np.sin(y * a), rounds + 1
    return wg.scan(lambda z, _: (z + 0.1 * np.tanh(z * a), z), x, None, length=3)[0] + y - a


@custom_root(repeated)
def by_many_steps(a: Any) -> Any:
    return optimize.root(lambda x: np.asarray(repeated(x, a)), np.array([0.5, 0.8, 1.1]), tol=1e-13).x


@pytest.mark.parametrize("transform", [wg.jacrev, wg.jacfwd, lambda f: wg.hessian(lambda a: np.sum(np.sin(f(a))))])
def test_equations_with_loops_are_traced_once_however_they_are_differentiated(
    transform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = np.array([0.4, 0.7, 1.0])
    derivative = transform(by_many_steps)
    first = derivative(point)
    stage, iteration = subgraphs.stage_function, LoopPrimitive.iteration

    def staged(function: Any, avals: Any, name: str, **options: Any) -> Any:
        assert name in ("custom_root", "while", "scan"), "no gradient, tangent or lane of these"
        return stage(function, avals, name, **options)

    def of_arrays(loop: Any, given: Any, carried: Any, *rest: Any) -> Any:
        assert not any(isinstance(x, wg.Tensor) for x in carried), "rounds of traces"
        return iteration(loop, given, carried, *rest)

    monkeypatch.setattr(subgraphs, "stage_function", staged)
    monkeypatch.setattr(LoopPrimitive, "iteration", of_arrays)
    np.testing.assert_allclose(derivative(point), first, rtol=1e-12)
    monkeypatch.undo()
    np.testing.assert_allclose(wg.jit(derivative)(point), first, rtol=1e-9, atol=1e-12)


def test_series_go_through_equations_with_loops() -> None:
    point, direction = np.array([0.4, 0.7, 1.0]), np.array([1.0, -0.5, 0.3])
    series = wg.taylor(by_many_steps, (point,), (direction,), 2)
    along = lambda a: wg.jvp(by_many_steps, (a,), (direction,))[1]
    np.testing.assert_allclose(series[1], along(point), rtol=1e-9)
    np.testing.assert_allclose(2 * series[2], wg.jvp(along, (point,), (direction,))[1], rtol=1e-9)
