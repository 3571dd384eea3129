"""Calls of Python's own functions of numbers that the number of the round decides: what they give are rows of a table.

`math.sin(i * h)` has no value while a round is traced that stands for all. In each round it has one, which Python
gives before the loop: so a loop that is one equation has the same bits as one that is written out.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from wengert.conversion.known_numbers import as_python, equations_of
from wengert.conversion.known_rounds import Numbers
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.values.dispatch import as_tensor, weaken
from wengert.core.values.python_numbers import LARGEST
from wengert.core.values.tensor import Tensor, is_staged
from wengert.passes.dead_code import eliminate_dead
from wengert.support.caches import cached
from wengert.traces.staging import Staging
from wengert.traces.whole_number_bounds import set_bounds
from wengert.traces.written_out import ROLLING

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    builtins.float,
    *(x for x in vars(math).values() if type(x) is BuiltinFunctionType),
)
"""Functions that give a number, of numbers; what they are given besides is not known before the loop."""
Tables = dict[Hashable, np.ndarray[Any, Any] | None]


class TracedRounds:
    """Know the rounds of a loop, one of which is being traced.

    Args:
        stage: what it is traced by.
        count: how many there are.
        counters: what stands for the numbers that rounds go through, each with what gives it of how many were before.
        tables: those that are known of the loop, to which new ones are added: a round is traced until all is known.
    """

    def __init__(self, stage: Staging, count: int, counters: Sequence[tuple[Tensor, Numbers]], tables: Tables) -> None:
        self.stage, self.count, self.counters, self.tables = stage, count, counters, tables

    def tabulate(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Return what stands for what a function gives in a round; None if nobody knows it before the loop."""
        variables = [x._value if type(x) is Tensor else x for x in args]
        own, known = equations_of(self.stage.equations, {x for x, _ in self.sources})
        if not all(self.is_known(x, known) for x in args):
            return None
        graph = eliminate_dead(Graph([x for x, _ in self.sources], own, variables))
        key = function, graph.structure()
        if key not in self.tables:
            self.tables[key] = self.table(function, graph)
        table = self.tables[key]
        if table is None:
            return None
        counter, source = self.counters[0]
        place = counter if source == Numbers(0, 1) else (counter - source.start) // source.step
        found = weaken(as_tensor(table)[place])
        if table.dtype.kind == "i":
            set_bounds(found._value, int(table.min()), int(table.max()))
        return found

    @cached
    def sources(self) -> list[tuple[Variable, Numbers]]:
        """The variables of the numbers that rounds go through, each with what gives it."""
        return [(x._value, source) for x, source in self.counters]

    def is_known(self, value: Any, known: set[Variable]) -> bool:
        """Tell whether an argument is a number, or depends on the number of the round alone."""
        if type(value) is not Tensor:
            return type(value) in (bool, int, float)
        return value._trace is self.stage and value.shape == () and value._value in known

    def table(self, function: Callable[..., Any], graph: Graph) -> np.ndarray[Any, Any] | None:
        """Return what a function gives in each round; None if it is no number of one type, or an error."""
        rows: list[Any] = []
        for k in range(self.count):
            found = evaluate(graph, [source.at(k) for _, source in self.sources])
            pairs = zip(found, graph.outputs, strict=True)
            try:
                rows.append(function(*[as_python(x, v) if type(v) is Variable else v for x, v in pairs]))
            except (ArithmeticError, TypeError, ValueError):  # which the round raises that has it
                return None
        kinds = set(map(type, rows))
        if kinds == {float} or (kinds == {int} and all(-LARGEST <= x < LARGEST for x in rows)):
            return np.array(rows)
        return None


def make_tabulating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of a function of Python's numbers."""

    def call(*args: Any, **kwargs: Any) -> Any:
        rounds: TracedRounds | None = ROLLING.rounds
        if rounds is not None and ROLLING.strict and not kwargs and any(map(is_staged, args)):
            found = rounds.tabulate(function, args)
            if found is not None:
                return found
        return function(*args, **kwargs)

    return call


TABULATED: Mapping[Any, Callable[..., Any]] = {function: make_tabulating(function) for function in FUNCTIONS}
