"""NumPy's names for Tensors: `import wengert.numpy as wnp`.

Every function has NumPy's signature, takes Tensors, arrays and numbers, and returns Tensors. The same functions are
what `numpy.` functions do when they are given Tensors.
"""

from typing import Any

from wengert.numpy import _conversion, _reductions, _selection, _shapes, _ufuncs
from wengert.numpy._namespace import exported

_MODULES = (_conversion, _reductions, _selection, _shapes, _ufuncs)
_EXPORTED = exported()
__all__ = sorted(_EXPORTED)


def __getattr__(name: str) -> Any:
    try:
        return _EXPORTED[name]
    except KeyError:
        raise AttributeError(f"module 'wengert.numpy' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
