"""NumPy's names for linear algebra for Tensors: `wengert.numpy.linalg`."""

import numpy as np

from wengert.numpy import _linalg, _shapes  # noqa: F401 - they enter their functions
from wengert.numpy._namespace import export_functions

__all__ = export_functions(globals(), np.linalg, LinAlgError=np.linalg.LinAlgError)
