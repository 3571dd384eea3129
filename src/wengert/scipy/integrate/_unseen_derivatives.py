"""Derivatives that steps do not resolve, since the solution they were chosen for shows nothing of what moves beside it.

A pendulum at rest, or a forcing whose amplitude is zero, has no error at any size of steps, and these grow. Its
derivatives are those of the steps, which are as wrong as the steps are too large. Whether they are tells a solution
that begins a little beside it, with arguments a little beside: where that one takes many more steps, so should have
this one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.scipy.integrate._methods.adaptive_steps import Walk
from wengert.transforms.reverse import stop_gradient

TOLD_NOTHING = 1e-3
"""The error of all steps, as a part of what it may be, below which it did not determine their sizes."""
ASIDE = 1e-2
"""How far beside a solution another one is begun, as a part of numbers, of 1 at least."""
MORE = 1.5
"""How many times as many steps as the solution another one has to take for derivatives to be doubtful."""


def warn_if_unseen(
    walk: Walk, moving: Callable[[], Sequence[Any]], length: Any, attempts_beside: Callable[[], Any]
) -> None:
    """Warn if derivatives are being taken that are doubtful; `attempts_beside` gives how many steps another one takes.

    Args:
        walk: where the integration ended.
        moving: gives the initial state, and what functions are given.
        length: that of the interval.
        attempts_beside: how often a solution beside this one tries steps; None if it fails.
    """
    if not all(map(is_concrete, (walk.largest_error, walk.failure, walk.attempts, length))):
        return
    taken = int(raw(walk.attempts))
    if raw(walk.failure) or not taken or raw(walk.largest_error) > TOLD_NOTHING:
        return
    numbers = moving()
    if not is_any_traced(numbers) or not all(map(is_concrete, numbers)):
        return
    needed = attempts_beside()
    if needed is None or needed <= MORE * taken + 1:
        return
    text = f"solve_ivp: {taken} steps were taken, as the solution has no errors at any size of them; one beside it "
    text += f"takes {needed}, so derivatives may be wrong. Pass max_step, about {abs(raw(length)) / needed:.2g}"
    warnings.warn(text, UserWarning, stacklevel=user_stacklevel())


def is_any_traced(numbers: Sequence[Any]) -> bool:
    """Tell whether derivatives are being taken by one of some numbers or arrays."""
    return Tensor in map(type, numbers) and any(type(x) is Tensor and x._trace is not None for x in numbers)


def beside(value: Any) -> Any:
    """Return a number or an array that is not far from another one."""
    held = raw(stop_gradient(value))
    return held + ASIDE * np.maximum(np.abs(held), 1.0)
