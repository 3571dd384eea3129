"""Sparse derivatives: colours of patterns, plans, and values, beside asdex (JAX) and SciPy's `group_columns`.

Every library has one thread, and processor time is measured. Counts of colours are printed by `python -m
benchmarks.sparse`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from benchmarks.measure import Case, Program, timed

__all__ = ["PATTERNS", "cases", "count_colours"]

generator = np.random.default_rng(0)
clock = time.process_time
WARM = 200
"""Calls after which it has been decided to compile a derivative, or not to."""


def bands(size: int) -> Any:
    """Return a pattern of seven diagonals."""
    offsets = (-300, -20, -1, 0, 1, 20, 300)
    return scipy_sparse.diags_array([np.ones(size)] * 7, offsets=offsets, shape=(size, size)).tocsr()


def scattered(size: int, each: int) -> Any:
    """Return a random pattern with so many elements a row in the mean."""
    found = scipy_sparse.random_array((size, size), density=each / size, rng=np.random.default_rng(each), format="csr")
    found.data[:] = 1.0
    return found


def grid(*shape: int) -> Any:
    """Return the pattern of a star stencil on a grid."""
    parts = [scipy_sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in shape]
    return functools.reduce(lambda a, b: scipy_sparse.kronsum(b, a), parts).tocsr()


PATTERNS: dict[str, Callable[[], Any]] = {
    "7 diagonals, 10^6 elements": lambda: bands(142_857),
    "grid of 30 x 30": lambda: grid(30, 30),
    "grid of 12 x 12 x 12": lambda: grid(12, 12, 12),
    **{
        f"random, {n} rows, {d} in each": functools.partial(scattered, n, d)
        for n in (1_000, 100_000)
        for d in (2, 5, 10)
    },
}


def symmetric(pattern: Any) -> Any:
    """Return the union of a pattern, its transpose and the diagonal."""
    return (pattern + pattern.T + scipy_sparse.eye_array(pattern.shape[0])).tocsr()


def colouring(library: str, pattern: Any, star: bool) -> Callable[[], int] | None:
    """Return what colours a pattern in a library and says how many colours there are."""
    if library == "wengert":
        from wengert.sparse import color

        return lambda: (color(pattern, "symmetric") if star else color(pattern, partition="columns")).count
    if library == "scipy" and not star:
        group = importlib.import_module("scipy.optimize._numdiff").group_columns
        return lambda: int(group(pattern.tocsc(), np.arange(pattern.shape[1])).max() + 1)
    if library == "asdex":
        asdex = importlib.import_module("asdex")
        entries = pattern.tocoo()
        rows, columns = (x.astype(np.int32) for x in entries.coords)
        known = asdex.SparsityPattern(rows, columns, pattern.shape)
        return lambda: int((asdex.color_symmetric if star else asdex.color_cols)(known)[1])
    return None


def brusselator(n: int, numpy: Any = np) -> Callable[[Any], Any]:
    """Return the rates of a Brusselator on n x n points of a torus, of 2 n^2 states."""
    rate = 10.0 * (n - 1) ** 2 / 100

    def laplacian(a: Any) -> Any:
        return sum(numpy.roll(a, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * a

    def rates(y: Any) -> Any:
        u, v = y.reshape(2, n, n)
        product = u * u * v
        first = 1.0 + product - 4.4 * u + rate * laplacian(u)
        return numpy.stack([first, 3.4 * u - product + rate * laplacian(v)]).reshape(-1)

    return rates


def rosenbrock(numpy: Any = np) -> Callable[[Any], Any]:
    """Return the chained function of Rosenbrock."""
    return lambda x: numpy.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def arrow(numpy: Any = np) -> Callable[[Any], Any]:
    """Return a function whose Jacobian has a full row, a full column and a diagonal."""
    return lambda x: numpy.concatenate([numpy.sum(x * x)[None], x[1:] ** 2 * x[0]])


def pendulum(intervals: int, step: float = 0.01, numpy: Any = np) -> Callable[[Any], Any]:
    """Return the defects of a pendulum on a cart by trapezoidal collocation: of 4 states at each point and a force."""

    def slopes(states: Any, force: Any) -> Any:
        sine, cosine, velocity, turn = (*(f(states[:, 1]) for f in (numpy.sin, numpy.cos)), states[:, 2], states[:, 3])
        mass = 1.0 + 0.3 * sine * sine
        push = (force + 0.3 * sine * (0.5 * turn * turn + 9.81 * cosine)) / mass
        swing = (-force * cosine - 0.15 * turn * turn * cosine * sine - 12.753 * sine) / (0.5 * mass)
        return numpy.stack([velocity, turn, push, swing], axis=1)

    def defects(x: Any) -> Any:
        states, force = x[: 4 * (intervals + 1)].reshape(intervals + 1, 4), x[4 * (intervals + 1) :]
        found = slopes(states, force)
        return (states[1:] - states[:-1] - 0.5 * step * (found[1:] + found[:-1])).reshape(-1)

    return defects


def springs(count: int, numpy: Any = np) -> Callable[[Any], Any]:
    """Return the energy of springs between random points in space, which share these."""
    ends = np.random.default_rng(count).integers(0, count // 6, (count, 2))

    def energy(x: Any) -> Any:
        points = x.reshape(-1, 3)[ends]
        lengths = numpy.sqrt(0.01 + numpy.sum((points[:, 1] - points[:, 0]) ** 2, axis=1))
        return numpy.sum((lengths - 1.0) ** 2)

    return energy


Problem = Callable[..., Callable[[Any], Any]]
DERIVATIVES: dict[str, tuple[Problem, bool, np.ndarray[Any, Any]]] = {
    **{
        f"Brusselator {n} x {n}": (functools.partial(brusselator, n), False, generator.uniform(1, 2, 2 * n * n))
        for n in (100, 224)
    },
    **{f"Hessian of Rosenbrock {n}": (rosenbrock, True, generator.uniform(1, 2, n)) for n in (10_000, 100_000)},
    "Jacobian with a full row and column, 5000": (arrow, False, generator.uniform(1, 2, 5_000)),
    "pendulum, 2000 intervals": (functools.partial(pendulum, 2_000), False, generator.uniform(0, 1, 5 * 2_001)),
    "Hessian of 60000 springs": (functools.partial(springs, 60_000), True, generator.uniform(0, 1, 30_000)),
}


def prepared(
    library: str, problem: Problem, second: bool, x: Any
) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
    """Return what makes the plan in a library, and what gives values."""
    if library == "wengert":
        import wengert as wg

        make = wg.sparse.hessian if second else wg.sparse.jacobian
        derivative = make(problem())
        for _ in range(WARM):  # after which it is compiled
            derivative(x)
        return lambda: make(problem()).prepare(x), lambda: derivative(x)
    if library == "asdex":
        jax, asdex = (importlib.import_module(name) for name in ("jax", "asdex"))
        jax.config.update("jax_enable_x64", True)
        fun = problem(numpy=jax.numpy)
        color = asdex.hessian_coloring if second else asdex.jacobian_coloring
        values = asdex.hessian_from_coloring if second else asdex.jacobian_from_coloring
        found = jax.jit(values(fun, color(fun, x)))
        given = jax.numpy.asarray(x)
        return lambda: color(fun, x), lambda: found(given).data.block_until_ready()
    return None


def cases(_threads: int) -> Iterator[Case]:
    """Yield colourings, then preparations and values of derivatives."""
    for name, make in PATTERNS.items():
        for star in (False, True):

            def program(library: str, make: Any = make, star: bool = star) -> Program | None:
                found = colouring(library, symmetric(make()) if star else make(), star)
                return None if found is None else timed(found, clock)

            yield Case(f"colours, {'star, ' if star else ''}{name}", 1, program, rounds=7)
    for name, (problem, second, x) in DERIVATIVES.items():
        for part, what in enumerate(("plan", "values")):

            def derivative(
                library: str, problem: Any = problem, second: bool = second, x: Any = x, part: int = part
            ) -> Program | None:
                found = prepared(library, problem, second, x)
                return None if found is None else timed(found[part], clock)

            yield Case(f"{what}, {name}", 1, derivative, rounds=7 if what == "plan" else 31)


def count_colours() -> None:
    """Print how many colours each library needs."""
    libraries = [name for name in ("wengert", "scipy", "asdex") if importlib.util.find_spec(name) is not None]
    for name, make in PATTERNS.items():
        for star in (False, True):
            pattern = symmetric(make()) if star else make()
            found = {library: colouring(library, pattern, star) for library in libraries}
            counts = ", ".join(f"{library} {run()}" for library, run in found.items() if run is not None)
            print(f"{'star, ' if star else ''}{name}: {counts}")


if __name__ == "__main__":
    count_colours()
