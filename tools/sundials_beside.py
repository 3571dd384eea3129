"""Derivatives of SUNDIALS' own examples by its sensitivities and adjoints, beside ours.

sundials4py, the bindings of SUNDIALS' own makers (Python 3.12 and newer), runs what cvsRoberts_FSA_dns,
cvsRoberts_ASAi_dns, cvsHessian_ASA_FSA, cvsLotkaVolterra_ASA and idasAkzoNob_ASAi_dns do, at tolerances that leave more
digits than they print. Slopes and their derivatives are ours; steps, sensitivities and adjoint integrations its own.
`python -m tools.sundials_beside [part of a name ...]`.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tools import known_equations as known

Array = np.ndarray[Any, Any]
Slope = Callable[[Any, Any, Any], Any]
CHECKPOINTS, MOST_STEPS = 2000, 1_000_000


class Derivatives:
    """Be the derivatives of a slope of time, state and parameters, and of what is integrated beside it."""

    def __init__(self, slope: Slope, rate: Slope) -> None:
        def array(t: Any, y: Any, p: Any) -> Any:
            return np.stack(slope(t, y, p))

        self.slope = wg.jit(array)
        self.by_state, self.by_parameters = (wg.jit(wg.jacobian(array, i)) for i in (1, 2))
        self.cotangents = wg.jit(
            lambda t, y, p, c: wg.grad(lambda y, p: c @ array(t, y, p) + rate(t, y, p), (0, 1))(y, p)
        )


class Session:
    """Be SUNDIALS with its context, which vectors and matrices live in."""

    def __init__(self) -> None:
        self.library: Any = importlib.import_module("sundials4py")
        self.core, self.cvodes, self.idas = self.library.core, self.library.cvodes, self.library.idas
        self.context = self.require(self.core.SUNContext_Create(0))
        self.held: list[Any] = []

    def require(self, found: Any) -> Any:
        """Return what a call gives besides its flag, which has to be that of success."""
        flag, *rest = found if isinstance(found, tuple) else (found,)
        if flag < 0:
            raise ArithmeticError(f"SUNDIALS returned {flag}")
        return rest[0] if len(rest) == 1 else rest

    def vector(self, numbers: Any) -> Any:
        """Return a vector of SUNDIALS."""
        made = self.core.N_VNew_Serial(len(numbers), self.context)
        self.core.N_VGetArrayPointer(made)[:] = numbers
        return made

    def array(self, vector: Any) -> Array:
        """Return the numbers of a vector, in its memory."""
        found: Array = self.core.N_VGetArrayPointer(vector)
        return found

    def direct(self, vector: Any) -> tuple[Any, Any]:
        """Return a solver of linear systems with a dense matrix."""
        size = len(self.array(vector))
        matrix = self.core.SUNDenseMatrix(size, size, self.context)
        solver = self.core.SUNLinSol_Dense(vector, matrix, self.context)
        self.held += [matrix, solver, vector]
        return solver, matrix

    def begin(self, own: Derivatives, start: Any, p: Any, rtol: float, atol: float) -> tuple[Any, Any]:
        """Return CVODES at the beginning, by backward differences, and the vector of its state."""
        c, y = self.cvodes, self.vector(start)

        def slope(t: float, y: Any, out: Any, _: Any) -> int:
            self.array(out)[:] = own.slope(t, self.array(y), p)
            return 0

        self.held += [view := c.CVodeCreate(c.CV_BDF, self.context), slope]
        memory = view.get()
        self.require(c.CVodeInit(memory, slope, 0.0, y))
        self.require(c.CVodeSStolerances(memory, rtol, atol))
        self.require(c.CVodeSetMaxNumSteps(memory, MOST_STEPS))
        self.require(c.CVodeSetLinearSolver(memory, *self.direct(y)))
        return memory, y


def sensitivities(slope: Slope, start: Any, p: Array, times: Any, rtol: float, atol: float) -> Array:
    """Return how states change with parameters, of shape (times, states, parameters), by CVODES's staggered method."""
    session = Session()
    own = Derivatives(slope, lambda t, y, p: 0.0 * y[0])
    memory, y = session.begin(own, start, p, rtol, atol)
    c, count = session.cvodes, len(p)
    columns = [session.vector(np.zeros(len(start))) for _ in range(count)]

    def change(_n: int, t: float, y: Any, _f: Any, i: int, s: Any, out: Any, *_: Any) -> int:
        state, moved = session.array(y), session.array(s)
        session.array(out)[:] = own.by_state(t, state, p) @ moved + own.by_parameters(t, state, p)[:, i]
        return 0

    session.require(c.CVodeSensInit1(memory, count, c.CV_STAGGERED, change, columns))
    session.require(c.CVodeSensSStolerances(memory, rtol, atol / np.abs(p)))
    session.require(c.CVodeSetSensErrCon(memory, 1))
    found = []
    for end in times:
        session.require(c.CVode(memory, float(end), y, c.CV_NORMAL))
        session.require(c.CVodeGetSens(memory, columns))
        found.append(np.stack([session.array(s) for s in columns], axis=1))
    return np.array(found)


def adjoint(
    slope: Slope, rate: Slope, last: Callable[[Any], Any], start: Any, p: Array, end: float, rtol: float, atol: float
) -> tuple[Array, Array]:
    """Return the gradients by state and parameters of what `rate` adds up to, and of `last` of the last state."""
    session = Session()
    own, c = Derivatives(slope, rate), session.cvodes
    memory, y = session.begin(own, start, p, rtol, atol)
    session.require(c.CVodeAdjInit(memory, CHECKPOINTS, c.CV_POLYNOMIAL))
    session.require(c.CVodeF(memory, end, y, c.CV_NORMAL))
    cotangent = session.vector(wg.grad(last)(np.array(session.array(y))))
    total = session.vector(np.zeros(len(p)))

    def back(t: float, y: Any, ct: Any, out: Any, _: Any) -> int:
        session.array(out)[:] = -own.cotangents(t, session.array(y), p, session.array(ct))[0]
        return 0

    def add(t: float, y: Any, ct: Any, out: Any, _: Any) -> int:
        session.array(out)[:] = -own.cotangents(t, session.array(y), p, session.array(ct))[1]
        return 0

    which = session.require(c.CVodeCreateB(memory, c.CV_BDF))
    session.require(c.CVodeInitB(memory, which, back, end, cotangent))
    session.require(c.CVodeSStolerancesB(memory, which, rtol, atol))
    session.require(c.CVodeSetMaxNumStepsB(memory, which, MOST_STEPS))
    session.require(c.CVodeSetLinearSolverB(memory, which, *session.direct(cotangent)))
    session.require(c.CVodeQuadInitB(memory, which, add, total))
    session.require(c.CVodeB(memory, 0.0, c.CV_NORMAL))
    session.require(c.CVodeGetB(memory, which, cotangent))
    session.require(c.CVodeGetQuadB(memory, which, total))
    return np.array(session.array(cotangent)), np.array(session.array(total))


def residual_adjoint(slope: Slope, mass: Array, start: Any, end: float, rtol: float, atol: float) -> Array:
    """Return the gradient by the initial state, of 0 = M y' - f, of the integral of the first number, by IDAS."""
    session = Session()
    i, own, p = session.idas, Derivatives(slope, lambda t, y, p: y[0]), np.zeros(1)
    y, yp = session.vector(start), session.vector(mass @ own.slope(0.0, np.array(start), p))

    def residual(t: float, y: Any, yp: Any, out: Any, _: Any) -> int:
        session.array(out)[:] = mass @ session.array(yp) - own.slope(t, session.array(y), p)
        return 0

    def back(t: float, y: Any, _yp: Any, ct: Any, rate: Any, out: Any, _: Any) -> int:
        moved = own.cotangents(t, session.array(y), p, session.array(ct))[0]
        session.array(out)[:] = mass.T @ session.array(rate) + moved
        return 0

    session.held += [view := i.IDACreate(session.context)]
    memory = view.get()
    session.require(i.IDAInit(memory, residual, 0.0, y, yp))
    session.require(i.IDASStolerances(memory, rtol, atol))
    session.require(i.IDASetMaxNumSteps(memory, MOST_STEPS))
    session.require(i.IDASetLinearSolver(memory, *session.direct(y)))
    session.require(i.IDAAdjInit(memory, CHECKPOINTS, i.IDA_POLYNOMIAL))
    session.require(i.IDASolveF(memory, end, y, yp, i.IDA_NORMAL))
    first = np.eye(len(start))[0]
    ct, rate = session.vector(np.zeros(len(start))), session.vector(-first)
    which = session.require(i.IDACreateB(memory))
    session.require(i.IDAInitB(memory, which, back, end, ct, rate))
    session.require(i.IDASStolerancesB(memory, which, rtol, atol))
    session.require(i.IDASetMaxNumStepsB(memory, which, MOST_STEPS))
    session.require(i.IDASetLinearSolverB(memory, which, *session.direct(ct)))
    session.require(i.IDASolveB(memory, 0.0, i.IDA_NORMAL))
    session.require(i.IDAGetB(memory, which, ct, rate))
    return np.array(mass.T @ session.array(ct))


class Beside(NamedTuple):
    """Hold one derivative: what computes it by SUNDIALS and by us, and what was printed."""

    theirs: Callable[[], Any]
    ours: Callable[[], Any]
    printed: Any


def roberts(t: Any, y: Any, p: Any) -> Any:
    """Return how three substances change."""
    return known.roberts(t, y, p)[:3]


def decay(_t: Any, y: Any, p: Any) -> Any:
    """Return how the three numbers of the example with a Hessian change."""
    return [-p[0] * y[0] ** 2 - y[2], -y[1], -(p[1] ** 2) * y[1] * y[2]]


def hessian_row(p: Array, i: int) -> Array:
    """Return a row of the Hessian of the integral of half their squares: the adjoint of states and sensitivities."""

    def both(t: Any, y: Any, p: Any) -> Any:
        values, moves = wg.jvp(lambda y, p: np.stack(decay(t, y, p)), (y[:3], p), (y[3:], np.eye(2)[i]))
        return [*values, *moves]

    start = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    return adjoint(both, lambda t, y, p: y[:3] @ y[3:], lambda y: 0.0 * y[0], start, p, 2.0, 1e-11, 1e-13)[1]


def prey(_t: Any, y: Any, p: Any) -> Any:
    """Return how prey and predators change."""
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def all_derivatives() -> dict[str, Beside]:
    """Return the derivatives by their names."""
    rates, pair, four = known.KINETICS, np.array([1.0, 2.0]), np.array([1.5, 1.0, 3.0, 1.0])
    first, nothing = [1.0, 0.0, 0.0], lambda y: 0.0 * y[0]
    hessian, loss = known.hessian_integral, lambda y: 0.5 * np.sum((1.0 - y) ** 2)
    akzo = [*known.AKZO_START, 115.83 * 0.444 * 0.007]
    mass = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    named = {name: derivative.want for name, derivative in known.DERIVATIVES.items()}
    last = known.LAST
    found: dict[str, Beside] = {
        "Roberts, sensitivities at all times": Beside(
            lambda: sensitivities(roberts, first, rates, known.TIMES, 1e-11, 1e-19)[:, 0],
            lambda: wg.jit(wg.jacfwd(lambda p: known.roberts_states(p, known.TIMES, 1e-11)[0]))(rates),
            [*named["Roberts, sensitivities but the last"], *known.PRINTED[last:]],
        ),
        "three numbers, gradient": Beside(
            by_adjoint(1, decay, lambda t, y, p: 0.5 * np.sum(y**2), nothing, np.ones(3), pair, 2.0, 1e-11, 1e-13),
            lambda: wg.grad(hessian)(pair),
            named["three numbers, gradient"],
        ),
        "three numbers, Hessian": Beside(
            lambda: [hessian_row(pair, i) for i in range(2)],
            lambda: wg.jit(wg.hessian(hessian))(pair),
            named["three numbers, Hessian"],
        ),
        "Akzo Nobel, integral": Beside(
            lambda: residual_adjoint(lambda t, y, p: known.akzo_nobel(t, y), mass, akzo, 180.0, 1e-10, 1e-13)[:5],
            lambda: wg.grad(known.akzo_nobel_integral)(np.array(known.AKZO_START)),
            named["Akzo Nobel, integral"],
        ),
    }
    for end, name in ((50.0, "Roberts, integral to 50"), (4e7, "Roberts, integral to 4e7")):
        given = roberts, lambda t, y, p: y[2], nothing, first, rates, end, 1e-12, 1e-20
        found[name] = Beside(by_adjoint(1, *given), known.roberts_integral(end), named[name])
    for index, name in enumerate(("Lotka-Volterra, state", "Lotka-Volterra, rates")):
        more = prey, lambda t, y, p: 0.0 * y[0], loss, np.ones(2), four, 10.0, 1e-12, 1e-14
        gradient = functools.partial(wg.grad(known.lotka_volterra_loss, index), np.ones(2), four)
        found[name] = Beside(by_adjoint(index, *more), gradient, named[name])
    return found


def by_adjoint(index: int, *given: Any) -> Callable[[], Any]:
    """Return what computes one of both gradients that `adjoint` gives."""
    return lambda: adjoint(*given)[index]


def largest_error(found: Any, want: Any) -> float:
    """Return the largest error of numbers, relative to each."""
    return float(np.max(np.abs(np.asarray(found) / np.asarray(want) - 1.0)))


def main(names: Sequence[str] = ()) -> None:
    """Print how far both are from each other, and each from what is printed."""
    print(f"{'':40}{'apart':>10}{'theirs':>10}{'ours':>10}{'their s':>9}{'our s':>7}")
    for name, own in all_derivatives().items():
        if names and not any(part in name for part in names):
            continue
        begin = time.process_time()
        theirs = own.theirs()
        middle = time.process_time()
        ours = own.ours()
        seconds = middle - begin, time.process_time() - middle
        errors = largest_error(ours, theirs), largest_error(theirs, own.printed), largest_error(ours, own.printed)
        print(f"{name:40}" + "".join(f"{x:10.1e}" for x in errors) + f"{seconds[0]:9.1f}{seconds[1]:7.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
