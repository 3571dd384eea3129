"""The part of `numpy.lib` that has a meaning for Tensors: `wengert.numpy.lib.stride_tricks`."""

from wengert.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
