"""SciPy's names for Tensors, under SciPy's paths: `wengert.scipy.linalg` and others, each imported on first use."""

import importlib
from typing import Any

__all__ = ["integrate", "interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats"]

OTHERWISE = {
    "fft": "numpy.fft",
    "optimize": "wengert.optim: minimize, least_squares, root and curve_fit",
    "sparse": "scipy.sparse: matrix @ x for a matrix that is constant",
}
"""What is written for modules of SciPy's that are not here."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"wengert.scipy.{name}")
    said = f"; write {OTHERWISE[name]}" if name in OTHERWISE else ""
    raise AttributeError(f"module 'wengert.scipy' has no attribute {name!r}{said}")


def __dir__() -> list[str]:
    return __all__
