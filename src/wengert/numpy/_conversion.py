"""Conversions with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.dispatch import apply, as_tensor, implements
from wengert.core.tensor import Tensor
from wengert.primitives import conversion

__all__: list[str] = []


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the elements converted to another dtype; see `numpy.astype`."""
    tensor = as_tensor(x)
    dtype = np.dtype(dtype)
    if dtype == tensor.dtype and not copy:
        return tensor
    return apply(conversion.astype, tensor, dtype=dtype)  # type: ignore[no-any-return]


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """Return a copy; see `numpy.copy`."""
    return apply(conversion.copy, as_tensor(a))  # type: ignore[no-any-return]


@implements(np.real)
def real(val: Any) -> Tensor:
    """Return the real part; see `numpy.real`."""
    return apply(conversion.real, as_tensor(val))  # type: ignore[no-any-return]


@implements(np.imag)
def imag(val: Any) -> Tensor:
    """Return the imaginary part; see `numpy.imag`."""
    return apply(conversion.imag, as_tensor(val))  # type: ignore[no-any-return]
