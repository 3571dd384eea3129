"""Explanations of forward mode: each step with its derivatives by the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.core.values.tensor import raw
from wengert.explanation.listing import ForwardListing, Reference, elements_now
from wengert.explanation.steps import Explanation, Step, name_results, steps_of
from wengert.transforms.forward import push_forward


def forward_explanation(fun: Callable[..., Any], args: Sequence[Any], names: Sequence[str], title: str) -> Explanation:
    """Explain a function of numbers and arrays, and how forward mode computes its derivatives.

    There is one pass for each element of each argument. The derivatives of a step by an argument have the axes of the
    step and then those of the argument.

    Args:
        fun: a function of real numbers and arrays.
        args: where.
        names: what the arguments are called.
        title: what the explanation is headed with.
    """
    tangents: dict[str, Sequence[Any]] = {}
    gradient: list[Any] = []
    output: Any = None
    steps: list[Step] = []
    for i, name in enumerate(names):
        shape = np.shape(args[i])
        columns: list[list[Any]] = []
        slopes: list[Any] = []
        for seed in unit_vectors(args[i]):
            listing, output, slope, inputs = one_pass(fun, args, i, seed)
            steps = steps or name_steps(listing, inputs, names)
            slopes.append(elements_now(slope))
            columns.append([seed if j == i else None for j in range(len(args))])
            columns[-1] += [t for operation in listing.operations for t in operation.tangents]
        values = [*map(np.asarray, args), *(step.value for step in steps)]
        tangents[name] = [
            stack_tangents([np.zeros(np.shape(value)) if t is None else t for t in row], shape)
            for value, row in zip(values, zip(*columns, strict=True), strict=True)
        ]
        gradient.append(stack_tangents(slopes, shape))
    return Explanation(
        title=title,
        inputs=tuple(Step(name, "", elements_now(x)) for name, x in zip(names, args, strict=True)),
        forward=tuple(steps),
        reverse=(),
        value=raw(output),
        gradient=gradient[0] if len(gradient) == 1 else tuple(gradient),
        tangents=tangents,
    )


def unit_vectors(x: Any) -> Iterator[Any]:
    """Yield a tangent for each element of an argument."""
    size, shape = np.size(x), np.shape(x)
    for j in range(size):
        unit = np.zeros(size)
        unit[j] = 1.0
        yield unit.reshape(shape)[()]


def one_pass(
    fun: Callable[..., Any], args: Sequence[Any], place: int, seed: Any
) -> tuple[ForwardListing, Any, Any, list[Reference]]:
    """Evaluate a function along one direction; return what was listed, value, slope, and what stands for arguments."""
    listings: list[ForwardListing] = []
    inputs: list[Reference] = []

    def listed(level: int, label: Callable[[], str]) -> ForwardListing:
        listings.append(ForwardListing(level, label))
        return listings[0]

    def function(*values: Any) -> Any:
        inputs.extend(listings[0].result_reference(x) for x in values)
        return fun(*values)

    directions = [seed if i == place else np.zeros(np.shape(x))[()] for i, x in enumerate(args)]
    output, slope = push_forward("explain", function, args, directions, kind=listed)
    return listings[0], output, slope, inputs


def name_steps(listing: ForwardListing, inputs: Sequence[Reference], names: Sequence[str]) -> list[Step]:
    """Return the steps of a pass."""
    known = name_results(listing, inputs, names)
    return [step for operation in listing.operations for step in steps_of(operation, known)]


def stack_tangents(tangents: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return the derivatives along unit vectors as one array, the axes of the argument last."""
    found = np.stack([np.asarray(t) for t in tangents], axis=-1) if tangents else np.zeros(0)
    return found.reshape((*found.shape[:-1], *shape))[()]
