"""Discrete cosine and sine transforms, of SciPy's four types."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply
from wengert.primitives.signals.fourier import Norm, receive_cotangent

TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type of the transposed transform, which is the inverse where the transform is orthogonal."""


def evaluate_real(
    x: Any, *, wave: Literal["dct", "dst"], kind: int, n: int, axis: int, norm: Norm, orthogonalize: bool
) -> Any:
    """Return SciPy's transform."""
    from scipy import fft

    return getattr(fft, wave)(x, kind, n, axis, norm, orthogonalize=orthogonalize)


def transpose_real(
    ct: Any, aval: Aval, *, wave: Literal["dct", "dst"], kind: int, n: int, axis: int, norm: Norm, orthogonalize: bool
) -> Any:
    """Return the transform of the transposed type; one that is not orthogonal has edges of twice the weight.

    With O orthogonal and E = diag(sqrt 2, 1, ...) at the edges, types 1 to 4 are E O E^-1, E O, O E^-1 and O.
    """
    if not orthogonalize and kind in (1, 2):
        ct = ct * edges(wave, kind, n, axis, ct, 2.0)
    params = {"wave": wave, "kind": TRANSPOSED[kind], "n": n, "axis": axis, "norm": norm}
    found = apply(real_fourier, ct, **params, orthogonalize=orthogonalize)
    if not orthogonalize and kind in (1, 3):
        found = found * edges(wave, kind, n, axis, found, 0.5)
    return receive_cotangent(found, aval, axis)


def edges(wave: str, kind: int, n: int, axis: int, like: Any, weight: float) -> Any:
    """Return ones along an axis, and a weight at the edges: of cosines at the first, of type 1 also at the last."""
    found = np.ones(n, like.real.dtype)
    if wave == "dct":
        found[[0, -1] if kind == 1 else [0]] = weight
    elif kind != 1:
        found[-1] = weight
    return found.reshape([-1 if i == axis else 1 for i in range(like.ndim)])


real_fourier: Primitive = linear(
    "real_fourier", evaluate_real, transpose=transpose_real, form=Routine("(n)->(m)", "axis"), fresh=True
)
