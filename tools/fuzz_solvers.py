"""Solve random problems by each solver, and compare derivatives in each mode with those of all steps of an iteration.

`python -m tools.fuzz_solvers --problems 200 --seed 1`. Problems are optima of |x|^2 / 2 + 0.3 sum(log cosh(B x)) -
sin(a) x, perhaps within bounds, by a and B, which are arguments in containers or captured. In each some evaluation in
the middle of a solve raises an error first: it must come out, and what follows must be as if it had not been.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize as theirs
from scipy.sparse.linalg import LinearOperator, gmres

import wengert as wg
from wengert import implicit, optim
from wengert.scipy import optimize

__all__ = ["MODES", "SOLVERS", "Problem", "draw_problem", "failures", "main"]

STEPS = 100
"""Of the iteration that is compared with: it contracts by more than a half."""


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
def inject_error(left: int) -> Iterator[None]:
    """Raise an error at one of the next evaluations, wherever it is called from."""

    def hook(frame: Any, event: str, _: Any) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_name in ("slope", "cost") and frame.f_code.co_filename == __file__:
            left -= 1
            if not left:
                raise Injected

    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


def slope(x: Any, a: Any, matrix: Any) -> Any:
    """Return the gradient of the objective."""
    return x + 0.3 * matrix.T @ np.tanh(matrix @ x) - np.sin(a)


def cost(x: Any, a: Any, matrix: Any) -> Any:
    """Return the objective."""
    return np.sum(x * x) / 2 + 0.3 * np.sum(np.log(np.cosh(matrix @ x))) - np.sum(np.sin(a) * x)


LOWER, UPPER = -0.2, 0.3


def steps(data: Any, linear: bool, bounded: bool) -> Any:
    """Return the solution by steps of an iteration that is differentiated as it is."""
    a, matrix = data[:, 0], data[:, 1:]

    def step(x: Any, _: Any) -> Any:
        inner = 0.3 * matrix.T @ (matrix @ x if linear else np.tanh(matrix @ x))
        x = x - 0.7 * (x + inner - np.sin(a))
        return (np.clip(x, LOWER, UPPER) if bounded else x), None

    return wg.scan(step, np.zeros(len(data)) + 0.0 * a, None, length=STEPS)[0]


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

        return driver(function, start, (a, matrix), **options).x

    return solve


def by_minimum(driver: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def solve(_: Any, start: Any, a: Any, matrix: Any) -> Any:
        def function(x: Any, a: Any, matrix: Any) -> Any:
            return cost(np.reshape(x, a.shape), a, matrix)

        return driver(function, start, (a, matrix), **options).x

    return solve


def by_products(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        return gmres(LinearOperator((b.size, b.size), matvec, dtype=b.dtype), b, rtol=1e-13, restart=b.size)[0]

    return implicit.linear_solve(lambda x: x + 0.3 * matrix.T @ (matrix @ x), np.sin(a), solve)


def by_program(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    n = len(a)
    limits = np.concatenate([np.full(n, -LOWER), np.full(n, UPPER)])
    p = np.eye(n) + 0.3 * matrix.T @ matrix
    return implicit.qp(p, -np.sin(a), G=np.concatenate([-np.eye(n), np.eye(n)]), h=limits).x


def by_complementarity(_: Any, _start: Any, a: Any, matrix: Any) -> Any:
    return implicit.complementarity(lambda x: slope(x, a, matrix), LOWER, np.full(len(a), UPPER))


class Solver(NamedTuple):
    """Hold a solver, whether its problem is linear, within bounds, and whether it takes unknowns of any shape."""

    solve: Callable[..., Any]
    linear: bool = False
    bounded: bool = False
    shaped: bool = True


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
        by_minimum(optimize.minimize, method="L-BFGS-B", bounds=theirs.Bounds(LOWER, UPPER), tol=1e-15),
        bounded=True,
        shaped=False,
    ),
    "linear_solve": Solver(by_products, linear=True, shaped=False),
    "qp": Solver(by_program, linear=True, bounded=True, shaped=False),
    "complementarity": Solver(by_complementarity, bounded=True, shaped=False),
}


def pack_like(like: Any) -> Callable[[Any], Any]:
    """Return what makes the containers of an example of a vector."""
    leaves, structure = wg.tree.leaves(like), wg.tree.structure(like)
    ends = np.cumsum([np.size(x) for x in leaves])[:-1]
    return lambda v: structure.unflatten(
        [np.reshape(part, np.shape(x)) for part, x in zip(np.split(v, ends), leaves, strict=True)]
    )


def with_shape(vector: Any, shape: str) -> Any:
    """Return a vector as unknowns of a shape."""
    if shape == "dict":
        return {"first": vector[:1], "rest": (vector[1:],)}
    return vector[:, None] if shape == "column" else vector


def vector_of(x: Any) -> Any:
    """Return unknowns of a shape as a vector."""
    return np.concatenate([np.reshape(part, (-1,)) for part in wg.tree.leaves(x)])


def loss_of(problem: Problem) -> Callable[[Any], Any]:
    """Return a number made of the solution, as a function of all parameters in one array."""
    solver = SOLVERS[problem.solver]

    def loss(data: Any) -> Any:
        captured = data[:, 0], data[:, 1:]

        def equations(x: Any, a: Any, matrix: Any) -> Any:
            own = captured if problem.container == "captured" else (first(a), first(matrix))
            return with_shape(slope(vector_of(x), *own), problem.shape)

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
    size = int(random.integers(1, 5))
    container = str(random.choice(["array", "dict", "nested", "captured"]))
    shape = str(random.choice(["vector", "column", "dict"])) if SOLVERS[solver].shaped else "vector"
    while True:
        matrix = random.normal(size=(size, size))
        data = np.concatenate(
            [random.normal(size=(size, 1)), matrix / (1.0 + float(np.linalg.norm(matrix, 2)))], axis=1
        )
        if not SOLVERS[solver].bounded or all(np.all(np.abs(room(z, solver)) > 1e-3) for z in lanes(data)):
            return Problem(solver, size, container, shape, data)


def room(data: Any, solver: str) -> Any:
    """Return by how much an unbounded step from the solution leads out of bounds, or how far it stays inside."""
    x = np.asarray(steps(data, SOLVERS[solver].linear, True))
    a, matrix = data[:, 0], data[:, 1:]
    inner = 0.3 * matrix.T @ (matrix @ x if SOLVERS[solver].linear else np.tanh(matrix @ x))
    after = x - 0.7 * (x + inner - np.sin(a))
    return np.minimum(np.abs(after - LOWER), np.abs(after - UPPER))


def failures(problem: Problem, modes: Any, random: Any) -> Iterator[str]:
    """Yield what is wrong with a problem, mode by mode."""
    solver = SOLVERS[problem.solver]
    weights = np.arange(1.0, problem.size + 1)

    def expected(z: Any) -> Any:
        return np.sum(np.cos(steps(z, solver.linear, solver.bounded)) * weights)

    loss = loss_of(problem)
    for mode in modes:
        try:
            with inject_error(int(random.integers(1, 12))):
                MODES[mode](loss)(problem.data)
        except Injected:
            pass
        except Exception as error:  # noqa: BLE001 - whatever comes instead is told
            yield f"{mode}: an injected error came out as {type(error).__name__}: {error}"
        try:
            found = np.asarray(MODES[mode](loss)(problem.data))
        except Exception as error:  # noqa: BLE001 - as above
            yield f"{mode}: {type(error).__name__}: {error}"
            continue
        other = np.asarray(MODES[mode](expected)(problem.data))
        if not np.allclose(found, other, rtol=3e-6, atol=3e-6):
            yield f"{mode}: differs by {np.max(np.abs(found - other)):.1e}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return how many problems fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    count = 0
    warnings.simplefilter("ignore")
    for index in range(given.problems):
        problem = draw_problem(index, given.seed)
        random = np.random.default_rng([given.seed, index, 1])
        if wrong := list(failures(problem, list(MODES), random)):
            count += 1
            sys.stdout.write(f"{index}: {problem[:-1]}\n" + "".join(f"  {text}\n" for text in wrong))
    sys.stdout.write(f"{given.problems} problems, {count} with failures\n")
    return count


if __name__ == "__main__":
    sys.exit(bool(main()))
