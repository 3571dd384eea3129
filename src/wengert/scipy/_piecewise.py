"""Formulas of distributions where they hold, and what stands elsewhere, without slopes that are infinite or NaN."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.transforms.reverse import stop_gradient

Formula = Callable[..., Any]

FAINT = -1e5
"""The exponential of what is below is 0, and so is each of its derivatives."""

FAINTEST = 1e-290
"""Smaller probabilities lose digits, or are 0."""


def known_truth(condition: Any) -> bool | None:
    """Tell whether a condition holds for all elements or for none; None if that differs or cannot be known."""
    if type(condition) in (bool, np.bool_):
        return bool(condition)
    if not is_concrete(condition):
        return None
    values = raw(condition)
    return True if np.all(values) else None if np.any(values) else False


def either(condition: Any, x: Any, y: Any) -> Any:
    """Return x where a condition holds and y elsewhere; the one that is there everywhere as it is."""
    which = known_truth(condition)
    if which is None:
        return np.where(condition, x, y)
    chosen = x if which else y
    shape = np.broadcast_shapes(np.shape(condition), np.shape(x), np.shape(y))
    return chosen if np.shape(chosen) == shape else np.broadcast_to(chosen, shape)


def propagate_nan(*arguments: Any) -> Any:
    """Return NaN with derivatives by arguments that are NaN, too: quotients have them at every order."""
    found: Any = np.nan
    for x in arguments:
        found = found / x if type(x) is Tensor else found
    return found


def select_defined(valid: Any, found: Any, arguments: Sequence[Any]) -> Any:
    """Return what was found where arguments are valid, and elsewhere NaN, which it is whatever they are."""
    return found if known_truth(valid) is True else either(valid, found, propagate_nan(*arguments))


def evaluate_where(condition: Any, x: Any, stand_in: float, formula: Formula, otherwise: Any = np.inf) -> Any:
    """Return a formula of a parameter where a condition on it holds, and something else where it has no value."""
    return either(condition, formula(either(condition, x, stand_in)), otherwise)


def flat_where(gone: Any, x: Any) -> Any:
    """Return x, without a slope where a condition holds."""
    return x if known_truth(gone) is False else np.where(gone, stop_gradient(x), x)


def level_at_infinity(x: Any) -> Any:
    """Return a parameter, or the logarithm of a probability or density, where that is infinite without a slope."""
    still = type(x) is not Tensor or x._trace is None
    if still or (is_concrete(x) and not np.isinf(raw(x)).any()):  # as most are
        return x
    return flat_where(np.isinf(x), x)


def level_at_end(logarithm: Any, x: Any, lower: Any, upper: Any) -> Any:
    """Return the logarithm of a density, where that is infinite at a finite end of the support without a slope."""
    if is_concrete(logarithm) and not np.isinf(raw(logarithm)).any():  # as most are
        return logarithm
    return flat_where(np.isinf(logarithm) & np.isfinite(x) & ((x == lower) | (x == upper)), logarithm)


def from_logarithm(logarithm: Any) -> Any:
    """Return the probability or density with a logarithm; where it vanishes to all orders it has no slope."""
    return np.exp(flat_where(logarithm <= FAINT, logarithm))


def all_of(*conditions: Any) -> Any:
    """Return where all conditions hold."""
    rest = [condition for condition in conditions if condition is not True]
    return functools.reduce(np.logical_and, rest) if rest else True


def all_positive(*shapes: Any) -> Any:
    """Tell where shape parameters are positive."""
    return all_of(True, *[shape > 0 for shape in shapes])


def log_of_smaller(
    probability: Formula, other: Formula, x: Any, shapes: Sequence[Any], tail: Formula | None = None
) -> Any:
    """Return the logarithm of a probability: by 1 less the other one if that is smaller, by its tail if it is faint.

    Args:
        probability: the probability, a function of the point and the shape parameters.
        other: what it lacks of 1.
        x: the point.
        shapes: the shape parameters.
        tail: gives where its formula holds, and the logarithm, if there is one for probabilities near 0.
    """
    found = probability(x, *shapes)
    small, faint = found < 0.5, found < FAINTEST
    moves = type(found) is Tensor and found._trace is not None  # then slopes are those of the tail, which keep digits
    some = tail is not None and known_truth(small if moves else faint) is not False
    usable, logarithm = tail(x, *shapes) if tail is not None and some else (False, 0.0)
    by_tail, faint = small & usable, faint & usable
    inner = small & ~faint
    known = either(inner, np.log(either(inner, found, 0.5)), np.log1p(-either(small, 0.5, other(x, *shapes))))
    if not some:
        return known
    return either(by_tail, logarithm + stop_gradient(either(faint, 0.0, known - logarithm)), known)
