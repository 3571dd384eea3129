"""Implicit derivatives: gradients of roots beside their parts, adjoints beside forward solves, rules in loops.

Most are compared with another way to compute: "wengert-parts" are a Jacobian, a system and a product with the
transpose, compiled and called one after the other; "wengert-forward" is the solve alone; "wengert-written" is a loop
without the rule. Every library has one thread, and processor time is measured.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

SIZES = (10, 100, 1_000)
UNKNOWN_NUMBERS = 1_000_000
"""Of systems that are solved without a matrix."""
ROUNDS = 1_000
"""Of a loop with a rule."""
BATCH = 128
"""Quadratic programs at once."""


def weights(size: int) -> np.ndarray[Any, Any]:
    """Return the matrix of a network that is in equilibrium."""
    found: np.ndarray[Any, Any] = np.random.default_rng(0).normal(size=(size, size))
    found /= 2 * np.sqrt(size)
    return found


def gradient_of_root(library: str, size: int) -> Callable[[], Any] | None:
    """Return what computes the gradient at a root that is known: as one function, or part by part."""
    import wengert as wg
    from wengert import implicit

    matrix, x = weights(size), np.linspace(-1.0, 1.0, size)
    a = x + np.tanh(matrix @ x)

    def residual(x: Any, a: Any) -> Any:
        return x + np.tanh(matrix @ x) - a

    if library == "wengert":

        def total(a: Any, x: Any) -> Any:
            return np.sum(np.sin(implicit.custom_root(residual)(lambda _: x)(a)))

        gradient: Any = wg.jit(wg.grad(total), native=True)
        return lambda: gradient(a, x)
    if library == "wengert-parts":
        jacobian: Any = wg.jit(lambda x, a: wg.jacfwd(residual)(x, a), native=True)
        solve: Any = wg.jit(lambda j, ct: np.linalg.solve(j.T, ct), native=True)
        pull: Any = wg.jit(lambda x, a, ct: wg.vjp(lambda a: residual(x, a), a)[1](ct)[0], native=True)
        return lambda: pull(x, a, solve(jacobian(x, a), np.cos(x)))
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


def program_of(size: int) -> list[np.ndarray[Any, Any]]:
    """Return P, q, G and h of a quadratic program."""
    random = np.random.default_rng(1)
    root, g = random.normal(size=(2, size, size))
    return [root @ root.T / size + np.eye(size), random.normal(size=size) * 3, g, random.uniform(0.1, 1.0, size)]


def quadratic(library: str, size: int) -> Callable[[], Any] | None:
    """Return what solves a quadratic program and differentiates its solution, or solves it alone."""
    import wengert as wg
    from wengert import implicit

    p, q, g, h = program_of(size)

    def total(q: Any) -> Any:
        return np.sum(np.sin(implicit.qp(p, q, G=g, h=h).x))

    if library == "wengert":
        gradient: Any = wg.jit(wg.grad(total), native=True)
        return lambda: gradient(q)
    if library == "wengert-forward":
        solution: Any = wg.jit(total, native=True)
        return lambda: solution(q)
    if library == "qpth" and importlib.util.find_spec("qpth") is not None:
        return of_qpth(p, q, g, h)
    if library == "proxqp" and importlib.util.find_spec("proxsuite") is not None:
        return of_proxqp(p, q, g, h)
    return None


def batch_of_programs(library: str, size: int) -> Callable[[], Any] | None:
    """Return what differentiates the solutions of many quadratic programs."""
    import wengert as wg
    from wengert import implicit

    p, q, g, h = program_of(size)
    many = q + 0.1 * np.random.default_rng(3).normal(size=(BATCH, size))
    if library == "wengert":
        gradient: Any = wg.jit(wg.vmap(wg.grad(lambda q: np.sum(np.sin(implicit.qp(p, q, G=g, h=h).x)))), native=True)
        return lambda: gradient(many)
    return None


def sparse_program(library: str, size: int) -> Program | None:
    """Return what solves a program of an obstacle below a chain, or solves it and then pulls a cotangent back."""
    from scipy import sparse

    import wengert as wg
    from wengert import implicit

    ends = [np.full(size, 2.01), -np.ones(size - 1), -np.ones(size - 1)]
    p, g = sparse.diags_array(ends, offsets=[0, 1, -1], format="csr"), -sparse.eye_array(size, format="csr")
    q, h = np.sin(np.arange(size) / size * 20), np.full(size, 0.1)

    def run() -> dict[str, float]:
        found, pullback = wg.vjp(lambda p, q: implicit.qp(p, q, G=g, h=h).x, p, q)
        start = time.process_time()
        pullback(found)
        return {"": time.process_time() - start}

    if library == "wengert-forward":
        return timed(lambda: implicit.qp(p, q, G=g, h=h), time.process_time)
    return run if library == "wengert" else None


def of_proxqp(p: Any, q: Any, g: Any, h: Any) -> Callable[[], Any]:
    """Return the same by ProxQP."""
    proxqp: Any = importlib.import_module("proxsuite").proxqp
    n = len(q)
    program = proxqp.dense.QP(n, 0, n)
    program.settings.eps_abs, program.settings.eps_rel = 1e-9, 0.0
    program.settings.initial_guess = proxqp.InitialGuess.NO_INITIAL_GUESS
    program.init(p, q, np.zeros((0, n)), np.zeros(0), g, np.full(n, -1e30), h)
    slopes = np.zeros(2 * n)

    def run() -> Any:
        program.solve()
        slopes[:n] = np.cos(program.results.x)
        proxqp.dense.compute_backward(program, slopes, 1e-9, 1e-9, 1e-9)

    return run


def of_qpth(*arrays: Any) -> Callable[[], Any]:
    """Return the same by qpth (PyTorch)."""
    qpth, torch = (importlib.import_module(name) for name in ("qpth.qp", "torch"))
    p, q, g, h = map(torch.tensor, arrays)
    none = torch.empty(0, dtype=p.dtype)

    def run() -> Any:
        moving = q.clone().requires_grad_()
        torch.sin(qpth.QPFunction(verbose=-1)(p, moving, g, h, none, none)).sum().backward()
        return moving.grad

    return run


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""
    for size in SIZES:
        yield case_of(f"gradient beyond a root of {size} equations", partial(gradient_of_root, size=size))
    for method in ("cg", "gmres"):
        name = f"adjoint of {method}, {UNKNOWN_NUMBERS} unknown numbers"
        yield Case(name, 1, partial(adjoint, method=method))
    yield case_of(f"loop of {ROUNDS} rounds with a rule, and its gradient", loop_with_rule)
    for size in (10, 100, 1_000):
        yield case_of(f"quadratic program of {size} numbers, with gradient", partial(quadratic, size=size))
    for size in (10, 100):
        name = f"gradients of {BATCH} quadratic programs of {size} numbers"
        yield case_of(name, partial(batch_of_programs, size=size))
    yield Case("pullback of a sparse program of 10000 numbers", 1, partial(sparse_program, size=10_000))


def case_of(name: str, maker: Callable[[str], Callable[[], Any] | None]) -> Case:
    """Return the case of what is called."""

    def make(library: str) -> Program | None:
        run = maker(library)
        return None if run is None else timed(run, time.process_time)

    return Case(name, 1, make)
