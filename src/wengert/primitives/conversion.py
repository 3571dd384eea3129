"""Conversions: copies, dtypes, real and imaginary parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.aval import Aval
from wengert.core.cotangent import match_dtype
from wengert.core.primitive import linear


def convert(x: Any, *, dtype: Any) -> Any:
    """Evaluate `astype`, always into memory of its own."""
    return x.astype(dtype) if isinstance(x, np.ndarray | np.generic) else np.asarray(x).astype(dtype)[()]


def duplicate(x: Any) -> Any:
    """Evaluate `copy`."""
    return x.copy() if isinstance(x, np.ndarray) else x


def transpose_imaginary(ct: Any, aval: Aval) -> Any:
    """Return -i ct: the imaginary part is the real part of -i z."""
    return ct * np.asarray(-1j, dtype=aval.dtype) if aval.dtype.kind == "c" else np.zeros(aval.shape, aval.dtype)


astype = linear("astype", convert, transpose=lambda ct, aval, dtype: match_dtype(ct, aval.dtype))
copy = linear("copy", duplicate, transpose=lambda ct, _aval: ct)
real = linear("real", np.real, transpose=lambda ct, aval: ct.astype(aval.dtype), view=True)
imag = linear("imag", np.imag, transpose=transpose_imaginary, view=True)
