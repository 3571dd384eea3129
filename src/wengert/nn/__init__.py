"""What networks are made of: `wengert.nn.functional`."""

from wengert.nn import functional

__all__ = ["functional"]
