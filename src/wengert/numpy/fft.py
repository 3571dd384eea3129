"""NumPy's names for Fourier transforms for Tensors: `wengert.numpy.fft`."""

import numpy as np

from wengert.numpy import _fft  # noqa: F401 - they enter their functions
from wengert.numpy._namespace import export_functions

__all__ = export_functions(globals(), np.fft)
