"""Graphs: how large traced gradients are, and what it costs to trace them.

Counted are the equations of a gradient, the guards among them (strong zeros, ADR 0006), and the bytes that the forward
half of a jitted function keeps for the backward half, besides its arguments. `second` is the gradient of the squared
length of the gradient.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import wengert as wg
from benchmarks.graph_list import EXAMPLES, Example
from benchmarks.measure import Case, timed
from wengert.core.graph.graph import Graph
from wengert.passes.gradient_split import cut
from wengert.transforms.form_graphs import joint_graph
from wengert.transforms.tracing import trace

__all__ = ["cases", "gradient", "residual_bytes", "second"]

Function = Callable[..., Any]


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; threads do not matter."""
    for example in EXAMPLES:
        joint = joint_graph(trace(example.function)(*example.arguments), [True] * len(example.arguments)).graph
        kept = {"residual bytes": f"{residual_bytes(joint, len(example.arguments)):,}"}
        yield case(example.name, gradient(example), example, kept)
        if example.twice:
            yield case(f"{example.name}, second", second(example), example, {"residual bytes": ""})


def case(name: str, function: Function, example: Example, kept: Mapping[str, str]) -> Case:
    """Return the case of tracing a function, labelled with what its graph holds."""

    def step() -> Graph:
        return trace(function)(*example.arguments)

    equations = step().equations
    guards = sum(equation.primitive.name == "guarded" for equation in equations)
    labels = {"equations": f"{len(equations):,}", "guards": str(guards), **kept}

    def make(library: str) -> Any:
        return timed(step, time.process_time) if library == "wengert" else None

    return Case(name, 1, make, rounds=9, labels=labels)


def gradient(example: Example) -> Function:
    """Return the gradient in all arguments."""
    return wg.grad(example.function, tuple(range(len(example.arguments))))


def second(example: Example) -> Function:
    """Return the gradient of the squared length of the gradient."""
    first = gradient(example)

    def squared_length(*args: Any) -> Any:
        return sum(np.sum(part * part) for part in first(*args))

    return wg.grad(squared_length, tuple(range(len(example.arguments))))


def residual_bytes(joint: Graph, arguments: int) -> int:
    """Return the bytes of what the forward half of a gradient keeps besides the arguments."""
    kept = cut(joint, arguments, 1, [True] * arguments).residuals
    return sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in kept)
