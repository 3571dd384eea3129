"""Half precision: sums and counts of rules in single precision, as NumPy's own sums are.

A float16 has no number above 65,504, which counts and sums soon are, and 11 bits, of which a sum one by one keeps none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply

HALF = np.dtype(np.float16)
SINGLE = np.dtype(np.float32)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype is that of half precision."""
    return dtype is HALF


def widen(x: Any) -> Any:
    """Return an array of half precision in single precision, and any other value as it is."""
    return x.astype(SINGLE) if getattr(x, "dtype", None) == HALF else x


def narrow(x: Any) -> Any:
    """Return an array of single precision in half precision, and any other value as it is."""
    return x.astype(HALF) if getattr(x, "dtype", None) == SINGLE else x


def divide_by_count(x: Any, count: Any) -> Any:
    """Return numbers divided by a count, for which half precision may have no room."""
    return x / count if x.dtype is not HALF else narrow(widen(x) / count)


def in_single_precision(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Return an evaluation that computes with arrays of half precision in single precision."""

    @functools.wraps(evaluate)
    def evaluate_wide(x: Any, *rest: Any, **params: Any) -> Any:
        if x.dtype is not HALF:
            return evaluate(x, *rest, **params)
        return narrow(evaluate(widen(x), *map(widen, rest), **params))

    return evaluate_wide


def rule_of_single(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule of an elementwise primitive, in half precision that of single precision: its parts need the room.

    Its own derivatives are in single precision, too, so that no order has less. Results of SciPy's functions are, too.
    """

    @functools.wraps(rule)
    def wide_rule(t: Any, out: Any, *operands: Any) -> Any:
        return rule(t, out, *map(widen, operands))

    return wide_rule


def vjp_of_single(name: str, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Return the vjp of a reduction, in half precision that of the same in single precision.

    NumPy's value may be infinite, as a variance of 70,000 numbers is, or have few digits, so it is computed again.

    Args:
        name: of the primitive.
        vjp: its vjp.
    """

    @functools.wraps(vjp)
    def wide_vjp(ct: Any, out: Any, x: Any, *rest: Any, **params: Any) -> Any:
        if x.dtype is not HALF:
            return vjp(ct, out, x, *rest, **params)
        out, operands, params = in_single(name, (x, *rest), params)
        found = vjp(widen(ct), out, *operands, **params)
        cts = found if isinstance(found, tuple) else (found,)
        pairs = zip(cts, (x, *rest), strict=False)
        return tuple([c if c is None else c.astype(own.dtype) for c, own in pairs])

    return wide_vjp


def jvp_of_single(name: str, jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Return the jvp of a reduction, likewise."""

    @functools.wraps(jvp)
    def wide_jvp(tangents: Sequence[Any], out: Any, x: Any, *rest: Any, **params: Any) -> Any:
        if x.dtype is not HALF:
            return jvp(tangents, out, x, *rest, **params)
        dtype = out.dtype
        out, operands, params = in_single(name, (x, *rest), params)
        return jvp([widen(t) for t in tangents], out, *operands, **params).astype(dtype)

    return wide_jvp


def in_single(name: str, operands: Sequence[Any], params: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return the result, the operands and the parameters of a reduction in single precision."""
    wide = [widen(x) for x in operands]
    if "dtype" in params:
        params = {**params, "dtype": None}
    return apply(PRIMITIVES[name], *wide, **params), wide, params
