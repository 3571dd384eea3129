"""Reverse mode by sensitivities: how states change with what they depend on is integrated beside them.

The sensitivities are the derivatives of the steps taken, so gradients are those that reverse mode gives; systems of
implicit methods have the same factors, and a right-hand side more for each number (staggered: W. F. Feehery et al.,
Applied Numerical Mathematics 25, 1997). No step is kept, and time grows with how many numbers there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.values.tensor import Tensor
from wengert.scipy.integrate._programs import IntegrationProgram
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import jvp
from wengert.transforms.jacobian import jacfwd
from wengert.transforms.jit import jit


def at_stops_by_sensitivities(program: IntegrationProgram, inputs: tuple[Any, ...], control: Any) -> Any:
    """Return what a program gives at output times, with derivatives of the states there by sensitivities.

    Args:
        program: integrates.
        inputs: its arguments but for the last: those that are Tensors may be differentiated.
        control: the last argument.
    """
    leaves, structure = flatten(inputs)
    moving = tuple([type(x) is Tensor and x.dtype.kind == "f" for x in leaves])
    if not any(moving) or program.traced:  # of what is no argument of the rule nobody would know derivatives
        return program.at_stops(*inputs, control)
    chosen, fixed = ([x for x, moves in zip(leaves, moving, strict=True) if moves is own] for own in (True, False))

    def run(chosen: Sequence[Any], fixed: Sequence[Any], control: Any) -> Any:
        parts = {True: iter(chosen), False: iter(fixed)}
        return program.at_stops(*unflatten(structure, [next(parts[moves]) for moves in moving]), control)

    key = (structure, moving)
    if key not in program.sensitivities:
        program.sensitivities[key] = jit(lambda *given: with_jacobian(run, *given), memory_budget=program.budget)
    together = program.sensitivities[key]
    shapes = [x.shape for x in chosen]
    solution = custom_rule(lambda *chosen: run(chosen, fixed, control))

    def forward(*chosen: Any) -> Any:
        return together(chosen, fixed, control)

    def backward(jacobian: Any, ct: Any) -> Any:
        found = np.tensordot(ct[1][0], jacobian, axes=ct[1][0].ndim)
        return split_like(found, shapes)

    def push(primals: Any, tangents: Any) -> Any:
        return jvp(lambda *chosen: run(chosen, fixed, control), primals, tangents)

    solution.defvjp(forward, backward)
    solution.defjvp(push)
    return solution(*chosen)


def with_jacobian(run: Any, chosen: Sequence[Any], fixed: Sequence[Any], control: Any) -> Any:
    """Return what a program gives, and the Jacobian of the states at output times by all numbers of some arrays."""
    shapes = [x.shape for x in chosen]

    def states(numbers: Any) -> Any:
        found = run(split_like(numbers, shapes), fixed, control)
        return found[1][0], found

    jacobian, found = jacfwd(states, has_aux=True)(np.concatenate([np.reshape(x, (-1,)) for x in chosen]))
    return found, jacobian


def split_like(numbers: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
    """Return numbers, one after another, as arrays of some shapes."""
    sizes = list(map(math.prod, shapes))
    ends = np.cumsum(sizes).tolist()
    return tuple([numbers[end - size : end].reshape(x) for end, size, x in zip(ends, sizes, shapes, strict=True)])
