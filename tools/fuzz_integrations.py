"""Random integrations with events, masses and containers: derivatives to the second order, beside SciPy's differences.

    python -m tools.fuzz_integrations --forms 20 --numbers 12 --seed 1

A form is what is traced once: a slope, a method, how its numbers are passed, events, a mass matrix. Its number is
differentiated by parameters, the initial state, both ends and an output time, and compared with SciPy's integrations
from event to event, whose differences are those of the first and the second order. To trace and compile a form takes a
hundred times what further numbers take; so it has many, and of the other ways to its derivatives (`OTHERS`) one.
"""

from __future__ import annotations

import argparse
import collections
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

import wengert as wg
from wengert.errors import WengertError
from wengert.scipy.integrate import solve_ivp

Array = np.ndarray[Any, Any]
EXPLICIT = ("RK23", "RK45", "DOP853", "Tsit5")
STIFF = ("Radau", "BDF", "Rodas5P", "Kvaerno5")
TOLERANCES = {"RK23": 1e-8, "BDF": 1e-9}
"""Of methods of low order; others have 1e-10."""
NEAR = {"value": 2e-6, "first": 2e-5, "second": 2e-3}
"""How far derivatives may be from differences, of the largest of both and 1."""
STEPS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
WIDTHS = 4e-3, 5e-4
"""Of differences, and where these are not near, of others."""
FIRST, SECOND = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0, np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
MOST = 6
"""How many events a reference may have."""


class Form(NamedTuple):
    """Hold what is traced once."""

    method: str
    gradient: str
    size: int
    slope: str
    returns_list: bool
    container: str
    event: str
    mass: str
    jac: str
    is_backward: bool


class Numbers(NamedTuple):
    """Hold what differs from call to call.

    Attributes:
        x: what is differentiated: two parameters, the state, both ends, and where between them an output is.
        matrix: of linear slopes.
        weights: of the two outputs.
        level: of the event, of parameter 0.
        place: 1 at the state that reaches it, 0 at others.
    """

    x: Array
    matrix: Array
    weights: Array
    level: float
    place: Array


def event_function(function: Callable[..., Any], terminal: int, reset: Any = None) -> Any:
    """Return a function of events with what integrators read of it."""

    def event(*args: Any) -> Any:
        return function(*args)

    own: Any = event
    own.terminal, own.reset = terminal, reset
    return event


def random_form(rng: np.random.Generator) -> Form:
    """Return a form whose parts go together."""
    method = str(rng.choice([*EXPLICIT, *STIFF, *STIFF, "LSODA"]))
    size = int(rng.choice([1, 2, 3, 12] if method not in ("RK23", "LSODA") else [1, 2, 3]))
    mass = str(rng.choice(["none", "known", "traced", "singular"])) if method in STIFF else "none"
    mass = "none" if size in (1, 12) and mass == "singular" else mass
    event = str(rng.choice(["none", "terminal", "reset", "two"]))
    gradient = str(rng.choice(["discrete", "discrete", "discrete", "discrete", "forward", "continuous"]))
    if method == "LSODA":
        gradient, event = "continuous", "terminal" if event != "none" else event
    if (gradient == "forward" and event != "none") or (gradient == "continuous" and mass == "traced"):
        gradient = "discrete"
    kind = str(rng.choice(["linear", "logistic", "network", "branch"]))
    container = str(rng.choice(["args", "dict", "nested", "captured", "array"]))
    jac = str(rng.choice(["none", "none", "pattern"])) if method in STIFF else "none"
    return Form(
        method, gradient, size, kind, bool(rng.integers(2)), container, event, mass, jac, bool(rng.integers(4) == 0)
    )


def slope_by(form: Form, xp: Any) -> Callable[..., Any]:
    """Return the slope of all but the last state of a singular mass, of time, state, two parameters and a matrix."""

    def slope(t: Any, y: Any, p: Any, q: Any, matrix: Any) -> Any:
        if form.slope == "linear":
            return p * (matrix @ y) + q * xp.cos(1.3 * t)
        if form.slope == "logistic":
            return p * y * (1.0 - y) + 0.2 * q * xp.roll(y, 1)
        if form.slope == "network":
            return q * xp.tanh(p * xp.roll(y, 1)) - y + 0.3 * xp.sin(t)
        if t > -100.0:
            return -p * y * xp.abs(q) + xp.sin(t + q)
        return y

    return slope


def mass_of(form: Form, p: Any, stack: Any = np.array) -> Any:
    """Return the mass matrix; None without. A singular one leaves the last state to an algebraic equation."""
    if form.mass == "none":
        return None
    matrix = np.eye(form.size) + 0.2 * np.eye(form.size, k=1)
    if form.mass == "singular":
        return np.diag([1.0] * (form.size - 1) + [0.0])
    return matrix if form.mass == "known" else matrix * (1.0 + 0.3 * p)


def functions(form: Form, numbers: Numbers) -> tuple[Any, Any, Any]:
    """Return slope, event and reset of plain numbers and parameters."""
    bare = slope_by(form, np)
    place, level = numbers.place, numbers.level

    def slope(t: Any, y: Any, p: Any, q: Any) -> Any:
        found = bare(t, y, p, q, numbers.matrix)
        if form.mass == "singular":
            found = np.concatenate([found[:-1], np.reshape(y[-1] - p * y[0] ** 2 - q, (1,))])
        return [found[i] for i in range(form.size)] if form.returns_list and form.size < 12 else found

    def event(t: Any, y: Any, p: Any, q: Any) -> Any:
        return place @ y - level * p

    def reset(t: Any, y: Any, p: Any, q: Any) -> Any:
        found = 0.6 * y - 0.3 * q
        if form.mass == "singular":
            found = np.concatenate([found[:-1], np.reshape(p * found[0] ** 2 + q, (1,))])
        return found

    return slope, event, reset


def as_arguments(container: str, p: Any, q: Any) -> tuple[Any, ...]:
    """Return parameters as arguments."""
    if container == "args":
        return p, q
    if container == "dict":
        return ({"p": p, "rest": {"q": q}},)
    if container == "nested":
        return ([p, (q, 3)],)
    return () if container == "captured" else (np.stack([p, q]),)


def parameters_from(container: str, args: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """Return parameters from arguments, or what is captured."""
    if container == "args":
        return args[0], args[1]
    if container == "dict":
        return args[0]["p"], args[0]["rest"]["q"]
    if container == "nested":
        return args[0][0], args[0][1][0]
    return (p, q) if container == "captured" else (args[0][0], args[0][1])


def total(form: Form, x: Any, matrix: Any, weights: Any, level: Any, place: Any) -> Any:
    """Return a number that depends on states at an output time and at the end, and on what events leave behind."""
    p, q, y0, t0, t1, part = x[0], x[1], x[2:-3], x[-3], x[-2], x[-1]
    bare, bare_event, bare_reset = functions(form, Numbers(x, matrix, weights, level, place))

    def of_user(function: Any) -> Any:
        return lambda t, y, *args: function(t, y, *parameters_from(form.container, args, p, q))

    reset = of_user(bare_reset) if form.event in ("reset", "two") else None
    event = event_function(of_user(bare_event), True if form.event == "terminal" else MOST + 1, reset)
    middle = event_function(lambda t, *_: t - 0.5 * (t0 + t1), 4)
    events = {"none": None, "terminal": event, "reset": [event], "two": [event, middle]}[form.event]
    if form.mass == "singular":
        y0 = np.concatenate([y0[:-1], np.reshape(p * y0[0] ** 2 + q, (1,))])
    outputs = np.stack([t0 + part * (t1 - t0), t1])
    options: dict[str, Any] = {"gradient": form.gradient} if form.method != "LSODA" else {}
    if form.mass != "none":
        options["mass"] = mass_of(form, p)
    if form.jac == "pattern":
        options["jac_sparsity"] = np.ones((form.size, form.size))
    tolerance = TOLERANCES.get(form.method, 1e-10)
    options |= {"args": as_arguments(form.container, p, q), "rtol": tolerance, "atol": tolerance}
    found = solve_ivp(of_user(bare), (t0, t1), y0, form.method, outputs, False, events, **options)
    if form.event == "terminal":
        return found.t_events[0][0] + np.sum(weights[0] * found.y_events[0][0])
    more = found.t_events[1][0] if form.event == "two" else 0.0
    return np.sum(weights * found.y.T) + more


def random_numbers(form: Form, rng: np.random.Generator) -> Numbers | None:
    """Return numbers for a form; None where no state moves enough for an event."""
    size = form.size
    matrix = 0.4 * rng.normal(size=(size, size)) / np.sqrt(size) - 0.7 * np.eye(size)
    matrix = matrix + (np.array([[0.0, 2.0], [-2.0, 0.0]]) if size == 2 else 0.0)
    t0 = rng.uniform(-0.5, 0.5)
    t1 = t0 + (-1.0 if form.is_backward else 1.0) * rng.uniform(0.8, 1.6)
    x = np.concatenate([rng.uniform(0.6, 1.4, 2), rng.uniform(0.2, 0.8, size), [t0, t1, rng.uniform(0.55, 0.9)]])
    numbers = Numbers(x, matrix, rng.normal(size=(2, size)), 0.0, np.eye(size)[0])
    if form.event == "none":
        return numbers
    free = form._replace(event="none")
    start, slope = without_algebraic_state(free, numbers, x)
    found = scipy.integrate.solve_ivp(slope, (t0, t1), start, "DOP853", rtol=1e-9, atol=1e-10, dense_output=True)
    at = t0 + rng.uniform(0.2, 0.45) * (t1 - t0)
    rates = np.abs(slope(at, found.sol(at)))
    index = int(np.argmax(rates))
    level = float(found.sol(at)[index] / x[0])
    return numbers._replace(level=level, place=np.eye(size)[index]) if rates[index] > 0.1 else None


def without_algebraic_state(form: Form, numbers: Numbers, x: Array) -> tuple[Array, Callable[..., Array]]:
    """Return the initial state and the slope of the states that have one."""
    slope = functions(form, numbers)[0]
    p, q, y0 = x[0], x[1], x[2:-3]
    if form.mass == "singular":
        return y0[:-1], lambda t, y: np.asarray(slope(t, np.append(y, p * y[0] ** 2 + q), p, q))[:-1]
    mass = mass_of(form, p)
    inverse = np.eye(form.size) if mass is None else np.linalg.inv(mass)
    return y0, lambda t, y: inverse @ np.asarray(slope(t, y, p, q))


def reference(form: Form, numbers: Numbers, x: Array) -> tuple[float, int, float]:
    """Return the number, how many events there were, and how near an output is to one."""
    p, q, t0, t1, part = x[0], x[1], x[-3], x[-2], x[-1]
    _, event, reset = functions(form, numbers)
    y, slope = without_algebraic_state(form, numbers, x)
    output = t0 + part * (t1 - t0)
    outputs: list[Array] = []
    times: list[float] = []

    def full(y: Array) -> Array:
        return np.append(y, p * y[0] ** 2 + q) if form.mass == "singular" else y

    ending = event_function(lambda t, y: event(t, full(y), p, q), True)
    t, way = t0, np.sign(t1 - t0)
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": abs(t1 - t0) / 12}
    while len(times) < MOST:
        events = None if form.event == "none" else ending
        found = scipy.integrate.solve_ivp(slope, (t, t1), y, events=events, dense_output=True, **options)
        if way * found.t[-1] >= way * output and way * t <= way * output and not outputs:
            outputs.append(full(found.sol(output)))
        t, y = found.t[-1], found.y[:, -1]
        if found.status != 1:
            break
        times.append(t)
        if form.event == "terminal":
            return float(t + np.sum(numbers.weights[0] * full(y))), 1, np.inf
        y = np.asarray(reset(t, full(y), p, q), float)[: len(y)]
        if abs(ending(t, y)) < 1e-2:
            return np.nan, MOST, 0.0
    else:
        return np.nan, MOST, 0.0
    if form.event == "terminal":
        return np.nan, 0, 0.0
    outputs.append(full(y))
    near = min((abs(time - place) for time in times for place in (t0, output, t1)), default=np.inf)
    more = 0.5 * (t0 + t1) if form.event == "two" else 0.0
    return float(np.sum(numbers.weights * np.stack(outputs)) + more), len(times), near


def differences(form: Form, numbers: Numbers, direction: Array, width: float) -> tuple[float, float, float] | None:
    """Return the number, and its first and second difference along a direction; None where events come and go."""
    rows = [reference(form, numbers, numbers.x + width * step * direction) for step in STEPS]
    values, counts, near = (np.array(column) for column in zip(*rows, strict=True))
    if len({*counts.tolist()}) > 1 or np.min(near) < 0.05 or not np.all(np.isfinite(values)):
        return None
    return float(values[2]), float(FIRST @ values / width), float(SECOND @ values / width**2)


class Derivatives:
    """Be the derivatives of a form, traced once.

    Attributes:
        other: the way that is compared with reverse mode: a name among `OTHERS`.
    """

    def __init__(self, form: Form, other: str) -> None:
        def function(x: Any, *more: Any) -> Any:
            return total(form, x, *more)

        def forward(x: Any, v: Any, *more: Any) -> Any:
            return wg.jvp(lambda x: function(x, *more), (x,), (v,))

        def second(x: Any, v: Any, *more: Any) -> Any:
            return wg.jvp(lambda x: wg.value_and_grad(function)(x, *more), (x,), (v,))

        self.other, self.second = other, wg.jit(second)
        self.eager, self.forward = wg.value_and_grad(function), wg.jit(forward)
        self.over_forward = wg.jit(wg.grad(lambda x, v, *more: forward(x, v, *more)[1]))
        self.lanes = wg.jit(wg.vmap(self.eager))


OTHERS = "forward", "eager", "reverse over forward", "lanes"
"""The last two are not those of LSODA."""


def far_from(found: Any, want: Any) -> list[str]:
    """Return what of a value and two derivatives is not near to what is wanted."""
    return [
        f"{name} {one:.10g} for {exact:.10g}"
        for (name, near), one, exact in zip(NEAR.items(), found, want, strict=True)
        if not abs(one - exact) <= near * max(1.0, abs(exact))
    ]


def disagreements(form: Form, derivatives: Derivatives, numbers: Numbers, rng: np.random.Generator) -> Any:
    """Return what differs; None if there is no reference."""
    chosen = rng.normal(size=numbers.x.shape)
    direction = np.asarray(chosen / np.linalg.norm(chosen))
    want = differences(form, numbers, direction, WIDTHS[0])
    if want is None:
        return None
    more = numbers.matrix, numbers.weights, numbers.level, numbers.place
    (value, gradient), (slope, second) = derivatives.second(numbers.x, direction, *more)
    found = value, slope, second @ direction
    wrong = far_from(found, want)
    if wrong:
        want = differences(form, numbers, direction, WIDTHS[1])
        wrong = [] if want is None else far_from(found, want)
    exactly = 1e-9 if form.gradient != "continuous" and form.method != "LSODA" else 1e-5
    pairs = [("reverse", gradient @ direction, slope, exactly)]
    if derivatives.other == "forward":
        one, other = derivatives.forward(numbers.x, direction, *more)
        pairs += [("value", one, value, 1e-9), ("forward", other, slope, 1e-9)]
    elif derivatives.other == "reverse over forward":
        pairs.append((derivatives.other, derivatives.over_forward(numbers.x, direction, *more), second, 100 * exactly))
    elif derivatives.other == "eager":
        pairs.append((derivatives.other, derivatives.eager(numbers.x, *more)[1], gradient, 1e-9))
    else:
        stacked = [np.stack([x, x]) for x in (numbers.x, *map(np.asarray, more))]
        pairs.append((derivatives.other, derivatives.lanes(*stacked)[1][1], gradient, 1e-9))
    for name, one, other, near in pairs:
        if not np.allclose(one, other, rtol=near, atol=near * max(1.0, float(np.max(np.abs(other))))):
            wrong.append(f"{name} {one} for {other}")
    return wrong


def main() -> None:
    """Compare random integrations; tell which disagree."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_integrations", description="Random integrations.")
    parser.add_argument("--forms", type=int, default=20)
    parser.add_argument("--numbers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    warnings.simplefilter("ignore")
    for number in range(chosen.first, chosen.forms):
        rng = np.random.default_rng([chosen.seed, number])
        form = random_form(rng)
        derivatives = Derivatives(form, str(rng.choice(OTHERS[:2] if form.method == "LSODA" else OTHERS)))
        for _ in range(chosen.numbers):
            numbers = random_numbers(form, rng)
            if numbers is None:
                counts["left out"] += 1
                continue
            try:
                told = disagreements(form, derivatives, numbers, rng)
            except (WengertError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                told = [f"{type(error).__name__}: {error}", traceback.format_exc()[-600:]]
            counts["left out" if told is None else "different" if told else "the same"] += 1
            if told:
                print(f"form {number}, {form}, {derivatives.other}, {numbers.x}:", *told, sep="\n    ", flush=True)
        print(dict(counts), flush=True)
    raise SystemExit(bool(counts["different"]))


if __name__ == "__main__":
    main()
