"""NumPy's names for linear algebra for Tensors: `wengert.numpy.linalg`."""

import numpy as np

from wengert.numpy import _linalg, _shapes  # noqa: F401 - they enter their functions
from wengert.numpy._namespace import exported_functions

_EXPORTED = {"LinAlgError": np.linalg.LinAlgError} | exported_functions(np.linalg)
__all__ = sorted(_EXPORTED)
globals().update(_EXPORTED)  # a module's `__getattr__` would be called each time, after its globals were searched


def __dir__() -> list[str]:
    return __all__
