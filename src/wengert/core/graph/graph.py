"""The array graph: variables with avals, equations, and nothing else.

A graph is in single static assignment: each variable is bound once, by the inputs or by one equation, before it is
used. Whatever is not a variable is a literal: a Python number or a read-only ndarray. Sub-graphs stand among the
parameters of an equation. It is evaluated here, printed in `printing` and checked in `checking`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wengert.core.diagnostics.numpy_warnings import warn_at_users_line
from wengert.core.diagnostics.source_positions import speaks_for
from wengert.core.graph.equation import Equation, EquationList, Variable, lists_among
from wengert.core.graph.graph_executor import GraphSteps, last_uses
from wengert.core.graph.identity import Composite, digest, identity, identity_of_params, registered_name
from wengert.core.graph.whole_number_errors import raises_in_python
from wengert.core.memory.buffers import as_fixed
from wengert.core.values.aval import UNKNOWN, aval_of, aval_text, unite_scalars
from wengert.core.values.dispatch import apply, conform
from wengert.core.values.tensor import Tensor, staging_of
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.support.collector_pause import without_collector
from wengert.support.hints import hint_attributes

if TYPE_CHECKING:
    from wengert.pictures.picture import Picture

V = TypeVar("V")


@hint_attributes("save")
class Graph(EquationList, Composite):
    """Hold a function of arrays: inputs, equations in order, outputs.

    Attributes:
        inputs: the variables that calls bind.
        equations: in an order in which each uses only what is bound before it.
        outputs: variables and literals.
        settled: whether it has been through the graph passes, which would find nothing more to do.
        derived: what was made of the graph, by what it is and how it was made; see `derive`.

    >>> import numpy as np, wengert as wg
    >>> graph = wg.graph.trace(lambda x, y: np.sin(x) * y)(0.0, 1.0)
    >>> graph
    <graph of 2 inputs, 2 equations, 1 outputs>
    >>> graph(0.0, 1.0) == (0.0,), graph == wg.graph.trace(lambda a, b: np.sin(a) * b)(3.0, 4.0)
    (True, True)
    """

    __slots__ = ("_key", "_last_uses", "_steps", "derived", "settled")

    def __init__(self, inputs: Sequence[Variable], equations: Sequence[Equation], outputs: Sequence[Any]) -> None:
        for part in (inputs, equations, outputs):
            if not isinstance(part, tuple | list):
                raise malformed_error(
                    f"a {type(part).__name__} in the place of a sequence", "a tuple or list is needed"
                )
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self._key: Hashable = None
        self._last_uses: dict[int, list[Variable]] | None = None
        self._steps: GraphSteps | None = None
        self.settled = False
        self.derived: dict[Hashable, Any] = {}

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Evaluate the graph; see `evaluate`. NumPy's warnings name the lines of its equations.

        Constants among the results are copies, of which each call gives others.
        """
        results = warn_at_users_line(evaluate, self, args)
        return tuple([x.copy(order="K") if shows_constant(x, args) else x for x in results])

    def __str__(self) -> str:
        from wengert.core.graph.printing import render  # for those who look at graphs, as pictures are

        return render(self)

    def __repr__(self) -> str:
        return f"<graph of {len(self.inputs)} inputs, {len(self.equations)} equations, {len(self.outputs)} outputs>"

    def __reduce__(self) -> Any:
        """Refuse to be pickled before `wengert.graph` is there, which enters how it is done."""
        given, needed = "a graph, before wengert.graph was imported", "that module, which knows how, is needed"
        raise UsageError("pickle", given, needed, "Write import wengert.graph first")

    def to_svg(self) -> str:
        """Return a picture of the graph; see `wengert.graph.to_svg`."""
        return self.picture().to_svg()

    def to_html(self) -> str:
        """Return a page about the graph; see `wengert.graph.to_html`."""
        return self.picture().to_html()

    def picture(self, title: str = "graph") -> Picture:
        """Return the picture that both show."""
        from wengert.core.graph.diagrams import picture_of

        return picture_of(self, title)

    def _repr_html_(self) -> str | None:
        return self.picture()._repr_html_()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.structure() == other.structure()

    def __hash__(self) -> int:
        return hash(self.structure())

    def structure(self) -> Hashable:
        """Return what graphs share if and only if they compute the same in the same steps."""
        if self._key is None:
            numbers: dict[Variable, int] = {variable: i for i, variable in enumerate(self.inputs)}
            types: dict[tuple[Any, ...], Hashable] = {}  # most variables are of a few
            rows: list[Hashable] = [types_of(self.inputs)]
            for equation in self.equations:
                primitive, outputs = equation.primitive, equation.outputs
                name = registered_name(primitive) or identity(primitive)
                params = equation.params and identity_of_params(equation.params)
                key = tuple([(v.shape, v.dtype, v.weak) for v in outputs])
                made = types.get(key)
                if made is None:
                    made = types[key] = types_of(outputs)
                rows.append((name, name_operands(numbers, equation.inputs), params or (), made))
                for variable in outputs:
                    numbers[variable] = len(numbers)
            self._key = (*rows, name_operands(numbers, self.outputs))
        return self._key

    def digest(self) -> bytes | None:
        """Return 32 bytes that equal graphs share in all processes; None if it holds functions of the user.

        >>> import wengert as wg
        >>> one, other = (wg.graph.trace(lambda x: 2.0 * x)(1.0) for _ in range(2))
        >>> one.digest() == other.digest() != wg.graph.trace(lambda x: 2 * x)(1.0).digest()
        True
        """
        return digest(self.structure())


def derive(graph: Graph, key: Hashable, make: Callable[[], V]) -> V:
    """Return the value that `make` gives for a graph and a key, which is kept as long as the graph is.

    The same graphs are asked for the same at each depth that they are nested at, by each pass, and whenever what they
    are part of is traced again: the body of a kept integration, say.

    Args:
        graph: the graph.
        key: what is made, how, and what it depends on besides the graph.
        make: makes it.
    """
    found: V | None = graph.derived.get(key)
    if found is None:
        found = graph.derived[key] = make()
    return found


def name_operands(numbers: Mapping[Variable, int], values: Sequence[Any]) -> tuple[Hashable, ...]:
    """Return the numbers of variables, and what literals share with their equals."""
    return tuple([numbers[x] if type(x) is Variable else ("literal", identity(x)) for x in values])


def types_of(variables: Sequence[Variable]) -> tuple[Hashable, ...]:
    """Return what the types of variables are, as plain values."""
    return tuple([(v.shape, v.dtype.str, v.weak) for v in variables])


# Values


def subgraphs(params: Mapping[str, Any]) -> Iterator[tuple[str, Graph]]:
    """Return an iterator over the graphs among parameters, also those in tuples, each with its name."""
    return lists_among(params, Graph)


def must_run(equation: Equation) -> bool:
    """Tell whether an equation, or one in the graphs that it runs, is needed whether or not its results are."""
    primitive = equation.primitive
    if not primitive.structured:
        return primitive.must_run or raises_in_python(equation)
    return primitive.must_run or any(must_run(x) for _, graph in subgraphs(equation.params) for x in graph.equations)


def literal(value: Any) -> Any:
    """Return a constant of the graph: numbers as they are, arrays read-only and never the user's own memory."""
    return as_fixed(value) if isinstance(value, np.ndarray) else value


# Evaluation


def shows_constant(result: Any, args: Sequence[Any]) -> bool:
    """Tell whether a result is a constant of the graph, or a view of one: nobody may write to it, as to no argument."""
    if type(result) is not np.ndarray or result.flags.writeable:
        return False
    return not any(np.may_share_memory(result, x) for x in args if isinstance(x, np.ndarray))


def evaluate(graph: Graph, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of a graph's outputs for some inputs, equation by equation.

    Values are dropped after their last use. With Tensors among the inputs the operations are those of their traces,
    so evaluating a graph differentiates it like any function.

    Args:
        graph: the graph.
        args: one array, number or Tensor for each input, of its shape and dtype.

    Raises:
        ShapeError: the number of arguments or a shape differs.
        DtypeError: a dtype differs.
    """
    if len(args) != len(graph.inputs):
        needed = "one for each is needed"
        raise ShapeError("graph", f"{len(args)} arguments for {len(graph.inputs)} inputs", needed, "Pass as many")
    given: list[Any] = []
    traced = False
    for variable, value in zip(graph.inputs, args, strict=True):
        plain = type(value) is np.ndarray and value.dtype is variable.dtype and value.shape == variable.shape
        if not plain or variable.weak:
            value = fitting(variable, value)
            traced = traced or type(value) is Tensor
        given.append(value)
    if traced:
        return evaluate_traced(graph, given)
    if graph._steps is None:
        graph._steps = without_collector(GraphSteps, graph.inputs, graph.equations, graph.outputs)
    return graph._steps.run(given)


@speaks_for("equation")
def evaluate_traced(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs for inputs among which are Tensors, by whose traces the operations are carried out."""
    values: dict[Variable, Any] = dict(zip(graph.inputs, inputs, strict=True))
    last = graph._last_uses
    if last is None:
        last = graph._last_uses = last_uses(graph.equations, graph.outputs)
    for i, equation in enumerate(graph.equations):
        operands = [values[x] if type(x) is Variable else x for x in equation.inputs]
        staging = staging_of_literals(equation, operands, inputs)
        if staging is None:
            out = apply(equation.primitive, *operands, **equation.params)
        else:
            out = staging.process(equation.primitive, operands, equation.params)
        if len(equation.outputs) == 1 and not isinstance(out, tuple):
            values[equation.outputs[0]] = in_dtype(equation.outputs[0], out)
        else:
            values.update(zip(equation.outputs, map(in_dtype, equation.outputs, out), strict=True))
        for variable in last.get(i, ()):
            del values[variable]
    return tuple(values[x] if type(x) is Variable else x for x in graph.outputs)


def staging_of_literals(equation: Equation, operands: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """Return the innermost trace, to write down an equation of literals alone; None if it may be carried out at once.

    What checks something does so when the graph runs: a branch that holds it may never run. Rows of unknown number
    would be no array, which is all that a graph can hold.
    """
    if any(type(x) is Tensor for x in operands):
        return None
    leaves_rows = equation.primitive.structured and any(UNKNOWN in x.shape for x in equation.outputs)
    if not leaves_rows and not must_run(equation):
        return None
    found = [staging for staging in map(staging_of, inputs) if staging is not None]
    return max(found, key=lambda staging: staging.level, default=None)


def in_dtype(variable: Variable, value: Any) -> Any:
    """Return a result in the dtype that the graph has for it: a Python number gives way to arrays, its lanes do not."""
    return value.astype(variable.dtype) if type(value) is Tensor and value.dtype != variable.dtype else value


def fitting(variable: Variable, value: Any) -> Any:
    """Return an argument as the input that it is for; Python numbers fit dtypes that hold them.

    Raises:
        ShapeError: the shape is another one.
        DtypeError: the dtype is another one.
    """
    aval, wanted = aval_of(value), variable.aval
    if aval == wanted:
        return value
    if aval.shape != wanted.shape:
        given = f"shape {aval.shape} for input {variable!r}"
        raise ShapeError("graph", given, f"shape {wanted.shape} is needed", "Trace the function anew for other shapes")
    if aval.dtype == wanted.dtype or (aval.weak and unite_scalars(aval, wanted).dtype == wanted.dtype):
        return conform(value, wanted)
    given = f"{aval_text(value)} for input {variable!r}"
    action = "Convert the argument with .astype, or trace the function anew for other dtypes"
    raise DtypeError("graph", given, f"the dtype {wanted.dtype} is needed", action)


def malformed_error(given: str, needed: str) -> GraphError:
    """Return the error about a graph that is not well formed."""
    return GraphError("graph", given, needed, "Build graphs by tracing, or mend the pass that made this one")
