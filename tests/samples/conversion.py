"""Samples of conversions, rounding, predicates and creation."""

from __future__ import annotations

import numpy as np

from tests.samples.base import fixed, normal, positive, sample, spaced, uniform
from wengert.core.values.dispatch import apply, weaken
from wengert.primitives import conversion

COMPLEX = normal(3, seed=1) + 1j * normal(3, seed=2)
HOLES = np.array([1.5, np.nan, -np.inf, np.inf, -2.0])

SAMPLES = [
    sample("astype", lambda x: np.astype(x, np.float64), normal(2, 3)),
    sample("astype", lambda x: np.astype(x, np.complex128), normal(2, 3)),
    sample("astype", lambda x: np.astype(x, np.int64), spaced(3), order=0),
    sample("astype", lambda x: np.astype(x, np.float64), normal()),
    sample("copy", np.copy, normal(2, 3)),
    sample("copy", np.copy, normal()),
    sample("laid_as", lambda x, y: apply(conversion.laid_as, x, y.T, order="K"), normal(2, 3), normal(2, 3, seed=1)),
    sample("real", np.real, normal(2, 3)),
    sample("real", np.real, COMPLEX),
    sample("imag", np.imag, COMPLEX),
    sample("imag", np.imag, normal(3)),
    sample("arctan2", np.angle, COMPLEX),
    sample("arctan2", lambda z: np.angle(z, deg=True), COMPLEX),
    sample("angle", np.angle, spaced(4)),
    sample("real", lambda x: np.real_if_close(x + 0j), normal(3)),
    sample("real", np.real_if_close, COMPLEX),
    sample("fitted", lambda x: apply(conversion.fitted, x, dtype=np.dtype(np.int8)), spaced(5), order=0),
    sample("whole", lambda x: apply(conversion.whole, x), spaced(5), order=0),
    sample("raised", lambda x: apply(conversion.raised, x, error=ValueError("bad")), np.array(False), order=0),
    sample("round", np.round, spaced(5)),
    sample("round", lambda x: np.round(x, 1), spaced(5) + 0.02),
    sample("trunc", np.fix, spaced(5) + 0.02),
    sample("nan_to_num", np.nan_to_num, normal(2, 3)),
    sample("nan_to_num", lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3.0), HOLES, order=0),
    sample("unwrap", np.unwrap, np.array([0.1, 3.0, -3.0, 2.9, 9.5])),
    sample("unwrap", np.unwrap, uniform(-9, 9, 3, 4), axis=0, period=4.0),
    sample("isclose", np.isclose, normal(3), normal(3, seed=1)),
    sample("isclose", np.isclose, normal(2, 1), normal(3, seed=1), equal_nan=True),
    sample("array_equal", np.array_equal, normal(3), normal(3, seed=1)),
    sample("array_equiv", np.array_equiv, normal(3), normal(3, seed=1)),
    sample("isreal", np.isreal, COMPLEX),
    sample("iscomplex", np.iscomplex, COMPLEX),
    sample("isposinf", np.isposinf, normal(3)),
    sample("isneginf", np.isneginf, normal(3)),
    sample("linspace", np.linspace, normal(), normal(seed=1), 5),
    sample("linspace", np.linspace, normal(2), normal(3, 1, seed=1), 4, axis=-1),
    sample("linspace", np.linspace, normal(2), 1.0, 4, endpoint=False, retstep=True),
    sample("linspace", np.linspace, normal(), normal(seed=1), 1),
    sample("linspace", np.linspace, normal(), normal(seed=1), 0),
    sample("linspace", np.logspace, normal(), normal(seed=1), 5),
    sample("linspace", lambda a, b, c: np.logspace(a, b, 4, base=c), normal(2), normal(2, seed=1), positive(2)),
    sample("linspace", np.geomspace, positive(), positive(seed=1), 5),
    sample("linspace", np.geomspace, -positive(2), -positive(2, seed=1), 4, axis=1),
    sample("broadcast_to", lambda x: np.full_like(x, x.sum()), normal(2, 2)),
    sample("astype", lambda x: np.zeros_like(x) + np.ones_like(x) * x.astype(float), normal(3)),
    sample("nan_to_num", np.nan_to_num, fixed(np.arange(3))),
    sample("number", lambda x: x * weaken(np.sum(x)), normal(3)),
    sample("packbits", np.packbits, fixed(np.array([[1, 0, 1], [0, 1, 1]], np.uint8)), axis=1),
    sample("unpackbits", np.unpackbits, fixed(np.array([7, 130], np.uint8)), count=12),
]
