"""Sparse derivatives: Jacobians and Hessians that know which of their elements may be other than zero."""

from wengert.sparse.coloring.coloring import Coloring
from wengert.sparse.coloring.coloring_methods import color
from wengert.sparse.patterns.pattern_functions import hessian_pattern, jacobian_pattern
from wengert.sparse.plans.plan import Plan, load_plan
from wengert.sparse.sparse_functions import (
    hessian,
    jacobian,
    lagrangian_hessian,
    value_and_hessian,
    value_and_jacobian,
)

__all__ = [
    "Coloring",
    "Plan",
    "color",
    "hessian",
    "hessian_pattern",
    "jacobian",
    "jacobian_pattern",
    "lagrangian_hessian",
    "load_plan",
    "value_and_hessian",
    "value_and_jacobian",
]
