"""NumPy's own faults: ufuncs whose inner loops go wrong where the results have gaps between them.

`negative` (NumPy 2.1 to 2.4 at least) reads 32-bit numbers 4 elements apart, and 64-bit ones 8 apart, as if there were
no gaps between them. `isfinite`, `isinf`, `isnan` and `signbit` of float32 and float64 put 16 results and more in
wrong places. Results in new memory have no gaps, so only `out=` is affected. A test asks NumPy for others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FAULTY = frozenset({np.negative, np.isfinite, np.isinf, np.isnan, np.signbit})
"""Ufuncs that must not be given `out=` with gaps."""


def compute_into(out: np.ndarray[Any, Any], ufunc: np.ufunc, *operands: Any) -> None:
    """Write what a ufunc gives into an array that may be any view: in place, or apart and copied if it is faulty.

    >>> columns = np.zeros((2, 9))
    >>> compute_into(columns[:, :1], np.negative, np.arange(16.0).reshape(2, 8)[:, :1])
    >>> columns[:, 0]
    array([-0., -8.])
    """
    if ufunc in FAULTY:
        out[...] = ufunc(*operands)
    else:
        ufunc(*operands, out=out)
