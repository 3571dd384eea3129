"""`solve_ivp(gradient="continuous")`: derivatives by equations for cotangents and tangents along the solution."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import UsageError
from wengert.scipy.integrate import solve_ivp


def total(x, method="RK23", tol=1e-6):
    """Return the sum of two states of y' = -x[1] y^2, y(0) = x[0], at half of the time x[2] and at the end."""
    options = {"method": method, "rtol": tol, "atol": tol, "gradient": "continuous", "args": (x[1],)}
    times = np.stack([0.5 * x[2], x[2]])
    return np.sum(solve_ivp(lambda t, y, k: -k * y * y, (0.0, x[2]), x[:1], t_eval=times, **options).y)


def exact(x):
    return x[0] / (1.0 + x[0] * x[1] * x[2]) + x[0] / (1.0 + 0.5 * x[0] * x[1] * x[2])


X = np.array([1.0, 0.9, 1.3])


def test_derivatives_are_those_of_the_solution():
    lanes = np.stack([X, 1.1 * X])
    want = [wg.grad(exact)(x) for x in lanes]
    found, forward = wg.jit(lambda xs: (wg.vmap(wg.grad(total))(xs), wg.jvp(total, (xs[0],), (X,))[1]))(lanes)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(forward, want[0] @ X, rtol=1e-5)
    no_states = {"y0": np.zeros(0), "t_eval": [1.0], "gradient": "continuous"}
    assert wg.grad(lambda k: k + np.sum(solve_ivp(lambda t, y: -k * y, (0.0, 1.0), **no_states).y))(2.0) == 1.0


def test_what_it_does_not_serve_is_refused():
    for more in ({"t_eval": None}, {"events": lambda t, y: y[0]}, {"method": "RK4", "step": 0.1}, {"y0": [1j]}):
        options = {"y0": [1.0], "t_eval": [1.0], "gradient": "continuous", **more}
        with pytest.raises(UsageError, match="gradient='continuous' with"):
            solve_ivp(lambda t, y: -y, (0.0, 1.0), **options)
