"""The part of `scipy.spatial` that has derivatives: `wengert.scipy.spatial.distance`."""

from wengert.scipy.spatial import distance

__all__ = ["distance"]
