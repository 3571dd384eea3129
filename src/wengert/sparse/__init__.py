"""Sparse derivatives: Jacobians and Hessians that know which of their elements may be other than zero."""

from wengert.sparse.coloring import Coloring
from wengert.sparse.coloring_methods import color
from wengert.sparse.patterns import hessian_pattern, jacobian_pattern

__all__ = ["Coloring", "color", "hessian_pattern", "jacobian_pattern"]
