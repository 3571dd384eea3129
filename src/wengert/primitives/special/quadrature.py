"""Quadrature rules on the interval from 0 to 1: pairs of nodes and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import roots_legendre

Nodes = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def legendre(count: int) -> Nodes:
    """Return the rule of Gauss and Legendre, for smooth integrands."""
    nodes, weights = roots_legendre(count)
    return (nodes + 1) / 2, weights / 2


def tanh_sinh(step: float, last: float) -> Nodes:
    """Return the rule of Takahasi and Mori (1974), whose nodes crowd at the ends: for integrands of several scales."""
    u = np.arange(-round(last / step), round(last / step) + 1) * step
    return 1 / (1 + np.exp(-np.pi * np.sinh(u))), step * np.pi * np.cosh(u) / (2 * np.cosh(np.pi / 2 * np.sinh(u))) ** 2


LEGENDRE = {count: legendre(count) for count in (16, 48)}
TANH_SINH = tanh_sinh(1 / 32, 3.2)
