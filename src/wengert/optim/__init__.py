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

from wengert.optim.drivers import curve_fit, least_squares, minimize, root
from wengert.optim.equations import anderson, fixed_point, root_scalar
from wengert.optim.files import load, save
from wengert.optim.optimizer import Optimizer
from wengert.optim.rules import (
    Rule,
    adagrad,
    adam,
    adamw,
    clipped,
    cosine,
    exponential,
    linear,
    lion,
    momentum,
    norm,
    piecewise,
    rmsprop,
    sgd,
    warmed_up,
)
from wengert.optim.sparse_constraints import constraint
from wengert.optim.training import train
from wengert.support.hints import names_on_demand

__all__ = [
    "Optimizer",
    "Rule",
    "adagrad",
    "adam",
    "adamw",
    "anderson",
    "clipped",
    "constraint",
    "cosine",
    "curve_fit",
    "exponential",
    "fixed_point",
    "least_squares",
    "linear",
    "lion",
    "load",
    "minimize",
    "momentum",
    "norm",
    "piecewise",
    "rmsprop",
    "root",
    "root_scalar",
    "save",
    "sgd",
    "train",
    "warmed_up",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.optim")
