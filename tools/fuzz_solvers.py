"""Solve random problems by each solver, and compare derivatives in each mode with those of all steps of an iteration.

`python -m tools.fuzz_solvers --problems 200 --seed 1`. Problems are optima of |x|^2 / 2 + 0.3 sum(log cosh(B x)) -
sin(a) x, perhaps within bounds, by a and B, which are arguments in containers or captured. In each some evaluation in
the middle of a solve raises an error, before all or after a call that went well: it must come out, recording, warnings
and all that threads of the library know must be as they were, and what follows must be as if it had not been.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tools import solver_list
from tools.solver_list import INJECTED, SOLVERS, STEPS, vector_of
from wengert.errors import WengertError

__all__ = ["MODES", "Problem", "draw_problem", "failures", "main"]


OFTEN = 25
"""Problems after which it is told how many there were."""


class Injected(Exception):
    """Be raised in the middle of a solve."""


class Problem(NamedTuple):
    """Hold a random problem.

    Attributes:
        solver: a name among `SOLVERS`.
        size: the number of unknowns.
        container: what the parameters come in: "array", "dict", "nested" or "captured".
        shape: of the unknowns: "vector", "column" or "dict".
        data: a and B side by side, of shape (size, 1 + size).
    """

    solver: str
    size: int
    container: str
    shape: str
    data: np.ndarray[Any, Any]


@contextmanager
def inject_error(left: int, inside: tuple[str, ...]) -> Iterator[None]:
    """Raise an error at one of the next evaluations, or calls of functions inside of files, wherever from."""

    def hook(frame: Any, event: str, _: Any) -> None:
        nonlocal left
        if event == "call" and may_fail(frame.f_code, inside):
            left -= 1
            if not left:
                raise Injected

    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


def may_fail(code: Any, inside: tuple[str, ...]) -> bool:
    """Tell whether a function is one that fails."""
    if inside:
        return any(part in code.co_filename for part in inside)
    return code.co_name in INJECTED and code.co_filename == solver_list.__file__


def thread_state() -> dict[str, str]:
    """Return what this thread has in variables of the library and of NumPy, and the filters of warnings, as text."""
    found = {"errors of NumPy": repr(np.geterr()), "filters of warnings": repr(warnings.filters)}
    for module in [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "wengert"]:
        for name, value in list(vars(module).items()):
            if isinstance(value, threading.local):
                found[f"{module.__name__}.{name}"] = repr(vars(value))
            elif isinstance(value, ContextVar) and not value.name.startswith("numpy."):  # whose are told above
                found[f"{module.__name__}.{name}"] = repr(value.get())
    return found


def steps(data: Any, linear: bool, limits: Any) -> Any:
    """Return the solution by steps of an iteration that is differentiated as it is."""
    a, matrix = data[:, 0], data[:, 1:]

    def step(x: Any, _: Any) -> Any:
        inner = 0.3 * matrix.T @ (matrix @ x if linear else np.tanh(matrix @ x))
        return np.clip(x - 0.7 * (x + inner - np.sin(a)), limits[0], limits[1]), None

    return wg.scan(step, np.zeros(len(data)) + 0.0 * a, None, length=STEPS)[0]


@cache
def references(linear: bool) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return value, gradient, and its change with parameters, of the same number by steps: traced once for a size."""

    def value(data: Any, limits: Any) -> Any:
        return np.sum(np.cos(steps(data, linear, limits)) * np.arange(1.0, len(data) + 1))

    def change(data: Any, limits: Any, moves: Any) -> Any:
        return wg.jvp(lambda z: wg.grad(value)(z, limits), (data,), (moves,))[1]

    return wg.jit(value), wg.jit(wg.grad(value)), wg.jit(change)


def expected(mode: str, problem: Problem) -> Any:
    """Return what a mode makes of a problem, of derivatives of the iteration."""
    solver, data = SOLVERS[problem.solver], problem.data
    value, gradient, change = references(solver.linear)
    limits = np.array(solver.limits)
    if mode == "forward":
        return np.sum(gradient(data, limits) * np.cos(data))
    if mode == "forward over reverse":
        return change(data, limits, np.cos(data))
    wanted = value if mode in ("value", "jit of lanes") else gradient
    return np.stack([wanted(z, limits) for z in lanes(data)]) if "lanes" in mode else wanted(data, limits)


def with_shape(vector: Any, shape: str) -> Any:
    """Return a vector as unknowns of a shape."""
    if shape == "dict":
        return {"first": vector[:1], "rest": (vector[1:],)}
    return vector[:, None] if shape == "column" else vector


def loss_of(problem: Problem) -> Callable[[Any], Any]:
    """Return a number made of the solution, as a function of all parameters in one array."""
    solver = SOLVERS[problem.solver]

    def loss(data: Any) -> Any:
        captured = data[:, 0], data[:, 1:]

        def equations(x: Any, a: Any, matrix: Any) -> Any:
            own = captured if problem.container == "captured" else (first(a), first(matrix))
            return with_shape(solver_list.slope(vector_of(x), *own), problem.shape)

        given = [in_container(x, problem.container) for x in captured] if solver.shaped else list(captured)
        x = solver.solve(equations, with_shape(np.zeros(problem.size), problem.shape), *given)
        return np.sum(np.cos(vector_of(x)) * np.arange(1.0, problem.size + 1))

    return loss


def in_container(x: Any, container: str) -> Any:
    """Return a parameter in a container."""
    if container == "dict":
        return {"it": x}
    return ([x], None) if container == "nested" else x


def first(x: Any) -> Any:
    """Return the array in a container."""
    return wg.tree.leaves(x)[0]


def lanes(data: Any) -> Any:
    """Return lanes of parameters."""
    return np.stack([data, 0.9 * data])


MODES: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "reverse": wg.grad,
    "forward": lambda f: lambda z: wg.jvp(f, (z,), (np.cos(z),))[1],
    "jit": lambda f: wg.jit(wg.grad(f)),
    "forward over reverse": lambda f: lambda z: wg.jvp(wg.grad(f), (z,), (np.cos(z),))[1],
    "lanes": lambda f: lambda z: wg.vmap(wg.grad(f))(lanes(z)),
    "jit of lanes": lambda f: lambda z: wg.jit(wg.vmap(f))(lanes(z)),
    "tape": lambda f: lambda z: by_tape(f, z),
}


def by_tape(function: Callable[[Any], Any], z: Any) -> Any:
    """Return the gradient by the tape."""
    x = wg.tensor(z, requires_grad=True)
    (gradient,) = wg.autograd.grad(function(x), [x])
    return np.asarray(gradient)


def draw_problem(index: int, seed: int) -> Problem:
    """Return a random problem; where bounds are nearly weakly active, another one."""
    random = np.random.default_rng([seed, index])
    solver = list(SOLVERS)[index % len(SOLVERS)]
    size = int(random.integers(1, 1 + SOLVERS[solver].most))
    container = str(random.choice(["array", "dict", "nested", "captured"]))
    shape = str(random.choice(["vector", "column", "dict"])) if SOLVERS[solver].shaped else "vector"
    while True:
        matrix = random.normal(size=(size, size))
        data = np.concatenate(
            [random.normal(size=(size, 1)), matrix / (1.0 + float(np.linalg.norm(matrix, 2)))], axis=1
        )
        if all(np.all(room(z, solver) > 1e-3) for z in lanes(data)):
            return Problem(solver, size, container, shape, data)


def room(data: Any, solver: str) -> Any:
    """Return by how much an unbounded step from the solution leads out of bounds, or how far it stays inside."""
    lower, upper = limits = SOLVERS[solver].limits
    x = np.asarray(steps(data, SOLVERS[solver].linear, limits))
    a, matrix = data[:, 0], data[:, 1:]
    inner = 0.3 * matrix.T @ (matrix @ x if SOLVERS[solver].linear else np.tanh(matrix @ x))
    after = x - 0.7 * (x + inner - np.sin(a))
    return np.minimum(np.abs(after - lower), np.abs(after - upper))


def failures(problem: Problem, modes: Any, random: Any, counts: Counter[str] | None = None) -> Iterator[str]:
    """Yield what is wrong with a problem, mode by mode; count what became of the modes."""
    counts = Counter() if counts is None else counts
    solver = SOLVERS[problem.solver]
    loss = loss_of(problem)
    for mode in modes:
        yield from traces_of_error(partial(run_problem, mode, loss, problem), mode, random, solver.inside)
        try:
            found = np.asarray(run_problem(mode, loss, problem))
        except Exception as error:  # noqa: BLE001 - as above
            counts["refused" if isinstance(error, WengertError) else "ended by other errors"] += 1
            yield f"{mode}: {type(error).__name__}: {error}"
            continue
        counts["compared"] += 1
        other = np.asarray(expected(mode, problem))
        if not np.allclose(found, other, rtol=3e-6, atol=3e-6):
            yield f"{mode}: differs by {np.max(np.abs(found - other)):.1e}"


def run_problem(mode: str, loss: Callable[[Any], Any], problem: Problem) -> Any:
    """Return what a mode makes of the function of a problem."""
    return MODES[mode](loss)(problem.data)


def traces_of_error(run: Callable[[], Any], mode: str, random: Any, inside: tuple[str, ...]) -> Iterator[str]:
    """Yield what an error in the middle of a call changes, perhaps after a call that went well."""
    try:
        if random.uniform() < 0.5:
            run()
        before = thread_state()
        with inject_error(int(random.geometric(0.03 if inside else 0.25)), inside):
            run()
    except Injected:
        after = thread_state()
        yield from (f"{mode}: an injected error left {name}" for name in before if before[name] != after[name])
    except Exception as error:  # noqa: BLE001 - whatever comes instead is told
        yield f"{mode}: an injected error came out as {type(error).__name__}: {error}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return how many problems fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what stops it lets it tell how far it came
    try:
        for index in range(given.first, given.problems):
            problem = draw_problem(index, given.seed)
            random = np.random.default_rng([given.seed, index, 1])
            if wrong := list(failures(problem, list(MODES), random, counts)):
                counts["failed"] += 1
                tell(f"{index}: {problem[:-1]}", *(f"  {text}" for text in wrong))
            counts["problems"] += 1
            if not counts["problems"] % OFTEN:
                tell(summary(counts))
    finally:
        tell(summary(counts))
    return counts["failed"]


def summary(counts: Counter[str]) -> str:
    """Return how many problems there were, how many derivatives were compared, and what became of the others."""
    others = "".join(f", {counts[key]} {key}" for key in ("refused", "ended by other errors"))
    return f"{counts['problems']} problems, {counts['compared']} results compared{others}; {counts['failed']} failed"


def tell(*lines: str) -> None:
    """Write lines at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(bool(main()))
