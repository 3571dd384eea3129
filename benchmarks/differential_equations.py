"""Differential equations: values, gradients and forward derivatives beside diffrax (JAX), values beside SciPy.

One thread for every library, and processor time. Explicit problems are integrated by Tsit5 in both libraries (RK45 and
DOP853 beside SciPy, whose steps are the same), Robertson's and a Brusselator's by Rodas5P beside Kvaerno5, the latter
beside LSODA, too, which is told of the bands that Rodas5P finds. Where gradients are to be equally accurate, Rodas5P
has a hundredth of the tolerance. "wengert-value" is the value that a gradient is of.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import wengert as wg
from benchmarks.equations_in_plane import in_plane, robertson_by_cvode
from benchmarks.measure import Case, Program, timed
from wengert.scipy import integrate
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
    peer_tolerance: float | None = None


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
EQUAL = "Robertson at equal accuracy"
"""Rodas5P needs a hundredth of the tolerance for gradients as exact as those of Kvaerno5."""
PROBLEMS: dict[str, Callable[[Any], Problem]] = {
    "Lotka-Volterra": lambda _: Problem(lotka_volterra, 20.0, (10.0, 5.0), (1.1, 0.4, 0.4, 0.1)),
    "van der Pol": lambda _: Problem(van_der_pol, 10.0, (2.0, 0.0), (5.0,)),
    "pendulum": lambda numpy: Problem(pendulum(numpy), 10.0, (1.5, 0.0), (9.81, 0.1)),
    "Robertson": lambda _: Problem(robertson, 4e4, (1.0, 0.0, 0.0), (0.04, 3e7, 1e4), stiff=True),
    "Brusselator": lambda numpy: Problem(brusselator(numpy), 10.0, FLAT, (1.0, 3.0, 0.02), stiff=True, tolerance=1e-6),
    EQUAL: lambda _: Problem(robertson, 4e4, (1.0, 0.0, 0.0), (0.04, 3e7, 1e4), True, 1e-10, 1e-8),
}
"""Problems by the namespace of arrays."""


def derivative(library: str, name: str, what: str) -> Run | None:
    """Return what computes the end of a problem, its gradient by parameters, or its change with them, in a library."""
    if library == "wengert":
        problem = PROBLEMS[name](np)
        return by_wengert(problem, end_by_wengert(problem), what)
    if library == "diffrax":
        problem = PROBLEMS[name](importlib.import_module("jax.numpy"))
        return by_diffrax(problem, end_by_diffrax(problem, what), what)
    if what == "value" and (library, name) == ("sksundae", "Robertson"):
        problem = PROBLEMS[name](np)
        return robertson_by_cvode(problem.slope, np.array(problem.parameters), problem.end, problem.tolerance)
    return by_scipy(PROBLEMS[name](np)) if library == "scipy" and what == "value" and name == "Brusselator" else None


def by_scipy(problem: Problem) -> Run:
    """Return LSODA, told how many bands the Jacobian has."""
    odeint: Any = importlib.import_module("scipy.integrate").odeint
    p, options = np.array(problem.parameters), {"rtol": problem.tolerance, "atol": problem.tolerance, "ml": 2, "mu": 2}
    return lambda: odeint(lambda y, t: problem.slope(t, y, p), problem.start, [0.0, problem.end], **options)


def end_by_wengert(problem: Problem) -> Callable[[Any], Any]:
    """Return the end of a problem as a function of parameters in Wengert."""
    method, tolerance = "Rodas5P" if problem.stiff else "Tsit5", problem.tolerance

    def end(p: Any) -> Any:
        options: dict[str, Any] = {"method": method, "t_eval": [problem.end], "rtol": tolerance, "atol": tolerance}
        return solve_ivp(problem.slope, (0.0, problem.end), np.array(problem.start), args=(p,), **options).y[:, 0]

    return end


def by_wengert(problem: Problem, end: Callable[[Any], Any], what: str) -> Run:
    """Return the program in Wengert."""
    p = np.array(problem.parameters)
    if what == "gradient":
        run: Any = wg.jit(wg.grad(lambda p: np.sum(end(p)[:2])), native=True)
    elif what == "forward":
        run = wg.jit(lambda p: wg.jvp(end, (p,), (p,)), native=True)
    else:
        run = wg.jit(end, native=True)
    return lambda: run(p)


def end_by_diffrax(problem: Problem, what: str) -> Callable[[Any], Any]:
    """Return the end of a problem as a function of parameters in diffrax."""
    jax, diffrax = (importlib.import_module(name) for name in ("jax", "diffrax"))
    jax.config.update("jax_enable_x64", True)
    numpy, tolerance = jax.numpy, problem.peer_tolerance or problem.tolerance
    term = diffrax.ODETerm(lambda t, y, p: numpy.asarray(problem.slope(t, y, p)))
    options: dict[str, Any] = {
        "solver": diffrax.Kvaerno5() if problem.stiff else diffrax.Tsit5(),
        "stepsize_controller": diffrax.PIDController(rtol=tolerance, atol=tolerance),
        "adjoint": diffrax.ForwardMode() if what == "forward" else diffrax.RecursiveCheckpointAdjoint(),
        "max_steps": 16**4,
        "dt0": None,
    }

    def end(p: Any) -> Any:
        start = numpy.array(problem.start)
        return diffrax.diffeqsolve(term, t0=0.0, t1=problem.end, y0=start, args=p, **options).ys[0]

    return end


def by_diffrax(problem: Problem, end: Callable[[Any], Any], what: str) -> Run:
    """Return the program in diffrax."""
    jax = importlib.import_module("jax")
    p = jax.numpy.array(problem.parameters)
    if what == "gradient":
        run = jax.jit(jax.grad(lambda p: jax.numpy.sum(end(p)[:2])))
    elif what == "forward":
        run = jax.jit(lambda p: jax.jvp(end, (p,), (p,)))
    else:
        run = jax.jit(end)
    return lambda: jax.block_until_ready(run(p))


def ten_bounces(library: str) -> Run | None:
    """Return what computes the time of the tenth bounce of a ball, by speed, the part kept, and gravity."""

    def last(x: Any) -> Any:
        def ground(_t: Any, y: Any) -> Any:
            return y[0]

        ground.direction, ground.terminal = -1, 10  # type: ignore[attr-defined]  # SciPy's
        ground.reset = lambda _t, y: [0.0 * y[0], -x[1] * y[1]]  # type: ignore[attr-defined]  # ours
        options: dict[str, Any] = {"events": ground, "t_eval": [40.0], "rtol": 1e-8, "atol": 1e-8}
        return solve_ivp(lambda _t, y: [y[1], -x[2]], (0.0, 40.0), [1.0, x[0]], **options).t_events[0][-1]

    return derivative_or_value(library, last, np.array([0.3, 0.9, 9.81]))


def derivative_or_value(library: str, function: Callable[[Any], Any], x: Array) -> Run | None:
    """Return what computes the gradient of a function, or its value."""
    made: dict[str, Callable[[], Any]] = {"wengert": lambda: wg.grad(function), "wengert-value": lambda: function}
    if library not in made:
        return None
    run: Any = wg.jit(made[library](), native=True)
    return lambda: run(x)


def gradient_beside_value(library: str) -> Run | None:
    """Return what computes the gradient of Robertson's problem by its rates, or its value."""

    def total(p: Any) -> Any:
        options: dict[str, Any] = {"method": "Rodas5P", "t_eval": [4e4], "rtol": 1e-8, "atol": 1e-8}
        return np.sum(solve_ivp(robertson, (0.0, 4e4), [1.0, 0.0, 0.0], args=(p,), **options).y[:2, 0])

    return derivative_or_value(library, total, np.array([0.04, 3e7, 1e4]))


def chain(library: str, size: int, method: str) -> Run | None:
    """Return what computes the gradient of a chain of masses whose springs are not linear, or its value."""
    matrix = np.diag(np.full(size, -2.0)) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)

    def total(p: Any) -> Any:
        def slope(_t: Any, y: Any) -> Any:
            return p[0] * (matrix @ y) - p[1] * y**3

        options: dict[str, Any] = {"method": method, "t_eval": [1.0], "rtol": 1e-6, "atol": 1e-6}
        return np.sum(solve_ivp(slope, (0.0, 1.0), np.linspace(0.0, 1.0, size), **options).y)

    return derivative_or_value(library, total, np.array([50.0, 1.0]))


def many_systems(library: str, count: int) -> Run | None:
    """Return what computes the gradients of many systems of prey and predators, of each by its parameters."""
    problem = PROBLEMS["Lotka-Volterra"](np)
    rates = np.array(problem.parameters) * np.random.default_rng(0).uniform(0.9, 1.1, (count, 4))
    if library == "wengert":
        end = end_by_wengert(problem)
        run: Any = wg.jit(wg.vmap(wg.grad(lambda p: np.sum(end(p)))), native=True)
        return lambda: run(rates)
    if library == "diffrax":
        jax = importlib.import_module("jax")
        end = end_by_diffrax(problem, "gradient")
        run = jax.jit(jax.vmap(jax.grad(lambda p: jax.numpy.sum(end(p)))))
        return lambda: jax.block_until_ready(run(rates))
    return None


def whole_call(library: str, method: str) -> Run | None:
    """Return a call of `solve_ivp`, or `odeint`, as SciPy's users write it, with a function made anew."""
    solvers: dict[str, Any] = {"wengert": integrate, "scipy": importlib.import_module("scipy.integrate")}
    module: Any = solvers.get(library)
    problem = PROBLEMS["Robertson" if method in STIFF else "Lotka-Volterra"](np)
    start, p = np.array(problem.start), np.array(problem.parameters)

    def run() -> Any:
        options: dict[str, Any] = {"rtol": problem.tolerance, "atol": problem.tolerance}
        if method == "odeint":
            times = [0.0, problem.end]
            further = {"tfirst": True, "mxstep": 100_000, **options}
            return module.odeint(lambda t, y: problem.slope(t, y, p), start, times, **further)
        options["method"] = method
        return module.solve_ivp(lambda t, y: problem.slope(t, y, p), (0.0, problem.end), start, **options).y

    for _ in range(0 if module is None else CALLS):
        run()
    return None if module is None else run


CALLS = 40
"""Before a call is measured, as functions become native after some."""
STIFF = ("Radau", "BDF", "odeint")
"""What is called for Robertson's problem."""
METHODS = ("RK23", "RK45", "DOP853", *STIFF)
ALONE: dict[str, Callable[[str], Run | None]] = {
    "Robertson, gradient and value": gradient_beside_value,
    "ten bounces, gradient and value": ten_bounces,
    **{
        f"{size} dense states, {method}, gradient and value": partial(chain, size=size, method=method)
        for method in ("Rodas5P", "Radau")
        for size in (32, 40, 100)
    },
}
"""Gradients beside the values that they are of."""


def as_program(make: Callable[[str], Run | None], library: str) -> Program | None:
    """Return a program that is measured as a whole, if the library has it."""
    run = make(library)
    return None if run is None else timed(run, clock)


def cases(_threads: int) -> Iterator[Case]:
    """Yield values and derivatives of problems, then gradients beside values, many systems, and whole calls."""
    programs: dict[str, Callable[[str], Run | None]] = {
        f"{name}, {what}": partial(derivative, name=name, what=what)
        for name in PROBLEMS
        for what in (("gradient",) if name == EQUAL else ("value", "gradient", "forward"))
    }
    programs |= ALONE
    programs["10,000 Lotka-Volterra systems, gradient"] = partial(many_systems, count=10_000)
    programs["Brusselator in the plane, 20,000 states, gradient and value"] = partial(in_plane, size=100)
    programs |= {f"as SciPy's, {method}": partial(whole_call, method=method) for method in METHODS}
    for name, make in programs.items():
        yield Case(name, 1, partial(as_program, make))
