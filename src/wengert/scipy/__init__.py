"""SciPy's names for Tensors, under SciPy's paths: `wengert.scipy.linalg` and others, each imported on first use."""

from wengert.support.hints import names_on_demand

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]

__getattr__ = names_on_demand("wengert.scipy", __all__)


def __dir__() -> list[str]:
    return __all__
