"""Solvers of `python -m tools.fuzz_solvers`, and what they are given: each finds the x of the problem drawn there.

In full it is the minimum of |x|^2 / 2 + 0.3 sum(log cosh(B x)) - sin(a) x; linear problems have (B x)^2 / 2 in place of
log cosh(B x); bounds are the same for all unknowns.

`qp`, `lsq_linear`, `nnls`, `linprog` and `svds` call nothing of the user's that could fail: they take arrays. There
some function of the solver itself fails, as `MemoryError` and Ctrl-C let it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize as theirs
from scipy.sparse.linalg import LinearOperator, gmres

import wengert as wg
from wengert import implicit, optim
from wengert.scipy import optimize
from wengert.scipy.sparse import coo_array, linalg

__all__ = ["INJECTED", "SOLVERS", "STEPS", "slope", "vector_of"]

STEPS = 100
"""Of the iteration that is compared with: it contracts by more than a half."""
INJECTED = "slope", "cost", "product", "within", "foreign_program", "watch"
"""Functions of this module that a solver calls, one of whose calls fails."""
SCIPY = "/scipy/optimize/", "/scipy/sparse/linalg/"
INTERIOR_POINT = (
    "/wengert/implicit/quadratic_programs/interior_point.py",
    "/wengert/implicit/quadratic_programs/active_set.py",
)
"""Parts of the paths of files any function of which may fail instead."""


def slope(x: Any, a: Any, matrix: Any) -> Any:
    """Return the gradient of the objective."""
    return x + 0.3 * matrix.T @ np.tanh(matrix @ x) - np.sin(a)


def cost(x: Any, a: Any, matrix: Any) -> Any:
    """Return the objective."""
    return np.sum(x * x) / 2 + 0.3 * np.sum(np.log(np.cosh(matrix @ x))) - np.sum(np.sin(a) * x)


def product(x: Any, matrix: Any) -> Any:
    """Return the product with the matrix of the problem that is linear."""
    return x + 0.3 * matrix.T @ (matrix @ x)


LOWER, UPPER = -0.2, 0.3
EVERYWHERE, BETWEEN, ABOVE = (-np.inf, np.inf), (LOWER, UPPER), (LOWER, np.inf)


def within(x: Any) -> Any:
    """Return by how much unknowns are within their bounds."""
    return np.concatenate([x - LOWER, UPPER - x])


def watch(_: Any) -> None:
    """Look at a step."""


def foreign_program(p: Any, q: Any, *_: Any) -> Any:
    """Return the solution of the problem that is linear and bounded, by SciPy."""
    root = np.linalg.cholesky(p)
    return theirs.lsq_linear(root.T, -np.linalg.solve(root, q), BETWEEN, tol=1e-14).x


# Solvers: of what is zero, how unknowns are shaped and come back, and a count


def by_foreign_root(equations: Any, start: Any, a: Any, matrix: Any) -> Any:
    @implicit.custom_root(equations)
    def solve(a: Any, matrix: Any) -> Any:
        pack = pack_like(start)
        given = wg.tree.map(np.asarray, (a, matrix))
        return pack(theirs.root(lambda v: vector_of(equations(pack(v), *given)), vector_of(start), tol=1e-13).x)

    return solve(a, matrix)


def by_own_loop(equations: Any, start: Any, a: Any, matrix: Any) -> Any:
    def step(x: Any, a: Any, matrix: Any) -> Any:
        return wg.tree.map(lambda x, f: x - 0.7 * f, x, equations(x, a, matrix))

    @implicit.custom_fixed_point(step)
    def solve(a: Any, matrix: Any) -> Any:
        return wg.fori_loop(0, STEPS, lambda _, x: step(x, a, matrix), start)

    return solve(a, matrix)


def by_driver(driver: Callable[..., Any], fixed: bool = False, **options: Any) -> Callable[..., Any]:
    def solve(equations: Any, start: Any, a: Any, matrix: Any) -> Any:
        def function(x: Any, a: Any, matrix: Any) -> Any:
            missed = equations(x, a, matrix)
            return wg.tree.map(lambda x, f: x - 0.7 * f, x, missed) if fixed else missed

        return solution_of(driver(function, start, args=(a, matrix), **options))

    return solve


def solution_of(found: Any) -> Any:
    """Return the solution of what a driver gives, which may be the solution itself."""
    return getattr(found, "x", found)


def by_scalar(driver: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def solve(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
        found = driver(lambda x, a, matrix: slope(np.stack([x]), a, matrix)[0], args=(a, matrix), **options)
        return getattr(found, "root", found)

    return solve


def by_line_search(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    return optimize.minimize_scalar(lambda x: cost(np.stack([x]), a, matrix), (-2.0, 2.0), tol=1e-12).x


def by_fit(driver: Callable[..., Any]) -> Callable[..., Any]:
    def solve(_: Any, start: Any, a: Any, matrix: Any) -> Any:
        def model(_: Any, *x: Any) -> Any:
            return slope(np.stack(x), a, matrix)

        return driver(model, np.arange(len(a)), np.zeros(len(a)), p0=start, xtol=1e-14, ftol=1e-14)[0]

    return solve


def by_envelope(_: Any, start: Any, a: Any, matrix: Any) -> Any:
    def least(a: Any) -> Any:
        return optimize.minimize(cost, start, (a, matrix), tol=1e-10).x

    value = implicit.stationary(lambda x, a: cost(x, a, matrix), least)
    return wg.grad(lambda shift: value(a + shift))(np.zeros(a.shape)) / -np.cos(a)


def by_minimum(driver: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def solve(_: Any, start: Any, a: Any, matrix: Any) -> Any:
        def function(x: Any, a: Any, matrix: Any) -> Any:
            return cost(np.reshape(x, a.shape), a, matrix)

        return driver(function, start, args=(a, matrix), **options).x

    return solve


def by_operator(method: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def solve(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
        operator = linalg.LinearOperator(matrix.shape, lambda x: product(x, matrix))
        return method(operator, np.sin(a), **options)[0]

    return solve


def by_eigenpairs(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    n, larger = len(a), np.array([10.0, 11.0])
    operator = linalg.LinearOperator((n + 2, n + 2), lambda x: np.concatenate([product(x[:n], matrix), larger * x[n:]]))
    values, vectors = linalg.eigsh(operator, n, which="SA", v0=np.cos(np.arange(n + 2.0)))
    return vectors[:n] @ ((np.sin(a) @ vectors[:n]) / values)


def by_square_eigenpairs(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    n, larger = len(a), np.array([10.0, 11.0, 12.0])
    operator = linalg.LinearOperator((n + 3, n + 3), lambda x: np.concatenate([product(x[:n], matrix), larger * x[n:]]))
    values, vectors = linalg.eigs(operator, n, which="SR", v0=np.cos(np.arange(n + 3.0)))
    return (vectors[:n] @ ((np.sin(a) @ np.conj(vectors[:n])) / values)).real


def by_singular_values(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    n = len(a)
    rows, columns = np.indices((n, n)).reshape(2, -1)
    smaller, places = np.array([0.1, 0.2]), np.arange(n, n + 2)
    data = np.concatenate([np.reshape(np.eye(n) + 0.3 * matrix.T @ matrix, (-1,)), smaller])
    pair = np.concatenate([rows, places]), np.concatenate([columns, places])
    u, s, vh = linalg.svds(coo_array((data, pair), shape=(n + 2, n + 2)), n, v0=np.cos(np.arange(n + 2.0)))
    return vh[:, :n].T @ ((np.sin(a) @ u[:n]) / s)


def by_linear_program(**options: Any) -> Callable[..., Any]:
    def solve(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
        rows = np.eye(len(a)) + 0.3 * matrix.T @ matrix
        given = {"A_eq": rows, "b_eq": np.sin(a), "bounds": (None, None), **options}
        return optimize.linprog(np.zeros(len(a)), **given).x

    return solve


def as_fit(a: Any, matrix: Any) -> tuple[Any, Any]:
    """Return the matrix and the right-hand side of the problem that is linear as least squares."""
    root = np.linalg.cholesky(np.eye(len(a)) + 0.3 * matrix.T @ matrix)
    return root.T, np.linalg.solve(root, np.sin(a))


def by_linear_fit(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    return optimize.lsq_linear(*as_fit(a, matrix), BETWEEN, tol=1e-14).x


def by_nonnegative_fit(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    factor, right = as_fit(a, matrix)
    return LOWER + optimize.nnls(factor, right - factor @ np.full(len(a), LOWER))[0]


def by_products(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        return gmres(LinearOperator((b.size, b.size), matvec, dtype=b.dtype), b, rtol=1e-13, restart=b.size)[0]

    return implicit.linear_solve(lambda x: product(x, matrix), np.sin(a), solve)


def by_program(solver: Callable[..., Any] | None = None) -> Callable[..., Any]:
    def solve(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
        n = len(a)
        limits = np.concatenate([np.full(n, -LOWER), np.full(n, UPPER)])
        p = np.eye(n) + 0.3 * matrix.T @ matrix
        return implicit.qp(p, -np.sin(a), G=np.concatenate([-np.eye(n), np.eye(n)]), h=limits, solver=solver).x

    return solve


def by_complementarity(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    return implicit.complementarity(lambda x: slope(x, a, matrix), LOWER, np.full(len(a), UPPER))


class Solver(NamedTuple):
    """Hold a solver.

    Attributes:
        solve: calls it.
        linear: whether its problem is.
        limits: of all unknowns.
        shaped: whether unknowns may have any shape.
        most: how many there are at most.
        inside: parts of the paths of files any function of which may fail; without them those of `INJECTED` do.
    """

    solve: Callable[..., Any]
    linear: bool = False
    limits: tuple[float, float] = EVERYWHERE
    shaped: bool = True
    most: int = 4
    inside: tuple[str, ...] = ()


TIGHT = {"rtol": 1e-13}
TIGHT_FIT: dict[str, Any] = {"atol": 1e-14, "btol": 1e-14, "conlim": 0.0}
TIGHT_RESIDUALS: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
SOLVERS = {
    "custom_root": Solver(by_foreign_root),
    "custom_fixed_point": Solver(by_own_loop),
    "optim.root newton": Solver(by_driver(optim.root, method="newton", tol=1e-12)),
    "optim.root hybr": Solver(by_driver(optim.root, tol=1e-13)),
    "optim.fixed_point": Solver(by_driver(optim.fixed_point, True, tol=1e-13)),
    "optim.anderson": Solver(by_driver(optim.anderson, True, tol=1e-12)),
    "scipy root": Solver(by_driver(optimize.root, tol=1e-13), shaped=False),
    "scipy minimize": Solver(by_minimum(optimize.minimize, method="BFGS", tol=1e-10), shaped=False),
    "scipy bounds": Solver(
        by_minimum(optimize.minimize, method="L-BFGS-B", bounds=theirs.Bounds(*BETWEEN), tol=1e-15),
        limits=BETWEEN,
        shaped=False,
    ),
    "scipy constraints": Solver(
        by_minimum(optimize.minimize, method="SLSQP", constraints={"type": "ineq", "fun": within}, tol=1e-14),
        limits=BETWEEN,
        shaped=False,
    ),
    "scipy trust-constr": Solver(
        by_minimum(optimize.minimize, method="trust-constr", tol=1e-12),
        shaped=False,
    ),
    "optim.minimize": Solver(by_minimum(optim.minimize, tol=1e-10), shaped=False),
    "optim constraints": Solver(
        by_minimum(optim.minimize, method="SLSQP", constraints=[optim.constraint(within, 0.0, np.inf)], tol=1e-14),
        limits=BETWEEN,
        shaped=False,
    ),
    "scipy least_squares": Solver(by_driver(optimize.least_squares, **TIGHT_RESIDUALS), shaped=False),
    "optim.least_squares": Solver(by_driver(optim.least_squares, **TIGHT_RESIDUALS)),
    "scipy fixed_point": Solver(by_driver(optimize.fixed_point, True, xtol=1e-13), shaped=False),
    "scipy curve_fit": Solver(by_fit(optimize.curve_fit), shaped=False),
    "optim.curve_fit": Solver(by_fit(optim.curve_fit), shaped=False),
    "scipy root_scalar": Solver(by_scalar(optimize.root_scalar, bracket=(-3.0, 4.0)), shaped=False, most=1),
    "optim.root_scalar": Solver(by_scalar(optim.root_scalar, bracket=(-3.0, 4.0)), shaped=False, most=1),
    "optim.root_scalar secant": Solver(
        by_scalar(optim.root_scalar, method="secant", x0=0.0, x1=0.1), shaped=False, most=1
    ),
    "scipy minimize_scalar": Solver(by_line_search, shaped=False, most=1),
    "stationary": Solver(by_envelope, shaped=False),
    "linear_solve": Solver(by_products, linear=True, shaped=False),
    **{
        name: Solver(by_operator(getattr(linalg, name), **TIGHT), linear=True, shaped=False)
        for name in ("cg", "gmres", "bicgstab", "minres")
    },
    **{
        name: Solver(by_operator(getattr(linalg, name), **TIGHT_FIT), linear=True, shaped=False)
        for name in ("lsqr", "lsmr")
    },
    "eigsh": Solver(by_eigenpairs, linear=True, shaped=False),
    "eigs": Solver(by_square_eigenpairs, linear=True, shaped=False),
    "svds": Solver(by_singular_values, linear=True, shaped=False, inside=SCIPY),
    "linprog": Solver(by_linear_program(), linear=True, shaped=False, inside=SCIPY),
    "linprog callback": Solver(by_linear_program(method="revised simplex", callback=watch), linear=True, shaped=False),
    "lsq_linear": Solver(by_linear_fit, linear=True, limits=BETWEEN, shaped=False, inside=SCIPY),
    "nnls": Solver(by_nonnegative_fit, linear=True, limits=ABOVE, shaped=False, inside=SCIPY),
    "qp": Solver(by_program(), linear=True, limits=BETWEEN, shaped=False, inside=INTERIOR_POINT),
    "qp by a solver": Solver(by_program(foreign_program), linear=True, limits=BETWEEN, shaped=False),
    "complementarity": Solver(by_complementarity, limits=BETWEEN, shaped=False),
}


def pack_like(like: Any) -> Callable[[Any], Any]:
    """Return what makes the containers of an example of a vector."""
    leaves, structure = wg.tree.leaves(like), wg.tree.structure(like)
    ends = np.cumsum([np.size(x) for x in leaves])[:-1]
    return lambda v: structure.unflatten(
        [np.reshape(part, np.shape(x)) for part, x in zip(np.split(v, ends), leaves, strict=True)]
    )


def vector_of(x: Any) -> Any:
    """Return unknowns of a shape as a vector."""
    return np.concatenate([np.reshape(part, (-1,)) for part in wg.tree.leaves(x)])
