"""Random systems whose states are changed by events, beside SciPy's integration from event to event.

    python -m tools.hybrid_systems --programs 60 --seed 1

SciPy ends at each event; the state is changed by hand, and taken a little further where the event is still at zero.
Programs with events without end, or that our integration refuses, are counted apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from wengert.errors import WengertError
from wengert.scipy.integrate import solve_ivp

END, MOST = 3.0, 12
METHODS = ("RK45", "DOP853", "Tsit5", "Radau", "BDF", "Rodas5P", "Kvaerno5")
PAST = 1e-9
"""How far a state is taken along its slope where an event is still at zero."""


class System(NamedTuple):
    """Hold a slope, a state to begin with, and events, some with a `reset`."""

    slope: Callable[..., Any]
    start: np.ndarray[Any, Any]
    events: list[Any]


def random_system(rng: np.random.Generator) -> System:
    """Return a linear system of one or two numbers with one or two events."""
    size = int(rng.integers(1, 3))
    matrix, force, frequency = rng.normal(size=(size, size)) * 0.4, rng.normal(size=size), rng.uniform(0.5, 4.0)
    if size == 2:
        matrix = matrix + np.array([[0.0, 1.0], [-(frequency**2), 0.0]])
    events = [random_event(rng, size) for _ in range(rng.integers(1, 3))]
    return System(lambda t, y: matrix @ y + force * np.cos(frequency * t), rng.normal(size=size), events)


def random_event(rng: np.random.Generator, size: int) -> Any:
    """Return an event: a number reaches a level, after which it may be set, halved with the others, or turned back."""
    place, level = int(rng.integers(size)), rng.uniform(-0.6, 0.8)

    def event(_: Any, y: Any) -> Any:
        return y[place] - level

    resets: list[Any] = [
        None,
        lambda t, y: np.stack([y[j] if j != place else 0.3 * level - 0.7 + 0.0 * y[j] for j in range(size)]),
        lambda t, y: y * 0.5 - 0.2,
        lambda t, y: y * np.array([1.0, -0.8]) if size == 2 else y * 0.9,
    ]
    reset = resets[rng.integers(4)]
    event.direction = int(rng.choice([0, 0, 1, -1]))  # type: ignore[attr-defined]  # as SciPy reads it
    if reset is not None:
        event.reset = reset  # type: ignore[attr-defined]  # as solve_ivp reads it
    return event


def from_event_to_event(system: System) -> tuple[list[list[float]], Any]:
    """Return the times of all events, and the last state; fewer than MOST events, else the rest is left out."""
    times: list[list[float]] = [[] for _ in system.events]
    t, y = 0.0, system.start
    while t < END and sum(map(len, times)) < MOST:
        ending = [as_end(event) for event in system.events]
        options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "max_step": 0.02}
        found = scipy.integrate.solve_ivp(system.slope, (t, END), y, events=ending, **options)
        if found.status != 1:
            return times, found.y[:, -1]
        t, y, k = min((at[0], states[0].tolist(), k) for k, (at, states) in hits(found))
        times[k].append(t)
        reset = getattr(system.events[k], "reset", None)
        y = np.asarray(y if reset is None else reset(t, np.array(y)), float)
        if abs(system.events[k](t, y)) < 10 * PAST:
            t, y = t + PAST, y + PAST * np.asarray(system.slope(t, y))
    return times, y


def as_end(event: Any) -> Any:
    """Return an event that ends an integration."""

    def ending(t: Any, y: Any) -> Any:
        return event(t, y)

    ending.terminal, ending.direction = True, event.direction  # type: ignore[attr-defined]  # as SciPy reads them
    return ending


def hits(found: Any) -> Sequence[tuple[int, Any]]:
    """Return the events that ended an integration, with their times and states."""
    pairs = zip(found.t_events, found.y_events, strict=True)
    return [(k, pair) for k, pair in enumerate(pairs) if len(pair[0])]


def disagreement(system: System, method: str) -> str | None:
    """Return what differs; "" for nothing, None if there are too many events, or the integration is refused."""
    times, end = from_event_to_event(system)
    if sum(map(len, times)) >= MOST:
        return None
    try:
        found = solve_ivp(
            system.slope, (0.0, END), system.start, method=method, events=system.events, rtol=1e-9, atol=1e-10
        )
    except WengertError:
        return None
    if found.status < 0:
        return None
    own = [list(at) for at in found.t_events]
    same = all(len(x) == len(y) and np.allclose(x, y, atol=2e-4) for x, y in zip(own, times, strict=True))
    if same and np.allclose(found.y[:, -1], end, atol=2e-3) and found.t[-1] == END:
        return ""
    return f"{method}: events at {own} for {times}, end {found.y[:, -1]} for {end} at t = {found.t[-1]}"


def main() -> None:
    """Compare random systems; tell which disagree."""
    parser = argparse.ArgumentParser(prog="python -m tools.hybrid_systems", description="States changed by events.")
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    counts = {"the same": 0, "left out": 0, "different": 0}
    for number in range(chosen.programs):
        rng = np.random.default_rng([chosen.seed, number])
        told = disagreement(random_system(rng), str(rng.choice(METHODS)))
        counts["left out" if told is None else "different" if told else "the same"] += 1
        if told:
            print(f"program {number}: {told}")
    print(counts)
    raise SystemExit(bool(counts["different"]))


if __name__ == "__main__":
    main()
