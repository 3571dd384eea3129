"""What functions of `wengert` mean, in plain Python: `vmap` is a loop over calls, `cond` an if statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import wengert

__all__ = ["PLAIN"]

Function = Callable[..., Any]


def copied(value: Any) -> Any:
    """Return arrays in containers in memory of their own: a function may write to its arguments."""
    if isinstance(value, list | tuple):
        return type(value)(map(copied, value))
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value.copy(order="K") if isinstance(value, np.ndarray | wengert.Tensor) else value


def jit(function: Function) -> Function:
    """Return a function that cannot write to what its caller passes."""
    return lambda *arguments: function(*copied(arguments))


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """Call one of two functions."""
    return (true_fun if pred else false_fun)(*copied(operands))


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Call one of several functions."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*copied(operands))


def while_loop(
    cond_fun: Function, body_fun: Function, init_val: Any, *, rows: bool = False, max_rounds: int | None = None
) -> Any:
    """Repeat while a condition holds, so often at most; with what is left behind, and zeros to the greatest number."""
    value, left = copied(init_val), list[Any]()
    while (max_rounds is None or len(left) < max_rounds) and cond_fun(value):
        found = copied(body_fun(copied(value)))
        value, item = found if rows else (found, None)
        left.append(item)
    if not rows or max_rounds is None:
        return value
    missing = max_rounds - len(left)
    like = left[0] if left else body_fun(copied(value))[1]
    return value, np.stack([*left, *[np.zeros_like(like)] * missing]), len(left)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """Repeat for each integer of a range."""
    value = copied(init_val)
    for i in range(int(lower), int(upper)):
        value = copied(body_fun(i, copied(value)))
    return value


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: bool = False
) -> tuple[Any, Any]:
    """Repeat for each row of some arrays, and stack what is left."""
    arrays = xs if isinstance(xs, tuple) else () if xs is None else (xs,)
    count = len(arrays[0]) if length is None else length
    carried, left = copied(init), []
    for i in reversed(range(count)) if reverse else range(count):
        rows = tuple(copied(x[i]) for x in arrays)
        carried, item = f(copied(carried), rows if isinstance(xs, tuple) else rows[0] if rows else None)
        carried, item = copied((carried, item))  # what loops give is nobody else's
        left.append(item)
    ordered = left[::-1] if reverse else left
    return carried, None if ordered[0] is None else np.stack(ordered)


def vmap(function: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """Call a function for every lane, one after the other, and stack the results."""

    def mapped(*arguments: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        sizes = {size for axis, x in zip(axes, arguments, strict=True) for size in lengths(axis, x)}
        (count,) = sizes
        results = [
            function(*copied(tuple(lane(axis, x, i) for axis, x in zip(axes, arguments, strict=True))))
            for i in range(count)
        ]
        return stacked(out_axes, results)

    return mapped


def lengths(axis: Any, value: Any) -> list[int]:
    """Return how many lanes the arrays of a container have."""
    if axis is None:
        return []
    if isinstance(value, dict):
        return [n for k, x in value.items() for n in lengths(axis[k] if isinstance(axis, dict) else axis, x)]
    if isinstance(value, list | tuple):
        return [n for k, x in enumerate(value) for n in lengths(axis if isinstance(axis, int) else axis[k], x)]
    return [value.shape[axis]]


def lane(axis: Any, value: Any, i: int) -> Any:
    """Return one lane of a container of arrays."""
    if axis is None:
        return value
    if isinstance(value, dict):
        return {k: lane(axis[k] if isinstance(axis, dict) else axis, x, i) for k, x in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(lane(axis if isinstance(axis, int) else axis[k], x, i) for k, x in enumerate(value))
    return value[(*(slice(None),) * (axis % value.ndim), i)]


def stacked(axis: Any, results: Sequence[Any]) -> Any:
    """Return the results of all lanes, in tuples."""
    if isinstance(results[0], tuple):
        axes = axis if isinstance(axis, tuple) else (axis,) * len(results[0])
        columns = zip(*results, strict=True)
        return tuple(stacked(place, column) for place, column in zip(axes, columns, strict=True))
    return results[0] if axis is None else np.stack(results, axis=axis)


class Ruled:
    """Be a function whose rules are not asked for."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)

    def defvjp(self, *rules: Function) -> None:
        """Ignore a rule."""

    defjvp = defvjp


class Context(SimpleNamespace):
    """Take what a `Function` saves."""

    def save_for_backward(self, *saved: Any) -> None:
        """Ignore it."""


class PlainFunction:
    """Be a function whose rules are not asked for, with a context."""

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Call `forward`."""
        return cls.forward(Context(), *arguments)  # type: ignore[attr-defined]  # which the programs define


PLAIN = SimpleNamespace(
    **{name: getattr(wengert, name) for name in ("tensor", "grad", "jvp", "hessian")},
    **{f.__name__: f for f in (cond, switch, while_loop, fori_loop, scan, vmap, jit)},
    asarray=lambda value: value,
    checkpoint=lambda function: function,
    custom_rule=Ruled,
    autograd=SimpleNamespace(Function=PlainFunction),
)
"""In place of `wengert` in a program."""
