"""NumPy's names for windows on Tensors: `wengert.numpy.lib.stride_tricks`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.numpy import _shapes  # noqa: F401 - it enters its functions
from wengert.numpy._namespace import export_functions

__all__ = export_functions(globals(), np.lib.stride_tricks)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
