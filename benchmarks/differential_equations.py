"""Differential equations: values, gradients and forward derivatives beside diffrax (JAX), values beside SciPy.

One thread for every library, and processor time. Explicit problems are integrated by Tsit5 in both libraries (RK45 and
DOP853 beside SciPy, whose steps are the same), Robertson's and a Brusselator's by Rodas5P beside Kvaerno5, the latter
beside LSODA, too, which is told of the bands that Rodas5P finds.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert as wg
from benchmarks.measure import Case, Program, timed
from wengert.scipy.integrate import solve_ivp

__all__ = ["PROBLEMS", "cases", "derivative"]

Array = np.ndarray[Any, Any]
Run = Callable[[], Any]
clock = time.process_time


@dataclass(frozen=True)
class Problem:
    """Hold an initial value problem: y' = slope(t, y, p), as a list."""

    slope: Callable[..., Any]
    end: float
    start: tuple[float, ...]
    parameters: tuple[float, ...]
    stiff: bool = False
    tolerance: float = 1e-8


def lotka_volterra(_t: Any, y: Any, p: Any) -> Any:
    """Return how numbers of prey and predators change."""
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def van_der_pol(_t: Any, y: Any, p: Any) -> Any:
    """Return how an oscillator with a non-linear resistance changes."""
    return [y[1], p[0] * (1 - y[0] * y[0]) * y[1] - y[0]]


def pendulum(numpy: Any) -> Callable[..., Any]:
    """Return the slope of a pendulum with friction, in a library."""
    return lambda _t, y, p: [y[1], -p[0] * numpy.sin(y[0]) - p[1] * y[1]]


def robertson(_t: Any, y: Any, p: Any) -> Any:
    """Return how the concentrations of three substances change."""
    slow, back, fast = p[0] * y[0], p[2] * y[1] * y[2], p[1] * y[1] * y[1]
    return [back - slow, slow - back - fast, fast]


def brusselator(numpy: Any) -> Callable[..., Any]:
    """Return the slope of two substances that react and spread along a line, one after the other at each point."""
    ends = np.array([[1.0, 3.0]])

    def slope(_t: Any, y: Any, p: Any) -> Any:
        here = y.reshape(-1, 2)
        around = numpy.concatenate([ends, here, ends])
        spread = p[2] * (len(here) + 1.0) ** 2 * (around[:-2] - 2 * here + around[2:])
        u, v = here[:, 0], here[:, 1]
        reaction = u * u * v
        return (numpy.stack([p[0] + reaction - (p[1] + 1) * u, p[1] * u - reaction], axis=1) + spread).reshape(-1)

    return slope


POINTS = np.arange(1, 101) / 101
FLAT = tuple(np.stack([1 + np.sin(2 * np.pi * POINTS), 3 + 0 * POINTS], axis=1).reshape(-1).tolist())
PROBLEMS: dict[str, Callable[[Any], Problem]] = {
    "Lotka-Volterra": lambda _: Problem(lotka_volterra, 20.0, (10.0, 5.0), (1.1, 0.4, 0.4, 0.1)),
    "van der Pol": lambda _: Problem(van_der_pol, 10.0, (2.0, 0.0), (5.0,)),
    "pendulum": lambda numpy: Problem(pendulum(numpy), 10.0, (1.5, 0.0), (9.81, 0.1)),
    "Robertson": lambda _: Problem(robertson, 4e4, (1.0, 0.0, 0.0), (0.04, 3e7, 1e4), stiff=True),
    "Brusselator": lambda numpy: Problem(brusselator(numpy), 10.0, FLAT, (1.0, 3.0, 0.02), stiff=True, tolerance=1e-6),
}
"""Problems by the namespace of arrays."""


UNJITTED = ("Jacobian", "lanes")
"""What is asked for outside of `wengert.jit`, of diffrax jitted: a Jacobian by parameters, gradients in 100 lanes."""


def derivative(library: str, name: str, what: str) -> Run | None:
    """Return what computes the end of a problem, or some derivative of it by parameters, in a library."""
    if library == "wengert":
        return by_wengert(PROBLEMS[name](np), what)
    if library == "diffrax":
        return by_diffrax(PROBLEMS[name](importlib.import_module("jax.numpy")), what)
    return by_scipy(PROBLEMS[name](np)) if library == "scipy" and what == "value" and name == "Brusselator" else None


def by_scipy(problem: Problem) -> Run:
    """Return LSODA, told how many bands the Jacobian has."""
    odeint: Any = importlib.import_module("scipy.integrate").odeint
    p, options = np.array(problem.parameters), {"rtol": problem.tolerance, "atol": problem.tolerance, "ml": 2, "mu": 2}
    return lambda: odeint(lambda y, t: problem.slope(t, y, p), problem.start, [0.0, problem.end], **options)


def by_wengert(problem: Problem, what: str) -> Run:
    """Return the program in Wengert."""
    start, p = np.array(problem.start), np.array(problem.parameters)

    def end(p: Any) -> Any:
        options: dict[str, Any] = {"method": "Rodas5P" if problem.stiff else "Tsit5", "t_eval": [problem.end]}
        options |= {"rtol": problem.tolerance, "atol": problem.tolerance}
        found = solve_ivp(problem.slope, (0.0, problem.end), start, args=(p,), **options)
        return found.y[:, 0]

    if what == "gradient":
        run: Any = wg.jit(wg.grad(lambda p: np.sum(end(p)[:2])), native=True)
    elif what == "forward":
        run = wg.jit(lambda p: wg.jvp(end, (p,), (p,)), native=True)
    elif what == "Jacobian":
        run = wg.jacobian(end)
    elif what == "lanes":
        each, lanes = wg.vmap(wg.grad(lambda p: np.sum(end(p)[:2]))), p * np.linspace(0.9, 1.1, 100)[:, None]
        return lambda: each(lanes)
    else:
        run = wg.jit(end, native=True)
    return lambda: run(p)


def by_diffrax(problem: Problem, what: str) -> Run:
    """Return the program in diffrax."""
    jax, diffrax = (importlib.import_module(name) for name in ("jax", "diffrax"))
    jax.config.update("jax_enable_x64", True)
    numpy = jax.numpy
    start, p = numpy.array(problem.start), numpy.array(problem.parameters)
    term = diffrax.ODETerm(lambda t, y, p: numpy.asarray(problem.slope(t, y, p)))
    solver = diffrax.Kvaerno5() if problem.stiff else diffrax.Tsit5()
    adjoint = diffrax.ForwardMode() if what == "forward" else diffrax.RecursiveCheckpointAdjoint()

    def end(p: Any) -> Any:
        control = diffrax.PIDController(rtol=problem.tolerance, atol=problem.tolerance)
        found = diffrax.diffeqsolve(
            term,
            solver,
            0.0,
            problem.end,
            None,
            start,
            p,
            stepsize_controller=control,
            max_steps=16**4,
            adjoint=adjoint,
        )
        return found.ys[0]

    if what == "gradient":
        run = jax.jit(jax.grad(lambda p: numpy.sum(end(p)[:2])))
    elif what == "forward":
        run = jax.jit(lambda p: jax.jvp(end, (p,), (p,)))
    elif what == "Jacobian":
        run = jax.jit(jax.jacobian(end))
    elif what == "lanes":
        each = jax.jit(jax.vmap(jax.grad(lambda p: numpy.sum(end(p)[:2]))))
        lanes = p * numpy.linspace(0.9, 1.1, 100)[:, None]
        return lambda: jax.block_until_ready(each(lanes))
    else:
        run = jax.jit(end)
    return lambda: jax.block_until_ready(run(p))


def whole_call(library: str, method: str) -> Run | None:
    """Return a call of `solve_ivp` as SciPy's users write it, with a function made anew."""
    solvers: dict[str, Any] = {"wengert": solve_ivp, "scipy": importlib.import_module("scipy.integrate").solve_ivp}
    solve: Any = solvers.get(library)
    problem = PROBLEMS["Lotka-Volterra"](np)
    start, p = np.array(problem.start), np.array(problem.parameters)

    def run() -> Any:
        options = {"method": method, "rtol": problem.tolerance, "atol": problem.tolerance}
        return solve(lambda t, y: problem.slope(t, y, p), (0.0, problem.end), start, **options).y

    return None if solve is None else run


def cases(_threads: int) -> Iterator[Case]:
    """Yield values and derivatives of problems, then whole calls."""
    for name in PROBLEMS:
        for what in ("value", "gradient", "forward", *UNJITTED):

            def program(library: str, name: str = name, what: str = what) -> Program | None:
                found = derivative(library, name, what)
                return None if found is None else timed(found, clock)

            yield Case(f"{name}, {what}", 1, program)
    for method in ("RK23", "RK45", "DOP853"):

        def call(library: str, method: str = method) -> Program | None:
            found = whole_call(library, method)
            return None if found is None else timed(found, clock)

        yield Case(f"solve_ivp, {method}", 1, call)
