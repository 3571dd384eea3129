"""Compare solutions of differential equations, and their derivatives, with those that others have published.

Solutions are those of the Test Set for IVP solvers (F. Mazzia and C. Magherini, University of Bari, release 2.4, 2008),
derivatives those that the examples of CVODES and IDAS print (A. C. Hindmarsh et al., ACM TOMS 31, 2005), which hold to
the digits that their tolerances allow. Run `python -m tools.known_equations` for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from wengert.scipy.integrate import solve_dae, solve_ivp

Array = np.ndarray[Any, Any]


class Problem(NamedTuple):
    """Hold an initial value problem whose solution at the end is known.

    Attributes:
        slope: `slope(t, y)`.
        end: the last time; the first is 0.
        start: the state there.
        want: that at the end.
        atol: the absolute tolerance beside a relative one of 1e-12.
        mass: the mass matrix, if there is one.
        rtol: the relative tolerance.
    """

    slope: Callable[[Any, Any], Any]
    end: float
    start: list[float]
    want: list[float]
    atol: float
    mass: Any = None
    rtol: float = 1e-12


def hires(_t: Any, y: Any) -> Any:
    """Return how eight substances change that let plants react to light."""
    meeting = 280.0 * y[5] * y[7]
    return [
        -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
        1.71 * y[0] - 8.75 * y[1],
        -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
        8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
        -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
        -meeting + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
        meeting - 1.81 * y[6],
        1.81 * y[6] - meeting,
    ]


REACTIONS: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = [
    (0.35, (0,), (1, 2)),
    (26.6, (1, 3), (0,)),
    (12300.0, (4, 1), (0, 5)),
    (8.6e-4, (6,), (4, 4, 7)),
    (8.2e-4, (6,), (7,)),
    (15000.0, (6, 5), (4, 7)),
    (1.3e-4, (8,), (4, 7, 9)),
    (24000.0, (8, 5), (10,)),
    (16500.0, (10, 1), (0, 9, 11)),
    (9000.0, (10, 0), (12,)),
    (0.022, (12,), (0, 10)),
    (12000.0, (9, 1), (0, 13)),
    (1.88, (13,), (4, 6)),
    (16300.0, (0, 5), (14,)),
    (4.8e6, (2,), (3,)),
    (3.5e-4, (3,), (15,)),
    (0.0175, (3,), (2,)),
    (1e8, (15,), (5, 5)),
    (4.44e11, (15,), (2,)),
    (1240.0, (16, 5), (4, 17)),
    (2.1, (18,), (1,)),
    (5.78, (18,), (0, 2)),
    (0.0474, (0, 3), (18,)),
    (1780.0, (18, 0), (19,)),
    (3.12, (19,), (0, 18)),
]
"""Rate, substances that react, and those that come of it, in polluted air."""


def stoichiometry() -> tuple[Array, Array, Array]:
    """Return how much of each substance comes of each reaction, and which two react, the last number being 1."""
    table, places = np.zeros((20, len(REACTIONS))), np.full((len(REACTIONS), 2), 20)
    for column, (_, before, after) in enumerate(REACTIONS):
        for place in before:
            table[place, column] -= 1
        for place in after:
            table[place, column] += 1
        places[column, : len(before)] = before
    return table, places, np.array([rate for rate, _, _ in REACTIONS])


TABLE, PLACES, RATES = stoichiometry()


def pollution(_t: Any, y: Any) -> Any:
    """Return how twenty substances in polluted air change."""
    both = np.concatenate([y, np.ones(1)])[PLACES]
    return TABLE @ (RATES * both[:, 0] * both[:, 1])


def ring_modulator(t: Any, y: Any) -> Any:
    """Return how seven voltages and eight currents change in a circuit that mixes two signals by four diodes."""
    low, high = 0.5 * np.sin(2e3 * np.pi * t), 2.0 * np.sin(2e4 * np.pi * t)
    drops = np.stack(
        [
            y[2] - y[4] - y[6] - high,
            -y[3] + y[5] - y[6] - high,
            y[3] + y[4] + y[6] + high,
            -y[2] - y[5] + y[6] + high,
        ]
    )
    q = 40.67286402e-9 * (np.exp(17.7493332 * drops) - 1.0)
    return [
        (y[7] - 0.5 * y[9] + 0.5 * y[10] + y[13] - y[0] / 25e3) / 1.6e-8,
        (y[8] - 0.5 * y[11] + 0.5 * y[12] + y[14] - y[1] / 25e3) / 1.6e-8,
        (y[9] - q[0] + q[3]) / 2e-12,
        (-y[10] + q[1] - q[2]) / 2e-12,
        (y[11] + q[0] - q[2]) / 2e-12,
        (-y[12] - q[1] + q[3]) / 2e-12,
        (-y[6] / 50.0 + q[0] + q[1] - q[2] - q[3]) / 1e-8,
        -y[0] / 4.45,
        -y[1] / 4.45,
        (0.5 * y[0] - y[2] - 17.3 * y[9]) / 5e-4,
        (-0.5 * y[0] + y[3] - 17.3 * y[10]) / 5e-4,
        (0.5 * y[1] - y[4] - 17.3 * y[11]) / 5e-4,
        (-0.5 * y[1] + y[5] - 17.3 * y[12]) / 5e-4,
        (-y[0] + low - (50.0 + 36.3) * y[13]) / 2e-3,
        (-y[1] - (600.0 + 36.3) * y[14]) / 2e-3,
    ]


def akzo_nobel(_t: Any, y: Any) -> Any:
    """Return how five substances change while carbon dioxide flows in; the sixth is in equilibrium."""
    root = np.sqrt(y[1])
    r = [
        18.7 * y[0] ** 4 * root,
        0.58 * y[2] * y[3],
        0.58 / 34.4 * y[0] * y[4],
        0.09 * y[0] * y[3] ** 2,
        0.42 * y[5] ** 2 * root,
    ]
    inflow = 3.3 * (0.9 / 737.0 - y[1])
    return [
        -2.0 * r[0] + r[1] - r[2] - r[3],
        -0.5 * r[0] - r[3] - 0.5 * r[4] + inflow,
        r[0] - r[1] + r[2],
        -r[1] + r[2] - 2.0 * r[3],
        r[1] - r[2] + r[4],
        115.83 * y[0] * y[3] - y[5],
    ]


AKZO_START = [0.444, 0.00123, 0.0, 0.007, 0.0]
PROBLEMS = {
    "HIRES": Problem(
        hires,
        321.8122,
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
        [
            *(0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2),
            *(0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2),
        ],
        1e-17,
    ),
    "pollution": Problem(
        pollution,
        60.0,
        [0.0, 0.2, 0.0, 0.04, 0.0, 0.0, 0.1, 0.3, 0.01, *([0.0] * 7), 0.007, 0.0, 0.0, 0.0],
        [
            *(0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2),
            *(0.2018977262302196e-6, 0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018),
            *(0.7494013383880406e-2, 0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2),
            *(0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2, 0.4352846369330103e-17),
            *(0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4),
        ],
        1e-30,
    ),
    "ring modulator": Problem(
        ring_modulator,
        1e-3,
        [0.0] * 15,
        [
            *(-0.2339057358486745e-1, -0.7367485485540825e-2, 0.2582956709291169, -0.4064465721283450),
            *(-0.4039455665149794, 0.2607966765422943, 0.1106761861269975, 0.2939904342435596e-6),
            *(-0.2840029933642329e-7, 0.7267198267264553e-3, 0.7929487196960840e-3, -0.7255283495698965e-3),
            *(-0.7941401968526521e-3, 0.7088495416976114e-4, 0.2390059075236570e-4),
        ],
        1e-14,
        rtol=1e-11,
    ),
    "Akzo Nobel": Problem(
        akzo_nobel,
        180.0,
        [*AKZO_START, 115.83 * 0.444 * 0.007],
        [
            *(0.1150794920661702, 0.1203831471567715e-2, 0.1611562887407974, 0.3656156421249283e-3),
            *(0.1708010885264404e-1, 0.4873531310307455e-2),
        ],
        1e-17,
        np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
    ),
}


PROBLEMS["ring modulator, computed"] = PROBLEMS["ring modulator"]._replace(
    want=[
        *(-0.02339057358436, -0.007367485486019, 0.2582956709946, -0.4064465720562, -0.4039455664501),
        *(0.260796676615, 0.1106761861273, 2.939904342357e-07, -2.84002993308e-08, 0.0007267198267287),
        *(0.0007929487197019, -0.0007255283495767, -0.0007941401968552, 7.088495416879e-05, 2.390059075277e-05),
    ]
)
"""What is published for the ring modulator holds to 2.8e-10: this is what DOP853 gives at 1e-13 (75 million steps), of
which what it gives at 1e-11, Radau at 1e-12 and Rodas5P at 1e-11, 1e-12 and 1e-13 is no more than 4e-11 off."""


def solution_error(problem: Problem, method: str) -> float:
    """Return the largest error of the numbers at the end, relative to each."""
    options: dict[str, Any] = {"t_eval": [problem.end], "mass": problem.mass, "max_steps": 10_000_000}
    options |= {"rtol": problem.rtol, "atol": problem.atol}
    found = solve_ivp(problem.slope, (0.0, problem.end), problem.start, method, **options)
    return float(np.max(np.abs(found.y[:, -1] / problem.want - 1.0)))


def residual_error(problem: Problem, method: str) -> float:
    """Return the same where the equations are given by their residual, and algebraic states are solved for."""

    def residual(t: Any, y: Any, yp: Any) -> Any:
        return problem.mass @ yp - np.stack(problem.slope(t, y))

    start = np.where(np.any(problem.mass, axis=1), problem.start, 0.0)
    options: dict[str, Any] = {"t_eval": [problem.end], "max_steps": 10_000_000}
    options |= {"rtol": problem.rtol, "atol": problem.atol}
    found = solve_dae(residual, (0.0, problem.end), start, method=method, **options)
    return float(np.max(np.abs(found.y[:, -1] / problem.want - 1.0)))


def pendulum_error(method: str) -> float:
    """Return the largest error of places and speeds of a pendulum of length 1 after half its time, and all of it.

    It begins at rest beside its hinge. Tension follows from what the second derivative of its length is; with this
    gravity it swings for 2 (cvPendulum_dns).
    """
    gravity = 13.750371636040745

    def residual(_t: Any, y: Any, yp: Any) -> Any:
        tension = y[2] ** 2 + y[3] ** 2 - y[4] * (y[0] ** 2 + y[1] ** 2) - gravity * y[1]
        return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0], yp[3] + y[4] * y[1] + gravity, tension]

    options: dict[str, Any] = {"t_eval": [1.0, 2.0], "rtol": 1e-12, "atol": 1e-13, "max_steps": 10_000_000}
    found = solve_dae(residual, (0.0, 2.0), [1.0, 0.0, 0.0, 0.0, 0.0], method=method, **options)
    return float(np.max(np.abs(found.y[:4].T - [[-1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])))


def roberts_by_residual(p: Any) -> Any:
    """Return the first of three substances at all times but the last, where the sum of all is an equation."""

    def residual(_t: Any, y: Any, yp: Any) -> Any:
        slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] * y[1]
        return [yp[0] + slow - back, yp[1] - slow + back + fast, y[0] + y[1] + y[2] - 1.0]

    options: dict[str, Any] = {"t_eval": TIMES[:LAST], "rtol": 1e-10, "atol": [1e-12, 1e-18, 1e-12]}
    return solve_dae(residual, (0.0, TIMES[LAST - 1]), [1.0, 0.0, 0.5], method="Rodas5P", **options).y[0]


def roberts(_t: Any, y: Any, p: Any) -> Any:
    """Return how three substances change, and the integral of the third."""
    slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] * y[1]
    return [back - slow, slow - back - fast, fast, y[2]]


KINETICS = np.array([0.04, 1e4, 3e7])
TIMES = 0.4 * 10.0 ** np.arange(12)


def roberts_states(p: Any, times: Any, rtol: float = 1e-10) -> Any:
    """Return the three substances at times, and the integral of the third."""
    options: dict[str, Any] = {"t_eval": times, "rtol": rtol, "atol": 1e-18}
    return solve_ivp(roberts, (0.0, times[-1]), [1.0, 0.0, 0.0, 0.0], "Rodas5P", args=(p,), **options).y


def hessian_integral(p: Any) -> Any:
    """Return the integral of half the squares of three numbers that decay, by two rates."""

    def slope(_t: Any, y: Any) -> Any:
        squares = y[0] ** 2 + y[1] ** 2 + y[2] ** 2
        return [-p[0] * y[0] ** 2 - y[2], -y[1], -(p[1] ** 2) * y[1] * y[2], 0.5 * squares]

    options: dict[str, Any] = {"t_eval": [2.0], "rtol": 1e-10, "atol": 1e-10}
    return solve_ivp(slope, (0.0, 2.0), [1.0, 1.0, 1.0, 0.0], "RK45", **options).y[3, 0]


def lotka_volterra_loss(y0: Any, p: Any) -> Any:
    """Return half the squared distance of prey and predators from 1."""

    def slope(_t: Any, y: Any) -> Any:
        return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]

    options: dict[str, Any] = {"t_eval": [10.0], "rtol": 1e-12, "atol": 1e-14}
    return 0.5 * np.sum((1.0 - solve_ivp(slope, (0.0, 10.0), y0, "DOP853", **options).y[:, 0]) ** 2)


def akzo_nobel_integral(y0: Any) -> Any:
    """Return the integral of the first substance, by the first five at the beginning."""

    def slope(t: Any, y: Any) -> Any:
        return [*akzo_nobel(t, y[:6]), y[0]]

    start = np.concatenate([y0, np.stack([115.83 * y0[0] * y0[3], 0.0 * y0[0]])])
    options: dict[str, Any] = {
        "t_eval": [180.0],
        "rtol": 1e-10,
        "atol": 1e-13,
        "mass": np.diag([1.0, 1, 1, 1, 1, 0, 1]),
    }
    return solve_ivp(slope, (0.0, 180.0), start, "Rodas5P", **options).y[6, 0]


PRINTED = np.array(
    [
        *([-3.5595e-01, 9.5428e-08, -1.5833e-11], [-1.8760e00, 2.9615e-06, -4.9337e-10]),
        *([-4.2477e00, 1.3732e-05, -2.2885e-09], [-5.9588e00, 2.2740e-05, -3.7900e-09]),
        *([-4.7500e00, 1.8809e-05, -3.1348e-09], [-1.5752e00, 6.2882e-06, -1.0480e-09]),
        *([-2.3634e-01, 9.4507e-07, -1.5753e-10], [-2.5661e-02, 1.0262e-07, -1.7111e-11]),
        *([-2.5995e-03, 1.0395e-08, -1.7340e-12], [-2.6031e-04, 1.0412e-09, -1.7376e-13]),
        *([-2.6036e-05, 1.0415e-10, -1.7316e-14], [-2.6618e-06, 1.0763e-11, -1.7339e-15]),
    ]
)
"""How the first substance changes with the three rates, at `TIMES`, as cvsRoberts_FSA_dns prints it."""


class Derivative(NamedTuple):
    """Hold a derivative that has been published: what computes it, what was printed, and how far it may be off."""

    compute: Callable[[], Any]
    want: Any
    rtol: float


def roberts_integral(time: float) -> Callable[[], Any]:
    """Return what computes the gradient by rates of the integral of the third substance up to a time."""
    return lambda: wg.grad(lambda p: roberts_states(p, np.array([time]))[3, 0])(KINETICS)


LAST = len(TIMES) - 1
DERIVATIVES = {
    "Roberts, sensitivities but the last": Derivative(
        lambda: wg.jit(wg.jacfwd(lambda p: roberts_states(p, TIMES[:LAST])[0]))(KINETICS), PRINTED[:LAST], 4e-3
    ),
    "Roberts by residual, sensitivities but the last": Derivative(
        lambda: wg.jit(wg.jacfwd(roberts_by_residual))(KINETICS), PRINTED[:LAST], 4e-3
    ),
    "Roberts, the last sensitivities": Derivative(
        lambda: wg.jit(wg.jacfwd(lambda p: roberts_states(p, TIMES)[0, LAST:]))(KINETICS), PRINTED[LAST:], 4e-2
    ),
    "Roberts, integral to 4e7": Derivative(roberts_integral(4e7), [7.6842e05, -3.0691e00, 5.1145e-04], 2e-4),
    "Roberts, integral to 50": Derivative(roberts_integral(50.0), [1.7341e02, -5.0591e-04, 8.4323e-08], 1e-4),
    "three numbers, gradient": Derivative(
        lambda: wg.grad(hessian_integral)(np.array([1.0, 2.0])), [-1.2838e-01, 1.8036e-02], 1e-4
    ),
    "three numbers, Hessian": Derivative(
        lambda: wg.jit(wg.hessian(hessian_integral))(np.array([1.0, 2.0])),
        [[1.5628e-01, -7.8678e-02], [-7.8678e-02, 8.9814e-02]],
        1e-4,
    ),
    "Lotka-Volterra, state": Derivative(
        lambda: wg.grad(lotka_volterra_loss)(np.ones(2), np.array([1.5, 1.0, 3.0, 1.0])),
        [2.995996063968162e-01, -1.415181419752224e-02],
        1e-6,
    ),
    "Lotka-Volterra, rates": Derivative(
        lambda: wg.grad(lotka_volterra_loss, 1)(np.ones(2), np.array([1.5, 1.0, 3.0, 1.0])),
        [6.219617366263422e-01, 6.800142188057584e-02, 1.691765070484725e-01, 2.725607530918812e-01],
        1e-6,
    ),
    "Akzo Nobel, integral": Derivative(
        lambda: wg.grad(akzo_nobel_integral)(np.array(AKZO_START)),
        [2.2207e01, -6.2695e01, -2.5114e00, 9.1837e01, 3.5176e00],
        1e-4,
    ),
}
"""Of the examples cvsRoberts_FSA_dns, cvsRoberts_ASAi_dns, cvsHessian_ASA_FSA (whose second of the second it prints
otherwise since 6.0; differences that it prints beside give this one), cvsLotkaVolterra_ASA and idasAkzoNob_ASAi_dns."""


def derivative_error(derivative: Derivative) -> float:
    """Return the largest error of a derivative's numbers, relative to each."""
    found = np.asarray(derivative.compute())
    return float(np.max(np.abs(found / np.asarray(derivative.want) - 1.0)))


def rows() -> Iterator[tuple[str, float, float]]:
    """Yield names, errors, and seconds of processor time with tracing and compiling."""
    for name, problem in PROBLEMS.items():
        for method in ("Rodas5P",) if problem.slope is ring_modulator else ("Rodas5P", "Radau", "Kvaerno5", "BDF"):
            start = time.process_time()
            yield f"{name}, {method}", solution_error(problem, method), time.process_time() - start
    for method in ("Rodas5P", "Radau", "Kvaerno5", "BDF"):
        start = time.process_time()
        yield (
            f"Akzo Nobel by residual, {method}",
            residual_error(PROBLEMS["Akzo Nobel"], method),
            time.process_time() - start,
        )
        start = time.process_time()
        yield f"pendulum by residual, {method}", pendulum_error(method), time.process_time() - start
    for name, derivative in DERIVATIVES.items():
        start = time.process_time()
        yield name, derivative_error(derivative), time.process_time() - start


def main() -> None:
    """Print how far everything is from what is published."""
    for name, error, seconds in rows():
        print(f"{name:50}{error:10.1e}{seconds:8.1f} s")


if __name__ == "__main__":
    main()
