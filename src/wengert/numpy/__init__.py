"""NumPy's names for Tensors: `import wengert.numpy as wnp`.

Every function has NumPy's signature, takes Tensors, arrays and numbers, and returns Tensors. The same functions are
what `numpy.` functions do when they are given Tensors.
"""

from typing import Any

import numpy as np

from wengert.numpy import (  # noqa: F401 - they enter their functions
    _accumulations,
    _application,
    _axes,
    _contractions,
    _conversion,
    _creation,
    _indexing,
    _joining,
    _methods,
    _padding,
    _polynomials,
    _reductions,
    _selection,
    _shapes,
    _sorting,
    _statistics,
    _torch_methods,
    _ufuncs,
    lib,
)
from wengert.numpy._namespace import NUMPYS_OWN, enter_plain_functions, function_names, plain_names, public_function
from wengert.support.hints import names_on_demand

enter_plain_functions()
_OBJECTS = {**plain_names(), "lib": lib, "vectorize": _application.vectorize, **_creation.OBJECTS}
_FUNCTIONS = frozenset(function_names()) - _OBJECTS.keys()
_LATER = ("fft", "linalg")  # which take a tenth of the import
__all__ = sorted([*_OBJECTS, *_FUNCTIONS, *_LATER])
__array_api_version__ = "2024.12"
__array_namespace_info__ = np.__array_namespace_info__  # dtypes and devices are NumPy's
globals().update(_OBJECTS)

_others = names_on_demand("wengert.numpy", _LATER, NUMPYS_OWN)


def __getattr__(name: str) -> Any:
    if name not in _FUNCTIONS:
        return _others(name)
    # made when it is first asked for: all of them take 3 % of the import
    found = globals()[name] = public_function(np, name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *NUMPYS_OWN})
