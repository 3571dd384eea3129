"""Samples of the primitives that belong to transformations."""

from __future__ import annotations

import wengert as wg
from tests.samples.base import normal, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.conversion import overwritten, stand_in

# derivatives of these are what they are by definition, not by differences: only values are compared
SAMPLES = [
    sample("stop_gradient", wg.stop_gradient, normal(), order=0),
    sample("stop_gradient", wg.stop_gradient, normal(3), order=0),
    sample("stand_in", lambda x: apply(stand_in, x), normal(3), order=0),
    sample("overwritten", lambda old, new: apply(overwritten, old, new), normal(3), normal(3), order=0),
]
