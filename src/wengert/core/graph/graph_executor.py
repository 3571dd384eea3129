"""Steps: the equations of a graph made ready to run on arrays and numbers.

To look up variables, traces and parameters takes longer than NumPy does for small arrays. A step knows beforehand what
it needs of them: the function to call, and the places of its operands and results in one list of all values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import call_with_warnings, strict
from wengert.core.diagnostics.source_positions import speaks_for
from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import NUMBERS, strong
from wengert.core.values.evaluation import evaluate_primitive
from wengert.native.threads.elementwise import LARGE
from wengert.support.deferred_warnings import require_warning

Step = Callable[[list[Any]], None]
SMALL = 4096
"""Values of fewer bytes are dropped with all others at the end: to drop one takes as long as to add two numbers."""


class GraphSteps:
    """Hold what runs equations on values without traces.

    Attributes:
        rest: what the list of values holds after the inputs at the beginning: literals, and room for results.
        pairs: each step with its equation.
        outputs: the places of the results.
    """

    __slots__ = ("outputs", "pairs", "rest")

    def __init__(self, inputs: Sequence[Variable], equations: Sequence[Equation], outputs: Sequence[Any]) -> None:
        self.rest: list[Any] = []
        self.pairs: list[tuple[Step, Equation]] = []
        places = {variable: i for i, variable in enumerate(inputs)}

        def place(value: Any) -> int:
            if type(value) is Variable and value in places:
                return places[value]
            self.rest.append(None if type(value) is Variable else value)
            found = len(inputs) + len(self.rest) - 1
            if type(value) is Variable:
                places[value] = found
            return found

        last = last_uses(equations, outputs)
        for i, equation in enumerate(equations):
            operands = [strong(x) if equation.primitive.firm and type(x) in NUMBERS else x for x in equation.inputs]
            step = step_of(equation, [place(x) for x in operands], [place(x) for x in equation.outputs])
            self.pairs.append((step, equation))
            dropped = [places[x] for x in last.get(i, ()) if math.prod(x.shape) * x.dtype.itemsize not in range(SMALL)]
            if dropped:
                self.pairs.append((partial(drop, dropped), equation))
        self.outputs = [place(x) for x in outputs]

    @speaks_for("equation")
    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results for arrays and numbers of the types of the inputs."""
        values = [*inputs, *self.rest]
        try:
            for step, equation in self.pairs:  # noqa: B007 - what is said belongs to the line of the equation
                step(values)
        except (np.linalg.LinAlgError, IndexError, ValueError) as error:
            if type(error) in OF_NUMPY:
                say_where(error, equation)
            raise
        return tuple([values[i] for i in self.outputs])


OF_NUMPY = frozenset({np.linalg.LinAlgError, np.exceptions.AxisError, IndexError, ValueError})
"""Errors that say nothing of where they belong; the library's own are of further classes."""


def say_where(error: Exception, equation: Equation) -> None:
    """Add to an error of NumPy's which line it belongs to, and that an `except` there is no part of the graph."""
    if not getattr(error, "__notes__", ()):
        error.add_note(
            f"This was raised while a traced function ran, at {equation.position or equation}. To catch it, call the "
            "function under try: an `except` inside of it belongs to the trace."
        )


def last_uses(equations: Sequence[Equation], outputs: Sequence[Any]) -> dict[int, list[Variable]]:
    """Return for each equation the variables that nothing needs after it."""
    place: dict[Variable, int] = {}
    for i, equation in enumerate(equations):
        for variable in (*equation.inputs, *equation.outputs):
            if type(variable) is Variable:
                place[variable] = i
    for variable in outputs:
        if type(variable) is Variable:
            place.pop(variable, None)
    found: dict[int, list[Variable]] = {}
    for variable, i in place.items():
        found.setdefault(i, []).append(variable)
    return found


def drop(places: Sequence[int], values: list[Any]) -> None:
    """Forget values that nothing needs any more."""
    for i in places:
        values[i] = None


def is_weak(operand: Any) -> bool:
    """Tell whether an operand will be a Python number."""
    return operand.weak if type(operand) is Variable else type(operand) in NUMBERS


def step_of(equation: Equation, operands: Sequence[int], results: Sequence[int]) -> Step:
    """Return the step of an equation."""
    primitive, inputs = equation.primitive, equation.inputs
    weak = [is_weak(x) for x in inputs]
    if primitive.structured:
        return several(partial(primitive.evaluate, **equation.params), operands, results)
    of_numbers = (weak[0] and weak[-1]) if primitive.operator is not None else primitive.firm and any(weak)
    if of_numbers or len(results) != 1 or primitive.outputs != 1:
        return several(partial(of_values, primitive, dict(equation.params)), operands, results)
    function = primitive.evaluate
    if primitive.evaluate_large is not None and any(size_of(x) >= LARGE for x in inputs):
        function = primitive.evaluate_large
    if type(function) is not np.ufunc and not primitive.gives_number:
        return firm(strict(function), equation.params, operands, *results)
    if equation.params:
        function = partial(function, **equation.params)
    return (general, unary, binary)[len(operands) if len(operands) < 3 else 0](function, operands, *results)


def size_of(operand: Any) -> int:
    """Return the number of elements of an operand."""
    return math.prod(operand.shape) if type(operand) is not int and hasattr(operand, "shape") else 1


def of_values(primitive: Any, params: dict[str, Any], *values: Any) -> Any:
    """Evaluate a primitive on values some of which are Python numbers."""
    return evaluate_primitive(primitive, values, params)


def unary(function: Callable[..., Any], operands: Sequence[int], result: int) -> Step:
    """Return the step of a function of one operand."""
    (i,) = operands

    def step(values: list[Any]) -> None:
        values[result] = function(values[i])

    return step


def binary(function: Callable[..., Any], operands: Sequence[int], result: int) -> Step:
    """Return the step of a function of two operands."""
    i, j = operands

    def step(values: list[Any]) -> None:
        values[result] = function(values[i], values[j])

    return step


def general(function: Callable[..., Any], operands: Sequence[int], result: int) -> Step:
    """Return the step of a function of any number of operands."""

    def step(values: list[Any]) -> None:
        values[result] = function(*[values[i] for i in operands])

    return step


def firm(function: Callable[..., Any], params: Mapping[str, Any], operands: Sequence[int], result: int) -> Step:
    """Return the step of a function that may return a Python number in the place of a scalar, and may warn."""
    call = partial(function, **params) if params else function
    if len(operands) == 1:
        (i,) = operands

        def step(values: list[Any]) -> None:
            try:
                found = call(values[i])
            except TypeError as error:
                require_warning(error)
                found = call_with_warnings(function, (values[i],), params)
            values[result] = strong(found) if type(found) in NUMBERS else found

        return step

    def step_of_several(values: list[Any]) -> None:
        arguments = [values[i] for i in operands]
        try:
            found = call(*arguments)
        except TypeError as error:
            require_warning(error)
            found = call_with_warnings(function, arguments, params)
        values[result] = strong(found) if type(found) in NUMBERS else found

    return step_of_several


def several(function: Callable[..., Any], operands: Sequence[int], results: Sequence[int]) -> Step:
    """Return the step of a function that returns several values, or one that may be in a tuple."""

    def step(values: list[Any]) -> None:
        found = function(*[values[i] for i in operands])
        for i, value in zip(results, found if isinstance(found, tuple | list) else (found,), strict=True):
            values[i] = value

    return step
