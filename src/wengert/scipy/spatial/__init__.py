"""The part of `scipy.spatial` that has derivatives: `wengert.scipy.spatial.distance`."""

from typing import TYPE_CHECKING

from wengert.scipy.spatial import distance
from wengert.support.hints import names_on_demand

__all__ = ["distance"]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.scipy.spatial")
