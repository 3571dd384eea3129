"""SciPy's names for linear algebra for Tensors: `wengert.scipy.linalg`.

Every function has SciPy's signature, takes Tensors, arrays and numbers, and returns Tensors. Options that allow SciPy
to overwrite its arguments are taken and not used: arguments are never overwritten here.
"""

from typing import TYPE_CHECKING, Any

import scipy.linalg

from wengert.numpy._namespace import export_functions
from wengert.scipy import _matrix_equations, _matrix_functions  # noqa: F401 - they enter their functions
from wengert.support.hints import names_on_demand

__all__ = export_functions(
    globals(), scipy.linalg, LinAlgError=scipy.linalg.LinAlgError, LinAlgWarning=scipy.linalg.LinAlgWarning
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.linalg")
