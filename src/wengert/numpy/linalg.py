"""NumPy's names for linear algebra for Tensors: `wengert.numpy.linalg`."""

from typing import Any

import numpy as np

from wengert.numpy import _linalg, _shapes  # noqa: F401 - they enter their functions
from wengert.numpy._namespace import exported

_EXPORTED = {"LinAlgError": np.linalg.LinAlgError} | exported(np.linalg)
__all__ = sorted(_EXPORTED)


def __getattr__(name: str) -> Any:
    try:
        return _EXPORTED[name]
    except KeyError:
        raise AttributeError(f"module 'wengert.numpy.linalg' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
