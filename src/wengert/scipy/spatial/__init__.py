"""The part of `scipy.spatial` that has derivatives: `wengert.scipy.spatial.distance`."""

from typing import TYPE_CHECKING, Any

from wengert.numpy._left_out import named_on_demand
from wengert.scipy.spatial import distance

__all__ = ["distance"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = named_on_demand("scipy.spatial")
