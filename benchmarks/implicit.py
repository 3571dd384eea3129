"""Implicit derivatives: gradients of roots beside their parts, adjoints beside forward solves, rules in loops.

Most are compared with another way to compute: "wengert-parts" are a Jacobian, a system and a product with the
transpose, compiled and called one after the other, beside Newton's method that product alone; "wengert-forward" is the
solve alone; "wengert-written" is a loop without the rule. Every library has one thread, and processor time is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import quadratic_programs
from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

SIZES = (10, 100, 1_000)
UNKNOWN_NUMBERS = 1_000_000
"""Of systems that are solved without a matrix."""
ROUNDS = 1_000
"""Of a loop with a rule."""


def weights(size: int) -> np.ndarray[Any, Any]:
    """Return the matrix of a network that is in equilibrium."""
    found: np.ndarray[Any, Any] = np.random.default_rng(0).normal(size=(size, size))
    found /= 2 * np.sqrt(size)
    return found


def equations_of(kind: str, matrix: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the decorator of solvers of a root, a fixed point or a minimum, and what is zero there."""
    import wengert as wg
    from wengert import implicit

    def residual(x: Any, a: Any) -> Any:
        return x + np.tanh(matrix @ x) - a

    def step(x: Any, a: Any) -> Any:
        return a - np.tanh(matrix @ x)

    def cost(x: Any, a: Any) -> Any:
        return np.sum(np.log(np.cosh(matrix @ x))) + np.sum((x - a) ** 2) / 2

    if kind == "fixed point":
        return implicit.custom_fixed_point(step), lambda x, a: step(x, a) - x
    slope = residual if kind == "root" else wg.grad(cost)
    return implicit.custom_root(slope), slope


def gradient_beyond(library: str, kind: str, size: int) -> Callable[[], Any] | None:
    """Return what computes the gradient at a solution that is known: as one function, or part by part."""
    import wengert as wg

    matrix, x = weights(size), np.linspace(-1.0, 1.0, size)
    a = x + (matrix.T @ np.tanh(matrix @ x) if kind == "minimum" else np.tanh(matrix @ x))
    attach, residual = equations_of(kind, matrix)

    if library == "wengert":

        def total(a: Any, x: Any) -> Any:
            return np.sum(np.sin(attach(lambda _: x)(a)))

        gradient: Any = wg.jit(wg.grad(total), native=True)
        return lambda: gradient(a, x)
    if library == "wengert-parts":
        jacobian: Any = wg.jit(lambda x, a: wg.jacfwd(residual)(x, a), native=True)
        solve: Any = wg.jit(lambda j, ct: np.linalg.solve(j.T, ct), native=True)
        pull: Any = wg.jit(lambda x, a, ct: wg.vjp(lambda a: residual(x, a), a)[1](ct)[0], native=True)
        return lambda: pull(x, a, solve(jacobian(x, a), np.cos(x)))
    return None


def gradient_beyond_newton(library: str, size: int) -> Program | None:
    """Return what a gradient through Newton's method takes beyond it, or a product with both transposed Jacobians."""
    import wengert as wg
    from wengert import optim

    matrix, x = weights(size), np.linspace(-1.0, 1.0, size)
    a, start = x + np.tanh(matrix @ x), np.zeros(size)

    def residual(x: Any, a: Any) -> Any:
        return x + np.tanh(matrix @ x) - a

    if library == "wengert":

        def total(a: Any) -> Any:
            return np.sum(np.sin(optim.root(residual, start, (a,), method="newton").x))

        both: Any = wg.jit(wg.value_and_grad(total), native=True)
        value: Any = wg.jit(total, native=True)
        return quadratic_programs.difference(lambda: both(a), lambda: value(a))
    if library == "wengert-parts":
        pull: Any = wg.jit(lambda x, a, ct: wg.vjp(residual, x, a)[1](ct), native=True)
        return timed(lambda: pull(x, a, np.cos(x)), time.process_time)
    return None


def system(method: str) -> Callable[[Any], Callable[[Any], Any]]:
    """Return products with a matrix of three diagonals, symmetric for "cg"."""
    left, right = (1.0, 1.0) if method == "cg" else (0.8, 1.2)

    def of(k: Any) -> Callable[[Any], Any]:
        def matvec(x: Any) -> Any:
            wide = np.pad(x, 1)
            return 0.5 * x + k * (2 * x - right * wide[2:] - left * wide[:-2])

        return matvec

    return of


def iterative_solve(method: str) -> Callable[[Any, Any], Any]:
    """Return a solver of SciPy's, as `linear_solve` takes it."""
    from scipy.sparse import linalg

    def solve(matvec: Any, b: Any) -> Any:
        operator = linalg.LinearOperator((b.size, b.size), matvec, dtype=b.dtype)
        return getattr(linalg, method)(operator, b, rtol=1e-9)[0]

    return solve


def adjoint(library: str, method: str) -> Program | None:
    """Return what solves a system and then its adjoint, of which that alone is measured; or the system."""
    import wengert as wg
    from wengert import implicit

    products, solve = system(method), iterative_solve(method)
    b = np.random.default_rng(0).normal(size=UNKNOWN_NUMBERS)

    def solution(k: Any, b: Any) -> Any:
        return implicit.linear_solve(products(k), b, solve, symmetric=method == "cg")

    if library == "wengert-forward":
        return timed(lambda: solution(1.0, b), time.process_time)
    if library != "wengert":
        return None

    def run() -> dict[str, float]:
        found, pullback = wg.vjp(solution, 1.0, b)
        start = time.process_time()
        pullback(found)
        return {"": time.process_time() - start}

    return run


def grid_laplacian(points: int) -> Any:
    """Return the sparse matrix of an implicit step of diffusion on a square of so many points a side."""
    from scipy import sparse

    ones = np.ones(points)
    line = sparse.diags_array([2.0 * ones, -ones[1:], -ones[1:]], offsets=[0, 1, -1])
    same = sparse.eye_array(points)
    return (sparse.kron(line, same) + sparse.kron(same, line) + 0.1 * sparse.eye_array(points**2)).tocsr()


def sparse_adjoint(library: str) -> Program | None:
    """Return the same of a sparse matrix on a grid by conjugate gradients, by its elements and the right-hand side.

    The forward solve has the right-hand side of the adjoint, for which it takes as many iterations.
    """
    from scipy.sparse import linalg as theirs

    import wengert as wg
    from wengert.scipy.sparse import linalg

    matrix, limits = grid_laplacian(int(UNKNOWN_NUMBERS**0.5)), {"rtol": 1e-9}
    b = np.random.default_rng(0).normal(size=UNKNOWN_NUMBERS)
    if library == "wengert-forward":
        right = theirs.cg(matrix, b, **limits)[0]
        return timed(lambda: theirs.cg(matrix, right, **limits), time.process_time)
    if library != "wengert":
        return None

    def run() -> dict[str, float]:
        found, pullback = wg.vjp(lambda a, b: linalg.cg(a, b, **limits)[0], matrix, b)
        start = time.process_time()
        pullback(found)
        return {"": time.process_time() - start}

    return run


def least_squares_adjoint(library: str, method: str) -> Program | None:
    """Return the same of least squares of a sparse matrix, by its elements and the right-hand side."""
    from scipy import sparse

    import wengert as wg
    from wengert.scipy.sparse import linalg

    n, random = UNKNOWN_NUMBERS, np.random.default_rng(0)
    slopes = sparse.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, 1])
    matrix = sparse.vstack([sparse.diags_array(random.uniform(0.1, 1.0, n)), slopes], format="csr")
    b, limits = random.normal(size=2 * n), {"atol": 1e-9, "btol": 1e-9}
    if library == "wengert-forward":
        return timed(lambda: getattr(sparse.linalg, method)(matrix, b, **limits), time.process_time)
    if library != "wengert":
        return None

    def run() -> dict[str, float]:
        found, pullback = wg.vjp(lambda a, b: getattr(linalg, method)(a, b, **limits)[0], matrix, b)
        start = time.process_time()
        pullback(found)
        return {"": time.process_time() - start}

    return run


def loop_with_rule(library: str) -> Callable[[], Any] | None:
    """Return a compiled loop of a function with a reverse rule, or of the same without one."""
    import wengert as wg

    def plain(x: Any) -> Any:
        return np.sin(x) * x

    function: Any = plain
    if library == "wengert":
        function = wg.custom_rule(plain)
        function.defvjp(lambda x: (plain(x), x), lambda x, ct: (ct * (np.cos(x) * x + np.sin(x)),))
    elif library != "wengert-written":
        return None

    def loop(x: Any) -> Any:
        return wg.scan(lambda y, _: (function(y) * 0.5 + x * 0.1, None), x, None, length=ROUNDS)[0]

    gradient: Any = wg.jit(wg.value_and_grad(lambda x: np.sum(loop(x))), native=True)
    return lambda: gradient(np.linspace(0.1, 1.0, 10))


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""
    for kind in ("root", "fixed point", "minimum"):
        for size in SIZES:
            name = f"gradient beyond a {kind} of {size} numbers"
            yield case_of(name, partial(gradient_beyond, kind=kind, size=size))
    for size in SIZES:
        yield Case(f"gradient beyond Newton's method, {size} equations", 1, partial(gradient_beyond_newton, size=size))
    for method in ("cg", "gmres"):
        name = f"adjoint of {method}, {UNKNOWN_NUMBERS} unknown numbers"
        yield Case(name, 1, partial(adjoint, method=method))
    yield Case(f"adjoint of cg of a sparse matrix, {UNKNOWN_NUMBERS} unknown numbers", 1, sparse_adjoint)
    for method in ("lsqr", "lsmr"):
        name = f"adjoint of {method}, {UNKNOWN_NUMBERS} unknown numbers"
        yield Case(name, 1, partial(least_squares_adjoint, method=method))
    yield case_of(f"loop of {ROUNDS} rounds with a rule, and its gradient", loop_with_rule)
    yield from quadratic_programs.cases()


def case_of(name: str, maker: Callable[[str], Callable[[], Any] | None]) -> Case:
    """Return the case of what is called."""

    def make(library: str) -> Program | None:
        run = maker(library)
        return None if run is None else timed(run, time.process_time)

    return Case(name, 1, make)
