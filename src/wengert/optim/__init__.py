"""Optimising: SciPy's drivers on any container, and the update rules that train models.

>>> import numpy as np
>>> from wengert import optim
>>> def loss(parameters):
...     return np.sum((parameters["w"] - 2.0) ** 2) + parameters["b"] ** 2
>>> found = optim.minimize(loss, {"w": np.zeros(2), "b": 1.0})
>>> bool(found.success), np.round(found.x["w"], 6)
(True, array([2., 2.]))

Rules are pairs of functions, `init` and `update`, on containers of arrays:

>>> import wengert as wg
>>> init, update = optim.adam(0.1)
>>> parameters = {"w": np.zeros(2), "b": 1.0}
>>> state = init(parameters)
>>> for _ in range(200):
...     parameters, state = update(wg.grad(loss)(parameters), state, parameters)
>>> np.round(parameters["w"], 2)
array([2., 2.])
"""

from typing import TYPE_CHECKING

from wengert._otherwise import absent
from wengert.optim.drivers import curve_fit, least_squares, minimize, root
from wengert.optim.files import load, save
from wengert.optim.optimizer import Optimizer
from wengert.optim.rules import Rule, adam, adamw, clipped, momentum, norm, rmsprop, sgd
from wengert.optim.schedules import cosine, exponential, linear, piecewise, warmed_up

__all__ = [
    "Optimizer",
    "Rule",
    "adam",
    "adamw",
    "clipped",
    "cosine",
    "curve_fit",
    "exponential",
    "least_squares",
    "linear",
    "load",
    "minimize",
    "momentum",
    "norm",
    "piecewise",
    "rmsprop",
    "root",
    "save",
    "sgd",
    "warmed_up",
]

if not TYPE_CHECKING:
    OWN = "scipy.optimize's own, with wengert.jit(wengert.grad(f)) where it takes a derivative"
    OTHERWISE = {
        **{name: f"Optimizer(parameters, {name.lower()}(rate))" for name in ("Adam", "AdamW", "RMSprop", "SGD")},
        **dict.fromkeys(("basinhopping", "differential_evolution", "dual_annealing", "shgo"), OWN),
        **dict.fromkeys(("linprog", "milp", "nnls", "linear_sum_assignment", "isotonic_regression"), OWN),
        **dict.fromkeys(("Bounds", "LinearConstraint", "NonlinearConstraint"), "scipy.optimize's own"),
        "LBFGS": 'minimize(loss, parameters, method="L-BFGS-B")',
        "approx_fprime": "wengert.grad, or wengert.jacobian",
        "apply_updates": "update of a rule, which returns the new parameters",
        "bisect": "root(f, x0)",
        "brentq": "root(f, x0)",
        "chain": "clipped(rule, norm), or a Rule(init, update) of your own",
        "clip_grad_norm_": "clipped(rule, norm)",
        "fixed_point": "root(lambda x: f(x) - x, x0)",
        "fsolve": "root(f, x0)",
        "global_norm": "norm(x)",
        "leastsq": "least_squares(residuals, x0)",
        "lr_scheduler": "a schedule for the rate: cosine, exponential, linear, piecewise or warmed_up",
        "minimize_scalar": "minimize(f, x0) of a number x0",
        "newton": "root(f, x0)",
        "root_scalar": "root(f, x0) of a number x0",
        "zero_grad": "the method of Optimizer",
    }
    __getattr__ = absent("wengert.optim", OTHERWISE)
