"""Sparse derivatives: Jacobians and Hessians that know which of their elements may be other than zero."""

from wengert.sparse.coloring import Coloring
from wengert.sparse.coloring_methods import color

__all__ = ["Coloring", "color"]
