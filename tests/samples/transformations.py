"""Samples of the primitives that belong to transformations."""

from __future__ import annotations

import wengert as wg
from tests.samples.base import normal, sample

# the derivative of stop_gradient is zero by definition, not by differences: only values are compared
SAMPLES = [
    sample("stop_gradient", wg.stop_gradient, normal(), order=0),
    sample("stop_gradient", wg.stop_gradient, normal(3), order=0),
]
