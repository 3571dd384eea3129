"""SciPy's special functions for Tensors: `wengert.scipy.special`.

Every function has SciPy's signature, takes Tensors, arrays and numbers, and returns Tensors. SciPy's own ufuncs do the
same when they are given Tensors.
"""

from typing import TYPE_CHECKING, Any

import scipy.special

from wengert.numpy._namespace import export_functions
from wengert.scipy import _special  # noqa: F401 - it enters its functions
from wengert.support.hints import names_on_demand

__all__ = export_functions(globals(), scipy.special)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.special")
