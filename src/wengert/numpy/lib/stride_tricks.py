"""NumPy's names for windows on Tensors: `wengert.numpy.lib.stride_tricks`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.numpy import _shapes  # noqa: F401 - it enters its functions
from wengert.numpy._namespace import exported_functions

_EXPORTED = exported_functions(np.lib.stride_tricks)
__all__ = sorted(_EXPORTED)
globals().update(_EXPORTED)  # a module's `__getattr__` would be called each time, after its globals were searched

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def __dir__() -> list[str]:
    return __all__
