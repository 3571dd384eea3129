"""Equations solved: roots by Newton's method, their gradients, and SciPy's drivers, beside optimistix (JAX) and SciPy.

Every library has one thread, and processor time is measured.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

SIZES = (2, 8, 32)
STATES = (50, 200)
"""Of reacting and diffusing substances."""
LANES = 10_000
CALLS = 100
"""Calls of one system in a program."""
TOLERANCE = 1e-8
SystemOf = Callable[[Any], Callable[[Any, Any], Any]]
"""From the functions of a library to a system of equations."""


def equations(numpy: Any) -> Callable[[Any, Any], Any]:
    """Return a system of equations of as many numbers as there are parameters."""
    return lambda x, a: numpy.sin(x) * a + x**3 - 0.1 * numpy.roll(x, 1) - 1.0


def steady_state(numpy: Any) -> Callable[[Any, Any], Any]:
    """Return what changes concentrations along a line: they diffuse, react and are fed."""
    return lambda x, a: 4.0 * (numpy.roll(x, 1) - 2.0 * x + numpy.roll(x, -1)) + a - x * x / (1.0 + 0.1 * x)


def parameters(size: int, lanes: int = 0) -> np.ndarray[Any, Any]:
    """Return parameters of one system, or of several."""
    one = np.linspace(1.0, 2.0, size)
    return one + np.random.default_rng(0).uniform(size=(lanes, 1)) if lanes else one


def of_wengert(system_of: SystemOf, size: int, gradient: bool, lanes: bool) -> Callable[[Any], Any]:
    """Return what sums up a root, with its gradient or without."""
    import wengert as wg
    from wengert import optim

    start, system = np.ones(size), system_of(np)

    def total(a: Any) -> Any:
        return np.sum(optim.root(system, start, a, method="newton", tol=TOLERANCE).x)

    function: Any = wg.value_and_grad(total) if gradient else total
    return wg.jit(wg.vmap(function) if lanes else function, native=True)


def of_optimistix(system_of: SystemOf, size: int, gradient: bool, lanes: bool) -> Callable[[Any], Any]:
    """Return the same in optimistix."""
    import jax
    import jax.numpy as jnp

    optimistix = importlib.import_module("optimistix")
    jax.config.update("jax_enable_x64", True)
    solver, start, system = optimistix.Newton(rtol=TOLERANCE, atol=TOLERANCE), jnp.ones(size), system_of(jnp)

    def total(a: Any) -> Any:
        return jnp.sum(optimistix.root_find(system, solver, start, args=a, max_steps=50, throw=False).value)

    function: Any = jax.value_and_grad(total) if gradient else total
    compiled = jax.jit(jax.vmap(function) if lanes else function)
    return lambda a: jax.block_until_ready(compiled(a))


def driver(library: str, size: int) -> Callable[[Any], Any] | None:
    """Return what calls `root` from Python, with a function that is the same at each call."""
    system, start = equations(np), np.ones(size)
    if library == "scipy":
        from scipy import optimize

        return lambda a: optimize.root(system, start, (a,))
    if library == "wengert":
        from wengert import optim

        return lambda a: optim.root(system, start, (a,))
    return None


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""
    for size in SIZES:
        for gradient in (False, True):
            what = f"root of {size} equations{', with gradient' if gradient else ''}"
            yield solver_case(what, equations, size, gradient, 0)
            yield solver_case(f"{what}, {LANES} lanes", equations, size, gradient, LANES)
        yield driver_case(size)
    for size in STATES:
        yield solver_case(f"steady state of {size} equations", steady_state, size, False, 0)
        yield solver_case(f"steady state of {size} equations, with gradient", steady_state, size, True, 0)


def solver_case(name: str, system_of: SystemOf, size: int, gradient: bool, lanes: int) -> Case:
    """Return the case of Newton's method in a compiled function."""
    makers = {"wengert": of_wengert, "optimistix": of_optimistix}

    def make(library: str) -> Program | None:
        if library not in makers or (library != "wengert" and importlib.util.find_spec(library) is None):
            return None
        run, given = makers[library](system_of, size, gradient, lanes > 0), parameters(size, lanes)
        return timed(lambda: [run(given) for _ in range(1 if lanes else CALLS)], time.process_time)

    return Case(name, 1 if lanes else CALLS, make)


def driver_case(size: int) -> Case:
    """Return the case of a driver that is called from Python."""

    def make(library: str) -> Program | None:
        run, given = driver(library, size), parameters(size)
        return None if run is None else timed(lambda: [run(given) for _ in range(CALLS)], time.process_time)

    return Case(f"optim.root of {size} equations, called again", CALLS, make)
