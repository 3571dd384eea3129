"""Update rules: what becomes of parameters, given their gradients and what is remembered of earlier ones.

Schedules are step sizes as functions of the number of steps before, which can be traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import as_items, as_whole, shown
from wengert.core.values.aval import aval_of
from wengert.errors import DtypeError, UsageError
from wengert.support.hints import hint_parameters
from wengert.support.records import NamedTuple

Rate: TypeAlias = "float | Callable[[Any], Any]"
"""A number, or a schedule: a function of the number of steps before."""
Memory: TypeAlias = tuple[Any, ...]
Step: TypeAlias = Callable[..., tuple[Any, Memory]]
SHARES = frozenset({"b1", "b2", "decay"})
"""Settings that say how much of a mean stays."""


class Rule(NamedTuple):
    """Hold the two functions of an update rule, which work on any container and can be traced.

    Attributes:
        init: takes parameters; returns the state before the first step.
        update: takes gradients, state and parameters; returns new parameters and the new state.

    >>> init, update = sgd(0.5)
    >>> update([2.0], init([3.0]), [3.0])[0]
    [2.0]
    """

    init: Callable[[Any], State]
    update: Callable[[Any, State, Any], tuple[Any, State]]


class State(NamedTuple):
    """Hold what a rule remembers.

    Attributes:
        step: the number of steps before.
        memory: arrays for each leaf of the parameters, in their order.
    """

    step: Any
    memory: list[Memory]


def make_rule(name: str, rate: Rate, memories: int, step: Step, **settings: float) -> Rule:
    """Return the rule that makes one step leaf by leaf, and keeps so many arrays of each, which are zero at first.

    `step` takes the gradient, the memory, the leaf, the rate and the number of this step, from 1, and the settings by
    name; it returns the new leaf and memory.
    """
    for what, value in settings.items():
        if what != "nesterov":
            require(name, what, value, below=1.0 if what in SHARES else np.inf)
    if not callable(rate):
        require(name, "rate", rate)
    step = functools.partial(step, **settings)
    return Rule(functools.partial(make_state, memories), functools.partial(update_leaves, name, rate, step, memories))


# What rules and schedules are made of are partials, which can be pickled.


def make_state(memories: int, parameters: Any) -> State:
    """Return the state before the first step, which keeps so many arrays of each leaf."""
    leaves, _ = flatten(parameters)
    for leaf in leaves:
        if aval_of(leaf).dtype.kind in "biu":  # every step would be cut off to an integer
            needed = "floats or complex numbers are needed"
            raise DtypeError("optim", f"parameters of dtype {aval_of(leaf).dtype}", needed, "Write them with a point")
    return State(0, [tuple([zeros_for(leaf) for _ in range(memories)]) for leaf in leaves])


def update_leaves(
    name: str, rate: Rate, step: Step, memories: int, gradients: Any, state: State, parameters: Any
) -> tuple[Any, State]:
    """Return new parameters and the new state, after one step leaf by leaf."""
    leaves, structure = flatten(parameters)
    slopes, other = flatten(gradients)
    if type(state) is not State or structure != other or len(leaves) != len(state.memory):
        count = f"for {len(state.memory)} leaves" if type(state) is State else f"of type {type(state).__name__}"
        raise mismatch(name, f"{len(leaves)} leaves, {len(slopes)} in the gradients and a state {count}")
    for slope, leaf in zip(slopes, leaves, strict=True):
        if np.shape(slope) != np.shape(leaf):
            raise mismatch(name, f"a gradient of shape {np.shape(slope)} for a leaf of shape {np.shape(leaf)}")
    for kept, leaf in zip(state.memory, leaves, strict=True):
        if len(kept) != memories:
            raise mismatch(name, f"a state with {len(kept)} arrays for a leaf instead of {memories}, of another rule")
        if any(np.shape(array) != np.shape(leaf) for array in kept):
            raise mismatch(name, f"a state of shape {np.shape(kept[0])} for a leaf of shape {np.shape(leaf)}")
    size = rate(state.step) if callable(rate) else rate
    found = [
        step(ascent_direction(slope), memory, leaf, size, state.step + 1)
        for slope, memory, leaf in zip(slopes, state.memory, leaves, strict=True)
    ]
    new = [cast_like(leaf, old) for (leaf, _), old in zip(found, leaves, strict=True)]
    memory = [tuple(map(cast_like, kept, old)) for (_, kept), old in zip(found, state.memory, strict=True)]
    return unflatten(structure, new), State(state.step + 1, memory)


def zeros_for(leaf: Any) -> Any:
    """Return zeros in the form of a leaf, whose own elements may be infinite or NaN."""
    return type(leaf)(0.0) if type(leaf) in (float, complex) else np.zeros_like(leaf)


OF_THESE = "with what wengert.grad and init gave for these parameters"


def mismatch(name: str, given: str) -> UsageError:
    """Return the error about gradients or a state that are not those of the parameters."""
    needed = "gradients and a state of the parameters' containers and shapes are needed"
    return UsageError(f"optim.{name}", given, needed, f"Write update(gradients, state, parameters), {OF_THESE}")


def cast_like(new: Any, old: Any) -> Any:
    """Return a new value in the form of the old one: a Python number, or of its dtype (schedules give float64)."""
    if type(old) in (float, complex):
        return new.item() if isinstance(new, np.generic) else new
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def ascent_direction(slope: Any) -> Any:
    """Return the direction of steepest ascent: of a complex parameter the conjugate of the gradient."""
    return np.conj(slope) if aval_of(slope).dtype.kind == "c" else slope


def require(name: str, what: str, value: Any, least: float = 0.0, below: float = np.inf) -> None:
    """Raise a UsageError unless a setting is a number in a range."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value < below:
        allowed = f"{least} or more" if below == np.inf else f"at least {least} and below {below}"
        given = f"{shown(value)} for {what}"
        raise UsageError(f"optim.{name}", given, f"a number, {allowed}, is needed", "Pass a float")


def require_rule(name: str, rule: Any) -> None:
    """Raise a UsageError unless something is a rule."""
    if type(rule) is not Rule:
        given = f"{shown(rule)} for rule"
        raise UsageError(f"optim.{name}", given, "a rule is needed", "Pass wengert.optim.adam(), say")


@hint_parameters("rules", "sgd")
def sgd(rate: Rate) -> Rule:
    """Return the rule of gradient descent, `p - rate * g`.

    Args:
        rate: the step size, or a schedule: a function of the number of steps before.

    Returns:
        The pair of functions.

    Raises:
        UsageError: the rate is no number of 0 or more.

    >>> init, update = sgd(0.1)
    >>> parameters, state = update({"w": 5.0}, init({"w": 1.0}), {"w": 1.0})
    >>> parameters
    {'w': 0.5}
    """
    return make_rule("sgd", rate, 0, step_down)


def step_down(g: Any, memory: Memory, p: Any, size: Any, _: Any) -> tuple[Any, Memory]:
    """Return a leaf after a step of gradient descent."""
    return p - size * g, memory


@hint_parameters("rules", "momentum")
def momentum(rate: Rate, decay: float = 0.9, nesterov: bool = False) -> Rule:
    """Return the rule of gradient descent with momentum.

    The velocity is `v = decay * v + g` and the step `-rate * v`, or with Nesterov's variant `-rate * (g + decay * v)`
    (Sutskever et al., On the importance of initialization and momentum in deep learning, 2013).

    Args:
        rate: the step size, or a schedule.
        decay: how much of the velocity stays, at least 0 and below 1.
        nesterov: whether the gradient is taken as if the step had been made.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = momentum(0.1)
    >>> parameters, state = update(5.0, init(1.0), 1.0)
    >>> round(update(5.0, state, parameters)[0], 6)
    -0.45
    """
    return make_rule("momentum", rate, 1, step_with_momentum, decay=decay, nesterov=nesterov)


def step_with_momentum(
    g: Any, memory: Memory, p: Any, size: Any, _: Any, *, decay: float, nesterov: bool
) -> tuple[Any, Memory]:
    """Return a leaf and its velocity after a step with momentum."""
    velocity = decay * memory[0] + g
    return p - size * (g + decay * velocity if nesterov else velocity), (velocity,)


@hint_parameters("rules", "rmsprop")
def rmsprop(rate: Rate, decay: float = 0.99, eps: float = 1e-8) -> Rule:
    """Return the rule that divides by a running root mean square of gradients (Tieleman and Hinton, 2012).

    Args:
        rate: the step size, or a schedule.
        decay: how much of the mean stays, at least 0 and below 1.
        eps: is added to the root.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = rmsprop(0.01)
    >>> round(update(3.0, init(1.0), 1.0)[0], 6)
    0.9
    """
    return make_rule("rmsprop", rate, 1, step_over_root, decay=decay, eps=eps)


def step_over_root(
    g: Any, memory: Memory, p: Any, size: Any, _: Any, *, decay: float, eps: float
) -> tuple[Any, Memory]:
    """Return a leaf and the mean square of its gradients after a step of RMSProp."""
    mean = decay * memory[0] + (1.0 - decay) * square_magnitude(g)
    return p - size * g / (np.sqrt(mean) + eps), (mean,)


@hint_parameters("rules", "adagrad")
def adagrad(rate: Rate, eps: float = 1e-10, first: float = 0.0) -> Rule:
    """Return the rule that divides by the root of the sum of squares of all gradients (Duchi, Hazan and Singer, 2011).

    Args:
        rate: the step size, or a schedule.
        eps: is added to the root.
        first: what the sum is at first.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = adagrad(0.1)
    >>> parameters, state = update(3.0, init(1.0), 1.0)
    >>> round(parameters, 6), round(update(4.0, state, parameters)[0], 6)
    (0.9, 0.82)
    """
    return make_rule("adagrad", rate, 1, step_over_all, eps=eps, first=first)


def step_over_all(g: Any, memory: Memory, p: Any, size: Any, _: Any, *, eps: float, first: float) -> tuple[Any, Memory]:
    """Return a leaf and the sum of the squares of its gradients after a step of AdaGrad."""
    total = memory[0] + square_magnitude(g)
    return p - size * g / (np.sqrt(first + total) + eps), (total,)


@hint_parameters("rules", "lion")
def lion(rate: Rate = 1e-4, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 0.0) -> Rule:
    """Return the rule Lion, whose steps have one size (Chen et al., Symbolic discovery of algorithms, 2023).

    Args:
        rate: the step size, or a schedule.
        b1: how much of the mean of gradients is in the sum whose sign is the step, at least 0 and below 1.
        b2: how much of the mean of gradients stays, at least 0 and below 1.
        weight_decay: the share of a parameter that a step of size 1 takes off.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = lion(0.1)
    >>> update(3.0, init(1.0), 1.0)[0]
    0.9
    """
    return make_rule("lion", rate, 1, step_of_lion, b1=b1, b2=b2, weight_decay=weight_decay)


def step_of_lion(
    g: Any, memory: Memory, p: Any, size: Any, _: Any, *, b1: float, b2: float, weight_decay: float
) -> tuple[Any, Memory]:
    """Return a leaf and the mean of its gradients after a step of Lion."""
    direction = np.sign(b1 * memory[0] + (1.0 - b1) * g)
    return p - size * (direction + weight_decay * p), (b2 * memory[0] + (1.0 - b2) * g,)


@hint_parameters("rules", "adam")
def adam(rate: Rate = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rule:
    """Return the rule Adam (Kingma and Ba, Adam: a method for stochastic optimization, 2015, algorithm 1).

    Args:
        rate: the step size, or a schedule.
        b1: how much of the mean of gradients stays, at least 0 and below 1.
        b2: how much of the mean of their squares stays, at least 0 and below 1.
        eps: is added to the root of that mean.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = adam(0.1)
    >>> round(update(3.0, init(1.0), 1.0)[0], 6)
    0.9
    """
    return make_rule("adam", rate, 2, step_of_adam, b1=b1, b2=b2, eps=eps)


@hint_parameters("rules", "adamw")
def adamw(rate: Rate = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-2) -> Rule:
    """Return Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019, algorithm 2).

    Args:
        rate: the step size, or a schedule.
        b1: how much of the mean of gradients stays, at least 0 and below 1.
        b2: how much of the mean of their squares stays, at least 0 and below 1.
        eps: is added to the root of that mean.
        weight_decay: the share of a parameter that a step of size 1 takes off.

    Returns:
        The pair of functions.

    Raises:
        UsageError: a setting is out of its range.

    >>> init, update = adamw(0.1, weight_decay=0.5)
    >>> round(update(3.0, init(1.0), 1.0)[0], 6)
    0.85
    """
    return make_rule("adamw", rate, 2, step_of_adam, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay)


def step_of_adam(
    g: Any,
    memory: Memory,
    p: Any,
    size: Any,
    count: Any,
    *,
    b1: float,
    b2: float,
    eps: float,
    weight_decay: float = 0.0,
) -> tuple[Any, Memory]:
    """Return a leaf and the means of its gradients and of their squares after a step of Adam."""
    mean = b1 * memory[0] + (1.0 - b1) * g
    square = b2 * memory[1] + (1.0 - b2) * square_magnitude(g)
    root = np.sqrt(square / (1.0 - b2**count)) + eps
    kept = p if weight_decay == 0.0 else p - size * weight_decay * p
    return kept - size * (mean / (1.0 - b1**count)) / root, (mean, square)


def square_magnitude(g: Any) -> Any:
    """Return the square of the absolute value, in the gradient's dtype."""
    return g * np.conj(g) if aval_of(g).dtype.kind == "c" else g * g


def norm(tree: Any) -> Any:
    """Return the Euclidean norm of all elements of all leaves.

    Args:
        tree: containers of arrays.

    Returns:
        The norm, a real number; its gradient at 0 is 0.

    >>> float(norm({"a": 3.0, "b": [4.0]}))
    5.0
    """
    norms = [np.linalg.norm(np.ravel(leaf)) for leaf in flatten(tree)[0]]
    return np.linalg.norm(np.stack(norms)) if norms else 0.0


def clipped(rule: Rule, largest: float) -> Rule:
    """Return a rule whose gradients are made shorter first where their norm is too large.

    Args:
        rule: the pair of functions.
        largest: the norm over all leaves that stays as it is.

    Returns:
        The pair of functions.

    Raises:
        UsageError: `rule` is no rule, or `largest` no number of 0 or more.

    >>> init, update = clipped(sgd(1.0), 1.0)
    >>> update([30.0, 40.0], init([0.0, 0.0]), [0.0, 0.0])[0]
    [-0.6, -0.8]
    """
    require("clipped", "largest", largest)
    require_rule("clipped", rule)
    return Rule(rule.init, functools.partial(update_clipped, rule.update, largest))


def update_clipped(
    update: Callable[[Any, State, Any], tuple[Any, State]],
    largest: float,
    gradients: Any,
    state: State,
    parameters: Any,
) -> tuple[Any, State]:
    """Return new parameters and state after an update by gradients whose norm is at most `largest`."""
    slopes, structure = flatten(gradients)
    # a share of 1 where the norm is small, 0 among them
    share = largest / np.maximum(norm(slopes), largest) if largest > 0 else 0.0
    return update(unflatten(structure, [slope * share for slope in slopes]), state, parameters)


Schedule = Callable[[Any], Any]


def make_schedule(name: str, rate: Callable[..., Any], steps: int, **numbers: float) -> Schedule:
    """Return the schedule of a rate that depends on numbers of 0 or more and on so many steps."""
    for what, value in numbers.items():
        require(name, what, value)
    return functools.partial(rate, *numbers.values(), as_whole(f"optim.{name}", "steps", steps, 1))


def linear(start: float, end: float, steps: int) -> Schedule:
    """Return the schedule that goes from one rate to another in a line, and stays there.

    Args:
        start: the rate at first.
        end: the rate after `steps`.
        steps: how many steps it takes, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = linear(1.0, 0.0, 4)
    >>> float(rate(1)), float(rate(9))
    (0.75, 0.0)
    """
    return make_schedule("linear", linear_rate, steps, start=start, end=end)


def linear_rate(start: float, end: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return start + (end - start) * np.minimum(step / count, 1.0)


def exponential(start: float, factor: float, steps: int = 1) -> Schedule:
    """Return the schedule that multiplies the rate by a factor in each so many steps, smoothly.

    Args:
        start: the rate at first.
        factor: what it is multiplied by.
        steps: in how many steps, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a number is negative, or `steps` no whole number of 1 or more.

    >>> float(exponential(1.0, 0.5, 10)(20))
    0.25
    """
    return make_schedule("exponential", exponential_rate, steps, start=start, factor=factor)


def exponential_rate(start: float, factor: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return start * factor ** (step / count)


def cosine(start: float, steps: int, end: float = 0.0) -> Schedule:
    """Return the schedule that goes down as half a cosine wave (Loshchilov and Hutter, SGDR, 2017), and stays there.

    Args:
        start: the rate at first.
        steps: how many steps it takes, 1 or more.
        end: the rate after them.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = cosine(1.0, 10)
    >>> round(float(rate(5)), 12), round(float(rate(10)), 12)
    (0.5, 0.0)
    """
    return make_schedule("cosine", cosine_rate, steps, start=start, end=end)


def cosine_rate(start: float, end: float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    return end + 0.5 * (start - end) * (1.0 + np.cos(np.pi * np.minimum(step / count, 1.0)))


def piecewise(rates: Sequence[float], bounds: Sequence[int]) -> Schedule:
    """Return the schedule with one rate after another.

    Args:
        rates: the rates.
        bounds: the steps at which the second and later ones begin, increasing.

    Returns:
        The schedule.

    Raises:
        UsageError: there is not one bound less than rates, or bounds do not increase.

    >>> rate = piecewise([1.0, 0.1], [3])
    >>> float(rate(2)), float(rate(3))
    (1.0, 0.1)
    """
    values = as_items("optim.piecewise", "rates", rates)
    limits = [as_whole("optim.piecewise", "a bound", b) for b in as_items("optim.piecewise", "bounds", bounds)]
    if len(values) != len(limits) + 1 or any(a >= b for a, b in pairwise(limits)):
        given = f"{len(values)} rates and bounds {limits!r:.40}"
        needed = "one bound less than rates is needed, increasing"
        raise UsageError("optim.piecewise", given, needed, "Pass the step at which each later rate begins")
    for rate in values:
        require("piecewise", "a rate", rate)
    return functools.partial(table_rate, np.array(values, float), np.array(limits))


def table_rate(rates: Any, begins: Any, step: Any) -> Any:
    """Return the rate of a step."""
    return np.sum(np.where(np.arange(len(rates)) == np.sum(step >= begins), rates, 0.0))


def warmed_up(schedule: Schedule | float, steps: int) -> Schedule:
    """Return a schedule that begins small: in the first steps it grows from 0 in a line.

    Args:
        schedule: a rate, or the schedule that begins after these steps.
        steps: their number, 1 or more.

    Returns:
        The schedule.

    Raises:
        UsageError: a rate is negative, or `steps` no whole number of 1 or more.

    >>> rate = warmed_up(1.0, 4)
    >>> float(rate(0)), float(rate(2)), float(rate(9))
    (0.0, 0.5, 1.0)
    """
    count = as_whole("optim.warmed_up", "steps", steps, 1)
    if not callable(schedule):
        require("warmed_up", "schedule", schedule)
        schedule = float(schedule)
    return functools.partial(ramp_rate, schedule, count)


def ramp_rate(schedule: Schedule | float, count: int, step: Any) -> Any:
    """Return the rate of a step."""
    rate = schedule(np.maximum(step - count, 0)) if callable(schedule) else schedule
    return rate * np.minimum(step / count, 1.0)
