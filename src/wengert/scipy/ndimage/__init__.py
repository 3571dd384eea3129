"""Filters and interpolation of images of any dimension with SciPy's names and signatures: `wengert.scipy.ndimage`.

Images, weights, widths of Gaussians, coordinates, shifts, matrices and angles are differentiated. Results have the
dtype of the image.
"""

from typing import TYPE_CHECKING

from wengert.scipy.ndimage._filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from wengert.scipy.ndimage._interpolation import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from wengert.support.hints import names_on_demand

__all__ = [
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "laplace",
    "map_coordinates",
    "prewitt",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.ndimage")
