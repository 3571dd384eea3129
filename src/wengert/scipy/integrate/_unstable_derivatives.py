"""Derivatives of explicit steps that grow without bound, where equations are stiff.

There steps are as long as the method is stable for, and longer now and then: what grows in the state then is an error,
for which the next ones are shortened. Derivatives of steps whose sizes are held grow with it, and nothing shortens
these: a gradient of Robertson's equations by RK45 was 1e106 for 2e-4. The first sign of it costs nothing: steps that
move the state by far less than errors would allow. Then the fastest rate is looked at, and whether values change by
what derivatives say: that takes a solution on both sides and one derivative, once for each program and number of steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import is_concrete, raw
from wengert.scipy.integrate._methods.adaptive_steps import Control, Walk
from wengert.scipy.integrate._methods.methods_by_name import FIXED, WITH_MASS, method_named
from wengert.scipy.integrate._unseen_derivatives import is_any_traced

FEWEST = 100
"""Attempts below which nothing grows that much."""
SLOW = 0.3
"""By what part of what errors allow a state moves in a step, at most, where these are not what steps are short for."""
LIMITED = 0.5
"""How long a step is, at least, in units of the fastest rate, where stability limits it."""
BESIDE = 1e-3
"""How far beside a solution others begin, as a part of numbers; on both sides, as one of a phase may come back."""
LOOKS, ASIDE = 4, 1e-6
"""How often a direction is changed by the slope beside, how far beside, until it is that of the fastest rate."""
WRONG = 10.0
"""How many times what values change by, and tolerances, derivatives that are told of say."""


def warn_if_unstable(
    walk: Walk,
    method: str,
    start: Any,
    control: Control,
    moving: Callable[[], Sequence[Any]],
    slope: Callable[[Any, Any], Any],
    changes: Callable[[int], tuple[Any, Any] | None],
) -> None:
    """Warn if derivatives are being taken that have grown while values did not.

    Args:
        walk: where the integration ended.
        method: its name.
        start: the time where it began.
        control: that of the sizes of steps.
        moving: gives the initial state, and what functions are given.
        slope: of a time and a state, as arrays.
        changes: gives, for a number of attempts, what a derivative says that the state changes by beside, and by how
            much it does; None if that was looked at already.
    """
    known = walk.attempts, walk.t, walk.y, start, control.rtol, control.atol
    if method in FIXED or method in WITH_MASS or not all(map(is_concrete, known)):
        return
    attempts, failed = int(raw(walk.attempts)), bool(raw(walk.failure))
    if failed or attempts < FEWEST:
        return
    t, y, f, rtol, atol = (np.asarray(raw(x)) for x in (walk.t, walk.y, walk.f, control.rtol, control.atol))
    h, size = abs(float(t - raw(start))) / attempts, np.max(np.abs(y) + atol / rtol)
    if not h * np.max(np.abs(f)) < SLOW * size * np.min(rtol) ** (1 / (method_named(method).order + 1)):
        return
    if not is_any_traced(moving()):
        return
    with np.errstate(all="ignore"):
        rate = fastest_rate(t, y, f, slope)
        found = changes(attempts) if h * rate > LIMITED else None
    if found is None:
        return
    said, real = np.abs(found)
    if np.all(said <= WRONG * (real + WRONG * (atol + rtol * np.abs(y)))):
        return
    text = f"solve_ivp: derivatives by {attempts} steps of {method!r} grow while values do not: the equations are "
    text += f"stiff, and steps of about {h:.2g}, up to t = {float(t):.6g}, as long as it is stable for, or longer. "
    text += "Pass method='Rodas5P', or another implicit one, or gradient='continuous'"
    warnings.warn(text, UserWarning, stacklevel=user_stacklevel())


def fastest_rate(t: Any, y: Any, f: Any, slope: Callable[[Any, Any], Any]) -> float:
    """Return about the largest absolute value of an eigenvalue of the Jacobian, by the method of powers."""
    scale = np.abs(y) + np.max(np.abs(y)) * ASIDE
    direction, rate = scale * (1 + 0.1 * np.cos(np.arange(y.size))), 0.0
    for _ in range(LOOKS):
        step = ASIDE * np.max(scale) * direction / max(np.max(np.abs(direction)), np.finfo(float).tiny)
        change = slope(t, y + step) - f
        rate, direction = np.max(np.abs(change)) / max(np.max(np.abs(step)), np.finfo(float).tiny), change
    return float(rate)
