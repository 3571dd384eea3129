"""NumPy's names for windows on Tensors: `wengert.numpy.lib.stride_tricks`."""

from typing import Any

import numpy as np

from wengert.numpy import _shapes  # noqa: F401 - it enters its functions
from wengert.numpy._namespace import exported

_EXPORTED = exported(np.lib.stride_tricks)
__all__ = sorted(_EXPORTED)


def __getattr__(name: str) -> Any:
    try:
        return _EXPORTED[name]
    except KeyError:
        raise AttributeError(f"module 'wengert.numpy.lib.stride_tricks' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
