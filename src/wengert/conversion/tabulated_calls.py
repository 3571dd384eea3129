"""Calls of Python's own functions of numbers that the number of the round decides: what they give are rows of a table.

`math.sin(i * h)` has no value while a round is traced that stands for all. In each round it has one, which Python
gives before the loop: so a loop that is one equation has the same bits as one that is written out.

So has `math.sin(t)` of a number that rounds carry, as `t += h` does, and that nothing traced decides. What it is in
each round is known once a round has been traced; until then a call has what stands for what it gives.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from wengert.conversion.known_numbers import NumbersInRounds, as_python, equations_of
from wengert.conversion.known_rounds import Numbers
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.values.dispatch import as_tensor, weaken
from wengert.core.values.python_numbers import LARGEST
from wengert.core.values.tensor import Tensor, is_staged
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import distinct_variables
from wengert.support.caches import cached
from wengert.support.records import NamedTuple
from wengert.traces.staging import Staging
from wengert.traces.whole_number_bounds import set_bounds
from wengert.traces.written_out import ROLLING

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    builtins.float,
    *(x for x in vars(math).values() if type(x) is BuiltinFunctionType),
)
"""Functions that give a number, of numbers; what they are given besides is not known before the loop."""
Tables = dict[Hashable, np.ndarray[Any, Any] | None]
Columns = dict[Hashable, list[Any]]
"""What numbers that rounds carry are at the beginning of each round, by the place that holds one."""


class CarriedNumber(NamedTuple):
    """Hold a number of Python's that rounds carry.

    Attributes:
        key: tells the place that holds it.
        variable: what stands for it in the round that is traced.
        start: what it was before the loop.
    """

    key: Hashable
    variable: Variable
    start: Any


class TracedRounds:
    """Know the rounds of a loop, one of which is being traced.

    Args:
        stage: what it is traced by.
        count: how many there are.
        counters: what stands for the numbers that rounds go through, each with what gives it of how many were before.
        tables: those that are known of the loop, to which new ones are added: a round is traced until all is known.
        columns: what is known of the numbers that rounds carry; none yet of those that `may_come`.

    Attributes:
        carried: the numbers of Python's that rounds carry.
        values: what is known of variables: what they are in each round.
        first_values: what variables are in the first round alone.
        expected: what stands for results that a table will give, once it is known what rounds carry.
        asks_for_number: whether a table was asked for by rounds of rows, which do not know how many were before.
    """

    def __init__(
        self,
        stage: Staging,
        count: int,
        counters: Sequence[tuple[Tensor, Numbers]],
        tables: Tables,
        columns: Columns,
        may_come: bool,
    ) -> None:
        self.stage, self.count, self.counters, self.tables = stage, count, counters, tables
        self.columns, self.may_come = columns, may_come
        self.carried: list[CarriedNumber] = []
        self.values: dict[Variable, Sequence[Any]] = {}
        self.first_values: dict[Variable, Sequence[Any]] = {}
        self.expected: set[Variable] = set()
        self.asks_for_number = False

    def tabulate(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Return what stands for what a function gives in a round; None if nobody knows it before the loop."""
        given = [x for x in self.carried if x.key in self.columns]
        graph = self.graph_of(args, given, [e for e in self.stage.equations if self.expected.isdisjoint(e.outputs)])
        if graph is None:
            return self.expect(function, args) if self.may_come else None
        key = function, tuple([x.key for x in given]), graph.structure()
        if key not in self.tables:
            self.values.update((x.variable, self.columns[x.key]) for x in given)
            self.tables[key] = self.table(function, graph, self.values, self.count)
        table = self.tables[key]
        return None if table is None else self.row_of(table)

    def graph_of(
        self, args: Sequence[Any], given: Sequence[CarriedNumber], equations: Sequence[Equation]
    ) -> Graph | None:
        """Return the arguments of a call, of the numbers that rounds go through and carry; None if of others, too."""
        inputs = [*(v for v, _ in self.sources), *(x.variable for x in given)]
        own, known = equations_of(equations, set(inputs))
        if not all(self.is_known(x, known) for x in args):
            return None
        return eliminate_dead(Graph(inputs, own, [x._value if type(x) is Tensor else x for x in args]))

    def expect(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Return what stands for a result until it is known what rounds carry; None if they carry no such numbers."""
        graph = self.graph_of(args, self.carried, self.stage.equations)
        if graph is None:
            return None
        self.first_values.update((x.variable, [x.start]) for x in self.carried)
        first = self.table(function, graph, self.first_values, 1)
        if first is None:
            return None
        found = self.row_of(np.repeat(first, self.count))
        if found is not None:
            self.expected.add(found._value)
        return found

    def row_of(self, table: np.ndarray[Any, Any]) -> Any:
        """Return what stands for the number that a table has for a round; None if that has no number of its own."""
        if not self.counters:
            self.asks_for_number = True
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

    def table(
        self, function: Callable[..., Any], graph: Graph, values: dict[Variable, Sequence[Any]], count: int
    ) -> np.ndarray[Any, Any] | None:
        """Return what a function gives in each round; None if it is no number of one type, or an error."""
        values.update((v, [source.at(k) for k in range(count)]) for v, source in self.sources if v not in values)
        evaluate_rounds(graph, values, count)
        rows: list[Any] = []
        for k in range(count):
            try:
                rows.append(
                    function(*[as_python(values[v][k], v) if type(v) is Variable else v for v in graph.outputs])
                )
            except (ArithmeticError, TypeError, ValueError):  # which the round raises that has it
                return None
        kinds = set(map(type, rows))
        if kinds == {float} or (kinds == {int} and all(-LARGEST <= x < LARGEST for x in rows)):
            return np.array(rows)
        return None

    def look_up_carried(self, ends: Sequence[Any]) -> Columns:
        """Return what the numbers that rounds carry are, as far as is known of what a round leaves of each of them."""
        equations = [e for e in self.stage.equations if self.expected.isdisjoint(e.outputs)]
        numbers = NumbersInRounds(equations, self.sources, [(x.variable, x.start) for x in self.carried], ends)
        left = {k: [x] * self.count for k, x in numbers.constants.items()} | numbers.run(self.count, 0)
        return {self.carried[k].key: [self.carried[k].start, *rows[:-1]] for k, rows in left.items()}


def evaluate_rounds(graph: Graph, values: dict[Variable, Sequence[Any]], count: int) -> None:
    """Add to what is known of variables what those of a graph are in each round.

    A loop that is written out in a round calls a function again and again: what calls before needed is not evaluated
    a second time, which took the square of their number.
    """
    equations = [equation for equation in graph.equations if not values.keys() >= set(equation.outputs)]
    results = [x for equation in equations for x in equation.outputs]
    inputs = [x for x in distinct_variables(chain.from_iterable(x.inputs for x in equations)) if x in values]
    step = Graph(inputs, equations, results)
    rows = [evaluate(step, [values[x][k] for x in inputs]) for k in range(count)] if equations else []
    values.update((x, [row[i] for row in rows]) for i, x in enumerate(results))


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
