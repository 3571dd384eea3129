"""Derivatives of losses over data that one process does not hold: on threads here, or on Dask's workers.

Data are `partitions` of rows; a loss is ordinary code for a block of rows, and what is summed over partitions is a
function of the parameters, for any optimiser:

>>> import numpy as np
>>> from wengert import distributed
>>> x, y = np.linspace(0.0, 1.0, 100), np.linspace(1.0, 4.0, 100)
>>> def loss(p, x, y):
...     return np.sum((p[0] * x + p[1] - y) ** 2)
>>> fun = distributed.value_and_grad(loss, distributed.partitions((x, y), count=4))
>>> value, gradient = fun(np.zeros(2))
>>> round(float(value), 3), np.round(gradient, 3)
(701.515, array([-301.01, -500.  ]))

Results have the same bits for any number of threads and workers.
"""

from typing import TYPE_CHECKING

from wengert.distributed.batches import Batches
from wengert.distributed.partitions import Partitions, partitions
from wengert.distributed.totals import (
    Total,
    gauss_newton_product,
    grad,
    hvp,
    normal_equations,
    total,
    value_and_grad,
)
from wengert.support.hints import names_on_demand

__all__ = [
    "Batches",
    "Partitions",
    "Total",
    "gauss_newton_product",
    "grad",
    "hvp",
    "normal_equations",
    "partitions",
    "total",
    "value_and_grad",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.distributed")
