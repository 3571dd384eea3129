"""NumPy's names for Fourier transforms for Tensors: `wengert.numpy.fft`."""

import numpy as np

from wengert.numpy import _fft  # noqa: F401 - they enter their functions
from wengert.numpy._namespace import exported_functions

_EXPORTED = exported_functions(np.fft)
__all__ = sorted(_EXPORTED)
globals().update(_EXPORTED)  # a module's `__getattr__` would be called each time, after its globals were searched


def __dir__() -> list[str]:
    return __all__
