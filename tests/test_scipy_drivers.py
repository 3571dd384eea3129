"""SciPy's drivers whose functions return plain Tensors: they get ndarrays where they count on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.differentiate
import scipy.integrate
import scipy.optimize
import scipy.sparse.linalg
from scipy.optimize import elementwise

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.errors import GraphError

A = np.array([[3.0, 1.0], [1.0, 2.0]])
ZEROS = np.zeros(2)
Give = Callable[[Any], Any]


def value(give: Give) -> Callable[..., Any]:
    return lambda x, *_: give(np.sum((x - 1) ** 2))


def slope(give: Give) -> Callable[..., Any]:
    return lambda x, *_: give(2 * (x - 1))


def curvature(give: Give) -> Callable[..., Any]:
    return lambda x, *_: give(2 * np.eye(2))


def minimizing(method: str, **more: Any) -> Callable[[Give], Any]:
    """Return what minimises with functions of all orders that a method takes."""

    def run(give: Give) -> Any:
        options = {key: make(give) for key, make in more.items()}
        return scipy.optimize.minimize(value(give), give(ZEROS + 0.1), method=method, **options).x

    return run


def constraints(give: Give) -> Any:
    return {"type": "ineq", "fun": lambda x: give(x[:1] - 0.5), "jac": lambda x: give(np.array([[1.0, 0.0]]))}


def residuals(give: Give) -> Callable[..., Any]:
    return lambda x, *_: give(A @ x - 1.0)


def field(give: Give) -> Callable[..., Any]:
    return lambda t, y: give(np.stack([y[1], -y[0]]))


def model(give: Give) -> Callable[..., Any]:
    return lambda x, a, b: give(a * np.asarray(x) + b)


T = np.linspace(0.0, 1.0, 5)
DRIVERS: dict[str, Callable[[Give], Any]] = {
    "BFGS": minimizing("BFGS", jac=slope),
    "L-BFGS-B": minimizing("L-BFGS-B", jac=slope, bounds=lambda _: [(0, 3)] * 2),
    "TNC": minimizing("TNC", jac=slope),
    "SLSQP": minimizing("SLSQP", jac=slope, constraints=constraints),
    "SLSQP, numerically": minimizing("SLSQP"),
    "COBYLA": minimizing("COBYLA", constraints=lambda give: [constraints(give)]),
    "trust-ncg": minimizing("trust-ncg", jac=slope, hess=curvature),
    "Newton-CG": minimizing("Newton-CG", jac=slope, hessp=lambda give: lambda x, p: give(2 * p)),
    "both at once": lambda give: (
        scipy.optimize.minimize(lambda x: (value(give)(x), slope(give)(x)), ZEROS, jac=True, method="SLSQP").x
    ),
    "fmin_l_bfgs_b": lambda give: scipy.optimize.fmin_l_bfgs_b(value(give), ZEROS, slope(give))[0],
    **{
        f"least_squares {method}": lambda give, m=method: (
            scipy.optimize.least_squares(residuals(give), give(ZEROS), jac=lambda x: give(A), method=m).x
        )
        for method in ("trf", "dogbox", "lm")
    },
    "root": lambda give: scipy.optimize.root(lambda x: (residuals(give)(x), give(A)), give(ZEROS), jac=True).x,
    "krylov": lambda give: scipy.optimize.root(residuals(give), ZEROS, method="krylov").x.round(4),
    "fsolve": lambda give: scipy.optimize.fsolve(residuals(give), ZEROS, fprime=lambda x: give(A)),
    "leastsq": lambda give: scipy.optimize.leastsq(residuals(give), ZEROS)[0],
    "curve_fit": lambda give: scipy.optimize.curve_fit(model(give), give(T), give(2 * T + 1))[0].round(6),
    "curve_fit with slopes": lambda give: scipy.optimize.curve_fit(
        model(give), T, 2 * T + 1, jac=lambda x, a, b: give(np.stack([x, np.ones(5)], 1)), method="trf"
    )[0].round(6),
    "brentq": lambda give: scipy.optimize.brentq(lambda x: give(np.asarray(x**2 - 2)), 0.0, 2.0),
    "find_root": lambda give: elementwise.find_root(lambda x: give(np.asarray(x) ** 2 - 2), (0.0, 2.0)).x,
    "linprog": lambda give: scipy.optimize.linprog(give(np.ones(2)), A_ub=give(-A), b_ub=give(-np.ones(2))).x,
    "isotonic": lambda give: scipy.optimize.isotonic_regression(give(np.array([1.0, 3.0, 2.0]))).x,
    **{
        f"solve_ivp {method}": lambda give, m=method: scipy.integrate.solve_ivp(
            field(give), (0.0, 0.1), give(np.array([1.0, 0.0])), method=m
        ).y[:, -1]
        for method in ("RK45", "Radau", "LSODA")
    },
    "odeint": lambda give: scipy.integrate.odeint(field(give), [1.0, 0.0], [0.0, 0.1], tfirst=True)[-1],
    "quad": lambda give: scipy.integrate.quad(lambda x: give(np.exp(-np.asarray(x))), 0.0, 1.0)[0],
    "quad_vec": lambda give: scipy.integrate.quad_vec(lambda x: give(np.array([x, x * x])), 0.0, 1.0)[0],
    "tanhsinh": lambda give: scipy.integrate.tanhsinh(lambda x: give(np.exp(-np.asarray(x))), 0.0, 1.0).integral,
    "derivative": lambda give: scipy.differentiate.derivative(lambda x: give(np.asarray(x) ** 2), 1.5).df,
    "gmres": lambda give: scipy.sparse.linalg.gmres(
        scipy.sparse.linalg.LinearOperator((2, 2), lambda v: give(A @ v), dtype=float), give(np.ones(2))
    )[0],
}


@together("name", DRIVERS)
@pytest.mark.filterwarnings("ignore")
def test_drivers_take_plain_tensors(name: str) -> None:
    wanted = DRIVERS[name](np.asarray)
    for give in (wg.tensor, wnp.asarray, lambda x: wg.tensor(np.stack([x, x]))[0]):
        np.testing.assert_allclose(DRIVERS[name](give), wanted, rtol=1e-9, atol=1e-12)


def test_what_they_write_to_is_their_own() -> None:
    kept = wg.tensor(np.array([3.0, 1.0, 2.0]))
    scipy.optimize.isotonic_regression(kept)
    assert kept.tolist() == [3.0, 1.0, 2.0]
    assert not np.asarray(kept).flags.writeable


def test_tensors_that_require_grad_are_refused() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match=r"Write what is minimised|detach"):
        scipy.optimize.minimize(value(np.asarray), ZEROS, jac=lambda x: w * x, method="L-BFGS-B")
