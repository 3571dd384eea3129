"""SciPy's Fourier, cosine and sine transforms for Tensors: `wengert.scipy.fft`.

Every function has SciPy's signature, takes Tensors, arrays and numbers, and returns Tensors. `workers`, `overwrite_x`
and `plan` are taken and not used.
"""

from typing import TYPE_CHECKING, Any

import scipy.fft

from wengert.numpy._namespace import export_functions
from wengert.scipy import _fft  # noqa: F401 - it enters its functions
from wengert.support.hints import names_on_demand

__all__ = export_functions(
    globals(),
    scipy.fft,
    fftfreq=scipy.fft.fftfreq,
    next_fast_len=scipy.fft.next_fast_len,
    prev_fast_len=scipy.fft.prev_fast_len,
    rfftfreq=scipy.fft.rfftfreq,
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.fft")
