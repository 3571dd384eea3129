"""How special functions are declared, and what their rules share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from scipy.special import roots_legendre

from wengert.core.primitives.declare import constant, elementwise, opaque
from wengert.core.primitives.kinds import Elementwise
from wengert.core.primitives.primitive import PRIMITIVES, PointRules, Primitive
from wengert.core.values.dispatch import is_weak, strengthen
from wengert.errors import DtypeError
from wengert.primitives.half_precision import rule_of_single
from wengert.support.refusals import refusal

Rule = Callable[..., Any]

OF_SCIPY: dict[np.ufunc, Primitive] = {}
"""The primitives of SciPy's ufuncs."""


def special(ufunc: np.ufunc, *rules: Rule | None, steep: bool = False, **points: Unpack[PointRules]) -> Elementwise:
    """Declare the primitive of one of SciPy's ufuncs, given the rule of each operand, and what it is at a point.

    It is `steep` if a partial can be infinite where the value is finite, as at the end of a domain.
    """
    name = ufunc.__name__.lstrip("_")
    name = f"scipy.{name}" if name in PRIMITIVES else name
    wide = [rule and rule_of_single(rule) for rule in rules]
    declared = [of_scalars(rule) if rule and len(rules) > 1 else rule for rule in wide]
    # SciPy's loops report what they meet to Python, from the thread that calls them
    found = OF_SCIPY[ufunc] = elementwise(
        name, ufunc, d=declared, singular=True, steep=steep, evaluate_large=False, **points
    )
    return found


def of_scalars(rule: Rule) -> Rule:
    """Return a rule that is given scalars of NumPy where all operands are Python numbers, which do not divide by 0.

    (Functions of one operand get them anyway.) What has no sign, or too few bits for floats of double precision, is
    whole numbers of 64 bits to it, which are orders and degrees as those of Python's are.
    """

    @functools.wraps(rule)
    def strong_rule(t: Any, out: Any, *operands: Any) -> Any:
        if all(x is None or is_weak(x) for x in operands):
            operands = tuple(x if x is None else strengthen(x) for x in operands)
        return rule(t, out, *map(widen_integers, operands))

    return strong_rule


def widen_integers(x: Any) -> Any:
    """Return unsigned and short integers as whole numbers of 64 bits, uint64 as floats, and others as they are."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "bui" or (dtype.kind == "i" and dtype.itemsize >= 4):
        return x
    return x.astype(np.int64 if dtype.itemsize < 8 else np.float64)


def several(ufunc: np.ufunc, *slopes: Callable[[Any], Any]) -> Primitive:
    """Declare the primitive of a ufunc of one operand with several results, given the derivative of each at x."""

    def vjp(cts: Any, _out: Any, x: Any) -> Any:
        """Sum over the results that have a cotangent."""
        terms = [ct * slope(x) for ct, slope in zip(cts, slopes, strict=True) if ct is not None]
        return sum(terms[1:], start=terms[0])

    found = OF_SCIPY[ufunc] = opaque(ufunc.__name__, ufunc, vjp=vjp, outputs=ufunc.nout)
    return found


def piecewise_constant(ufunc: np.ufunc, **points: Unpack[PointRules]) -> Primitive:
    """Declare the primitive of a ufunc that is constant between jumps."""
    name = ufunc.__name__
    found = OF_SCIPY[ufunc] = constant(f"scipy.{name}" if name in PRIMITIVES else name, ufunc, **points)
    return found


def refusing(name: str, operand: str) -> Rule:
    """Return the rule of an operand by which there is no derivative here: an error that says so."""

    def rule(_t: Any, _out: Any, *_rest: Any, **_params: Any) -> Any:
        needed = "an operand without derivative is needed there"
        action = "Pass a number, or the value through stop_gradient"
        raise refusal(DtypeError(f"scipy.special.{name}", f"{operand}, which is being differentiated", needed, action))

    rule.refuses = True  # type: ignore[attr-defined]  # read by the tests, which differentiate by all other operands
    return rule


def is_complex(x: Any) -> bool:
    """Tell whether an operand, which may be a Python number, is complex."""
    return isinstance(x, complex) if isinstance(x, int | float | complex) else x.dtype.kind == "c"


def flat(*operands: Any) -> tuple[np.dtype[Any], list[Any]]:
    """Return the dtype of a result, and operands of one shape in double precision, with an axis for points at the end.

    Derivatives that SciPy has no function for are computed in double precision; complex operands stay complex.
    """
    dtype = np.result_type(*operands)
    wide = np.result_type(dtype, np.float64)
    arrays = np.broadcast_arrays(*[np.asarray(x, wide) for x in operands])
    return (dtype if dtype.kind in "fc" else np.dtype(float)), [x[..., np.newaxis] for x in arrays]


# Quadrature rules on the interval from 0 to 1: pairs of nodes and weights

Nodes = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def legendre(count: int) -> Nodes:
    """Return the rule of Gauss and Legendre, for smooth integrands."""
    nodes, weights = roots_legendre(count)
    return (nodes + 1) / 2, weights / 2


def tanh_sinh(step: float, last: float) -> Nodes:
    """Return the rule of Takahasi and Mori (1974), whose nodes crowd at the ends: for integrands of several scales."""
    u = np.arange(-round(last / step), round(last / step) + 1) * step
    return 1 / (1 + np.exp(-np.pi * np.sinh(u))), step * np.pi * np.cosh(u) / (2 * np.cosh(np.pi / 2 * np.sinh(u))) ** 2


LEGENDRE = {count: legendre(count) for count in (16, 48)}
TANH_SINH = tanh_sinh(1 / 32, 3.2)
