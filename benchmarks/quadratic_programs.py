"""Quadratic programs: what it takes to pull cotangents back, and to solve, beside proxsuite (ProxQP), qpth and diffcp.

What is pulled back is timed alone, after programs have been solved. Of small programs of ours it takes less than a call
from Python; of these what compiled gradients take beyond compiled solutions is measured, with both computed in turns.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

SIZES = (10, 100, 300, 1_000)
SMALL = 10
"""Numbers of programs that are pulled back within a call from Python."""
BATCH = 128
"""Programs at once."""
SHORT = 0.1
"""Seconds that turns take together."""
TOLERANCE = 1e-9
LPGD = {"mode": "lpgd", "solve_method": "Clarabel", "verbose": False, "derivative_kwargs": {"tau": 0.1, "rho": 0.1}}
"""How diffcp differentiates quadratic programs: by solving again beside them."""
Timed = Callable[[], Any]


def data_of(size: int) -> list[np.ndarray[Any, Any]]:
    """Return P, q, G and h of a program."""
    random = np.random.default_rng(1)
    root, g = random.normal(size=(2, size, size))
    return [root @ root.T / size + np.eye(size), random.normal(size=size) * 3, g, random.uniform(0.1, 1.0, size)]


def vectors_of(q: Any) -> Any:
    """Return the q of many programs."""
    return q + 0.1 * np.random.default_rng(3).normal(size=(BATCH, len(q)))


def sparse_data_of(size: int) -> list[Any]:
    """Return P, q, G and h of a program of an obstacle below a chain."""
    from scipy import sparse

    ends = [np.full(size, 2.01), -np.ones(size - 1), -np.ones(size - 1)]
    p, g = sparse.diags_array(ends, offsets=[0, 1, -1], format="csr"), -sparse.eye_array(size, format="csr")
    return [p, np.sin(np.arange(size) / size * 20), g, np.full(size, 0.1)]


def seconds(run: Timed) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def after(prepare: Timed, run: Timed) -> Program:
    """Return a program that takes the time of one function, each time after another one."""
    prepare(), run()
    count = max(1, min(50, int(SHORT / (seconds(prepare) + seconds(run)))))

    def program() -> dict[str, float]:
        found = []
        for _ in range(count):
            prepare()
            found.append(seconds(run))
        return {"": float(np.median(found))}

    return program


def difference(whole: Timed, part: Timed) -> Program:
    """Return a program that takes by how much longer one function takes than another one, in turns."""
    [run() for run in (whole, part) * 3]
    count = max(3, min(1_000, int(SHORT / seconds(whole))))
    times = 1 + int(1e-4 / seconds(whole))

    def program() -> dict[str, float]:
        found = []
        for _ in range(count):
            found.append(sum(seconds(whole) for _ in range(times)) - sum(seconds(part) for _ in range(times)))
        return {"": float(np.median(found)) / times}

    return program


# Wengert


def function_of_solution(data: Any) -> Callable[[Any], Any]:
    """Return a function of q that solves a program and sums up what it finds."""
    from wengert import implicit

    p, _, g, h = data
    return lambda q: np.sum(np.sin(implicit.qp(p, q, G=g, h=h).x))


def halves(data: Any) -> tuple[Timed, Timed]:
    """Return what solves a program, and what then pulls a cotangent back, both compiled."""
    import wengert as wg

    run: Any = wg.jit(function_of_solution(data), native=True)
    held: list[Any] = []

    def solve() -> None:
        held[:] = [wg.vjp(run, data[1])[1]]

    return solve, lambda: held[0](1.0)


def compiled(data: Any, gradient: bool, lanes: bool = False) -> Timed:
    """Return what computes a function of the solution of one program or of many, or its gradient by q."""
    import wengert as wg

    q, total = data[1], function_of_solution(data)
    function: Any = wg.grad(total) if gradient else total
    run: Any = wg.jit(wg.vmap(function) if lanes else function, native=True)
    given = vectors_of(q) if lanes else q
    return lambda: run(given)


# Peers


def of_proxqp(q: Any, data: Any) -> tuple[Timed, Timed]:
    """Return what solves a program by ProxQP, and what then pulls a cotangent back."""
    proxqp: Any = importlib.import_module("proxsuite").proxqp
    p, _, g, h = data
    n = len(q)
    program = proxqp.dense.QP(n, 0, n)
    program.settings.eps_abs, program.settings.eps_rel = TOLERANCE, 0.0
    program.settings.initial_guess = proxqp.InitialGuess.NO_INITIAL_GUESS
    program.init(p, q, np.zeros((0, n)), np.zeros(0), g, np.full(n, -1e30), h)
    slopes = np.zeros(2 * n)

    def pull() -> None:
        slopes[:n] = np.cos(program.results.x)
        proxqp.dense.compute_backward(program, slopes, TOLERANCE, TOLERANCE, TOLERANCE)

    return program.solve, pull


def of_qpth(q: Any, data: Any) -> tuple[Timed, Timed]:
    """Return the same of one program or of many by qpth (PyTorch)."""
    qpth, torch = (importlib.import_module(name) for name in ("qpth.qp", "torch"))
    torch.set_num_threads(1)
    p, g, h = (torch.tensor(data[i]) for i in (0, 2, 3))
    moving, none = torch.tensor(q, requires_grad=True), torch.empty(0, dtype=torch.float64)
    held: list[Any] = []

    def solve() -> None:
        held[:] = [torch.sin(qpth.QPFunction(verbose=-1)(p, moving, g, h, none, none)).sum()]

    return solve, lambda: held[0].backward()


def of_diffcp(data: Any) -> tuple[Timed, Timed]:
    """Return the same by diffcp, on which cvxpylayers is built, in its one mode for quadratic programs."""
    from scipy import sparse

    diffcp: Any = importlib.import_module("diffcp")
    p, q, g, h = data
    given = sparse.csc_matrix(g), h, q, {diffcp.POS: len(h)}
    triangle, held = sparse.triu(sparse.csc_matrix(p), format="csc"), list[Any]()
    none = np.zeros(len(h))

    def solve() -> None:
        held[:] = diffcp.solve_and_derivative(*given, P=triangle, **LPGD)

    return solve, lambda: held[-1](np.cos(held[0]), none, none)


# Cases


def backward(library: str, size: int) -> Program | None:
    """Return what pulls a cotangent of the solution of a program in full back."""
    data = data_of(size)
    if library == "wengert" and size <= SMALL:
        return difference(compiled(data, True), compiled(data, False))
    if library == "wengert":
        return after(*halves(data))
    if library == "proxsuite":
        return after(*of_proxqp(data[1], data))
    if library == "qpth":
        return after(*of_qpth(data[1], data))
    return None


def batch_backward(library: str, size: int) -> Program | None:
    """Return what pulls cotangents of the solutions of many programs back."""
    data = data_of(size)
    many = vectors_of(data[1])
    if library == "wengert":
        return difference(compiled(data, True, True), compiled(data, False, True))
    if library == "proxsuite":
        pairs = [of_proxqp(q, data) for q in many]
        return after(lambda: [solve() for solve, _ in pairs], lambda: [pull() for _, pull in pairs])
    if library == "qpth":
        return after(*of_qpth(many, data))
    return None


def sparse_backward(library: str, size: int) -> Program | None:
    """Return what pulls a cotangent of the solution of a sparse program back."""
    data = sparse_data_of(size)
    if library == "wengert":
        return after(*halves(data))
    if library == "diffcp" and size < 10_000:
        return after(*of_diffcp(data))
    return None


def solution(library: str, size: int) -> Program | None:
    """Return what solves a program."""
    data = data_of(size)
    if library == "wengert":
        return timed(compiled(data, False), time.process_time)
    if library == "proxsuite":
        return timed(of_proxqp(data[1], data)[0], time.process_time)
    return None


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for size in SIZES:
        yield Case(f"quadratic program of {size} numbers, solved", 1, partial(solution, size=size))
        yield Case(f"quadratic program of {size} numbers, pulled back", 1, partial(backward, size=size))
    for size in SIZES[:2]:
        name = f"{BATCH} quadratic programs of {size} numbers, pulled back"
        yield Case(name, 1, partial(batch_backward, size=size))
    for size in (10, 100, 1_000, 10_000):
        yield Case(f"sparse program of {size} numbers, pulled back", 1, partial(sparse_backward, size=size))
