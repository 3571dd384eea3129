"""Python's numbers that a loop of known rounds carries or leaves and that nothing traced decides: they are known.

After the loop the program may do with them what a graph cannot, such as to print them or to ask for their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.values.tensor import Tensor
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import variables

NUMBERS = (bool, int, float, complex)
OF_KIND = {"b": bool, "i": int, "f": float, "c": complex}


class NumbersInRounds:
    """Hold what rounds do with Python's numbers, apart from all else.

    Args:
        equations: those of a round.
        counters: the variables of the numbers that rounds go through, each with what gives it of how many were before.
        carried: the variable of each leaf that is carried, with its value before the first round.
        ends: what a round leaves: of each of these, and then whatever else.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        counters: Sequence[tuple[Variable, Any]],
        carried: Sequence[tuple[Variable, Any]],
        ends: Sequence[Any],
    ) -> None:
        self.counters = counters
        self.ends = [x._value if type(x) is Tensor else x for x in ends]
        begins = {v: (k, start) for k, (v, start) in enumerate(carried) if v.weak and type(start) in NUMBERS}
        while True:
            own, known = equations_of(equations, {*begins, *(v for v, _ in counters)})
            rest = {v: x for v, x in begins.items() if self.is_known(self.ends[x[0]], known)}
            if len(rest) == len(begins):
                break
            begins = rest
        self.places = [k for k, x in enumerate(self.ends) if type(x) is Variable and self.is_known(x, known)]
        self.constants = {k: x for k, x in enumerate(self.ends) if type(x) in NUMBERS}
        self.begins: dict[Variable, tuple[int, Any]] = {}
        while True:
            self.graph = self.graph_of(own)
            used = variables([*self.graph.outputs, *chain.from_iterable(x.inputs for x in self.graph.equations)])
            read = {v: x for v, x in begins.items() if v in used}
            if len(read) == len(self.begins):
                break
            self.begins = read

    def graph_of(self, own: Sequence[Equation]) -> Graph:
        """Return what gives of the numbers of a round those that following rounds read, and then those left."""
        inputs = [*(v for v, _ in self.counters), *self.begins]
        following = [self.ends[k] for k, _ in self.begins.values()]
        return eliminate_dead(Graph(inputs, own, [*following, *(self.ends[k] for k in self.places)]))

    @staticmethod
    def is_known(end: Any, known: set[Variable]) -> bool:
        """Tell whether what a round leaves is one of Python's numbers that is known."""
        return (end in known and end.weak) if type(end) is Variable else type(end) in NUMBERS

    def run(self, rounds: int, rows: int) -> dict[int, Any]:
        """Return what is known of what some rounds leave, by its position: a number, or one a round from `rows` on.

        The last round alone is carried out if nothing else is asked for, as 10^6 rounds would take seconds.
        """
        same = {k: x for k, x in self.constants.items() if k < rows and rounds}
        if not self.places:
            return same
        state = [start for _, start in self.begins.values()]
        left: list[tuple[Any, ...]] = []
        is_last = not self.begins and self.places[-1] < rows
        for k in range(max(rounds - 1, 0) if is_last else 0, rounds):
            numbers = [source.at(k) for _, source in self.counters]
            found = evaluate(self.graph, [*numbers, *state])
            state = [as_python(x, v) for x, v in zip(found, self.begins, strict=False)]
            left[len(left) if self.places[-1] >= rows else 0 :] = [found[len(state) :]]
        columns = zip(self.places, zip(*left, strict=True), strict=True)
        numbers_of = {k: [as_python(x, self.ends[k]) for x in column] for k, column in columns}
        return same | {k: column if k >= rows else column[-1] for k, column in numbers_of.items()}


def equations_of(equations: Sequence[Equation], given: set[Variable]) -> tuple[list[Equation], set[Variable]]:
    """Return the equations that depend on nothing but some variables, and these with what such equations give."""
    own, known = [], set(given)
    for equation in equations:
        if equation.outputs and variables(equation.inputs) <= known:
            own.append(equation)
            known.update(equation.outputs)
    return own, known


def as_python(value: Any, variable: Variable) -> Any:
    """Return a number as Python has it."""
    return kind_of(variable)(value)


def kind_of(variable: Variable) -> type:
    """Return the type of Python's numbers that a variable stands for."""
    return OF_KIND[variable.dtype.kind]
