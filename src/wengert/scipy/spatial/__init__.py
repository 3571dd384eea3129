"""The part of `scipy.spatial` that has derivatives: `wengert.scipy.spatial.distance`."""

from typing import TYPE_CHECKING, Any

from wengert.scipy.spatial import distance
from wengert.support.hints import names_on_demand

__all__ = ["distance"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = names_on_demand("wengert.scipy.spatial")
