"""Solutions between steps: functions of time, differentiable like what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import elements, require_number
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError, UsageError
from wengert.scipy.integrate._methods.adaptive_steps import Method, interpolated


class OdeSolution:
    """Be the solution of an integration as a function of time, as SciPy's.

    Attributes:
        ts: the times between which the pieces are, of shape (pieces + 1,).
        t_min: the first of them in order.
        t_max: the last.
    """

    def __init__(self, table: Method, ts: Any, starts: Any, sizes: Any, states: Any, coefficients: Any) -> None:
        self.table = table
        self.ts = ts
        self.starts, self.sizes, self.states, self.coefficients = starts, sizes, states, coefficients
        known = np.asarray(elements(ts))
        self.ascending = bool(known[-1] >= known[0])
        self.order = known if self.ascending else known[::-1]
        self.t_min, self.t_max = self.order[0], self.order[-1]

    def __call__(self, t: Any) -> Any:
        """Return the state at a time, of shape (n,), or at times of shape (m,), of shape (n, m)."""
        require_number("OdeSolution", "t", t)
        known = elements(t)
        if known is None:
            given = "times that are being traced, or differ from lane to lane"
            raise UsageError("OdeSolution", given, "numbers are needed to find the pieces", "Pass t_eval to solve_ivp")
        if np.ndim(known) > 1:
            given = f"times of shape {np.shape(known)}"
            raise ShapeError("OdeSolution", given, "a number or one axis is needed", "Reshape them")
        count = len(self.order) - 1
        place = np.searchsorted(self.order, known, side="left" if self.ascending else "right") - 1
        place = np.clip(place, 0, count - 1)
        place = place if self.ascending else count - 1 - place
        part = (as_tensor(t) - self.starts[place]) / self.sizes[place]
        if np.ndim(known):
            part = part[:, None]
        coefficients = [self.coefficients[place, i] for i in range(self.coefficients.shape[1])]
        found = interpolated(self.table, self.states[place], coefficients, part).T
        plain = not any(type(x) is Tensor for x in (t, self.states, self.coefficients))
        return found.numpy() if plain and type(found) is Tensor else found
