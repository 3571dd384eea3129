"""SciPy's names for Tensors, under SciPy's paths: `wengert.scipy.linalg` and others, each imported on first use."""

import importlib
from typing import Any

__all__ = ["integrate", "interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"wengert.scipy.{name}")
    raise AttributeError(f"module 'wengert.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
