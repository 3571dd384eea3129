"""The static style: expressions of placeholders first, values later.

An expression is a Tensor of one trace that never ends. It knows the equation that defines it and the expressions
that one needs, so placeholders made anywhere combine freely, and what nobody holds any more is released. The
equations are in order of creation, and that order is one in which each uses only what is defined before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, NoReturn

import numpy as np

from wengert.control.subgraphs import with_used_captures
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import as_dtype, require_number, shown
from wengert.core.diagnostics.source_positions import caller
from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, evaluate, literal
from wengert.core.memory.views import current
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.tensor import Tensor, Trace, make_tensor
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.passes.pipeline import simplify_graph
from wengert.primitives.conversion import copy
from wengert.transforms.recorded_call import Recording, ones_for

CREATED = count()


class Definition:
    """Hold how an expression is computed.

    Attributes:
        number: creation number.
        equation: the equation that binds it; None for what is given from outside.
        needs: the definitions of the equation's inputs.
        variable: what is given from outside: a placeholder, or the variable of `tensor`.
        tensor: a Tensor of another trace that an expression uses; None for a placeholder.
        mentions: further definitions whose placeholders may be fed, because the user wrote them.
    """

    __slots__ = ("equation", "mentions", "needs", "number", "tensor", "variable")

    def __init__(
        self,
        equation: Equation | None,
        needs: tuple[Definition, ...] = (),
        variable: Variable | None = None,
        tensor: Tensor | None = None,
        mentions: tuple[Definition, ...] = (),
    ) -> None:
        self.number = next(CREATED)
        self.equation = equation
        self.needs = needs
        self.variable = variable
        self.tensor = tensor
        self.mentions = mentions


class ExpressionTrace(Trace):
    """Define expressions in place of computing values.

    Its level lies above that of Tensors with `requires_grad`, which expressions may use, and below those of all
    transformations, which can therefore be applied to functions of expressions.
    """

    __slots__ = ()
    concrete: ClassVar[bool] = False
    staged: ClassVar[bool] = True

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Define the results of a primitive."""
        found = [self.reference(x) for x in operands]
        inputs = tuple(x for x, _ in found)
        avals = abstract(primitive, inputs, params)
        outputs = tuple(map(Variable.of, avals))
        equation = Equation(primitive.lasting(inputs, outputs, Counter()), inputs, dict(params), outputs, caller())
        definition = Definition(equation, tuple(d for _, d in found if d is not None))
        results = tuple(expression(variable, definition) for variable in outputs)
        return results[0] if primitive.outputs == 1 else results

    def reference(self, operand: Any) -> tuple[Any, Definition | None]:
        """Return an operand as an equation's input, and its definition if it is an expression."""
        if type(operand) is not Tensor:
            return literal(operand), None
        if operand._trace is self:
            return operand._value, operand._node
        operand._kept = True
        if operand._trace is None:
            return literal(operand._value), None
        variable = Variable.of(aval_of(operand))
        return variable, Definition(None, variable=variable, tensor=operand)

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Let a handle stand for the result of the assignment."""
        base = make_tensor(handle._value, handle._trace, handle._node)
        self.rebind(handle, self.process(primitive, (base, *operands), params))

    def below(self, tensor: Tensor) -> NoReturn:
        """Refuse: an expression has no elements."""
        given = f"the elements of {tensor._value!r} were asked for"
        action = "Use operators and wengert.numpy functions, or ask Executor(expression).run({placeholder: value})"
        raise GraphError("expression", given, "an expression of placeholders has none until an Executor runs", action)

    def owner(self, tensor: Tensor) -> Any:
        """Return nothing: there is no memory yet."""
        return None

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return another Tensor for the same expression, which is never overwritten."""
        return expression(tensor._value, tensor._node)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says."""
        return f"placeholder {tensor._value.name}" if tensor._node.equation is None else "expression"

    def state(self, tensor: Tensor) -> NoReturn:
        """Refuse: there are no elements to copy."""
        self.below(tensor)


EXPRESSIONS = ExpressionTrace(0)
EXPRESSIONS.level = 0.5


def expression(variable: Variable, definition: Definition) -> Tensor:
    """Return the Tensor that stands for a variable."""
    tensor = make_tensor(variable, EXPRESSIONS, definition)
    tensor._kept = True
    return tensor


def placeholder(name: str, shape: int | Sequence[int] = (), dtype: Any = float) -> Tensor:
    """Return an expression that stands for an array to be given when an `Executor` runs.

    Args:
        name: what it is called, in errors and printed graphs; it may be fed by this name.
        shape: its shape; a scalar by default.
        dtype: its dtype, float64 by default.

    Returns:
        A Tensor without elements. Operators, methods and the functions of `numpy` and `wengert.numpy` make further
        expressions of it.

    Raises:
        UsageError: the name is empty, or a length is negative.
        DtypeError: the dtype is not numeric.

    >>> x = placeholder("x")
    >>> Executor(x * x + 1.0).run({x: 3.0})
    np.float64(10.0)
    """
    if not isinstance(name, str) or not name:
        raise UsageError("placeholder", f"the name {name!r}", "a string is needed, not empty", "Name it")
    lengths = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in lengths):
        given = f"shape {shape!r:.40} of {name}"
        raise UsageError("placeholder", given, "lengths from 0 are needed", "Give a known shape")
    found = as_dtype("placeholder", dtype)
    if found.kind not in "biufc":
        raise DtypeError("placeholder", f"dtype {found} of {name}", "a numeric dtype is needed", "Convert what is fed")
    variable = Variable(tuple(map(int, lengths)), found, name)
    return expression(variable, Definition(None, variable=variable))


def require_expression(name: str, value: Any) -> Tensor:
    """Return a value as the expression it is; raise if it is none."""
    found = current(value) if type(value) is Tensor else value
    if type(found) is Tensor and found._trace is EXPRESSIONS:
        return found
    given = f"a {type(value).__name__} that is not an expression"
    raise UsageError(name, given, "expressions are needed", "Build it from wengert.graph.placeholder")


def as_expression(value: Any) -> Tensor:
    """Return a value as an expression; a constant becomes the copy of a literal."""
    found = current(value) if type(value) is Tensor else value
    if type(found) is Tensor and found._trace is EXPRESSIONS:
        return found
    result: Tensor = EXPRESSIONS.process(copy, (found,), {"order": "K"})
    return result


# From expressions to graphs


def reachable(
    roots: Iterable[Definition], *, stop: Iterable[Variable] = (), mentioned: bool = False
) -> list[Definition]:
    """Return definitions and all that they need, in order of creation.

    Definitions of variables in `stop`, which will be given, are not looked into; with `mentioned` mentions count, too.
    """
    ends = set(stop)
    found: dict[int, Definition] = {}
    waiting = list(roots)
    while waiting:
        definition = waiting.pop()
        if definition.number in found:
            continue
        found[definition.number] = definition
        if mentioned:
            waiting += definition.mentions
        if definition.equation is None or not ends.issuperset(definition.equation.outputs):
            waiting += definition.needs
    return [found[number] for number in sorted(found)]


def graph_of(outputs: Sequence[Tensor], given: Sequence[Variable] = ()) -> tuple[Graph, list[Definition]]:
    """Return the graph of expressions, and what its inputs after `given` are: placeholders and foreign Tensors.

    `given` are variables that become the first inputs, however they are defined.
    """
    definitions = reachable([x._node for x in outputs], stop=given)
    bound = set(given)
    outside = [d for d in definitions if d.equation is None and d.variable not in bound]
    equations = []
    seen: set[int] = set()
    for definition in definitions:
        equation = definition.equation
        if equation is not None and id(equation) not in seen and not bound.issuperset(equation.outputs):
            seen.add(id(equation))
            equations.append(equation)
    inputs = [*given, *(d.variable for d in outside if d.variable is not None)]
    return Graph(inputs, equations, [x._value for x in outputs]), outside


def gradients(output: Any, inputs: Any) -> Any:
    """Return the expressions of the gradient of an expression.

    Args:
        output: an expression, a real scalar.
        inputs: an expression, or containers of expressions: placeholders, or intermediate results of `output`.

    Returns:
        For each input an expression of its shape, in the same containers; of zeros where `output` does not depend
        on it. Being expressions, they can be differentiated again.

    Raises:
        UsageError: something given is not an expression.
        ShapeError: the output is not a scalar.
        DtypeError: the output is not a real float, or an input has a dtype without derivatives.

    >>> x = placeholder("x")
    >>> first = gradients(x**3, x)
    >>> Executor([first, gradients(first, x)]).run({x: 2.0})
    [np.float64(12.0), np.float64(12.0)]
    """
    target = require_expression("gradients", output)
    leaves, structure = flatten(inputs)
    chosen = [require_expression("gradients", leaf) for leaf in leaves]
    check_differentiable(target, chosen)
    variables = list(dict.fromkeys(x._value for x in chosen))
    graph, outside = graph_of([target], variables)
    graph = simplify_graph(graph)  # derivatives of derivatives would repeat what their outputs share
    further = [expression(d.variable, d) if d.tensor is None else d.tensor for d in outside if d.variable is not None]
    primals = [next(x for x in chosen if x._value is v) for v in variables]
    run = Recording("gradients", lambda *xs: evaluate(graph, (*xs, *further)), primals, {}, range(len(primals)), False)
    found = dict(zip(variables, run.cotangents([ones_for(x) for x in run.outputs], retain=False), strict=True))
    return unflatten(structure, [mention(as_expression(found[x._value]), target._node) for x in chosen])


def mention(found: Tensor, definition: Definition) -> Tensor:
    """Return an expression whose Executor accepts the placeholders of another, needed or not."""
    own = found._node
    return expression(found._value, Definition(own.equation, own.needs, own.variable, own.tensor, (own, definition)))


def check_differentiable(output: Tensor, inputs: Iterable[Tensor]) -> None:
    """Raise unless an expression is a real scalar and the inputs have derivatives."""
    if output.shape != ():
        given = f"an output of shape {output.shape}"
        raise ShapeError("gradients", given, "a scalar, of shape (), is needed", "Reduce it, for instance with .sum()")
    if output.dtype.kind != "f":
        raise DtypeError("gradients", f"an output of dtype {output.dtype}", "a real float is needed", "Convert it")
    for x in inputs:
        if not is_differentiable(x.dtype):
            given = f"the input {x._value!r}"
            raise DtypeError("gradients", given, "float or complex inputs are needed to differentiate", "Leave it out")


class Executor:
    """Evaluate expressions for given values of their placeholders.

    The graph is built once, of what the expressions need and nothing else; equal partial results are computed once.

    Args:
        outputs: an expression, or containers of them.

    Attributes:
        graph: the graph that `run` evaluates.

    Raises:
        UsageError: something given is not an expression, or two placeholders have the same name.

    >>> x, y = placeholder("x"), placeholder("y")
    >>> run = Executor({"sum": x + y, "product": x * y}).run
    >>> run({x: 2.0, "y": 3.0})
    {'sum': np.float64(5.0), 'product': np.float64(6.0)}
    """

    def __init__(self, outputs: Any) -> None:
        leaves, self.structure = flatten(outputs)
        if not leaves:
            given = "None" if outputs is None else "empty containers"
            raise UsageError("Executor", given, "expressions are needed", "Pass what is to be evaluated")
        roots = [require_expression("Executor", leaf) for leaf in leaves]
        graph, outside = graph_of(roots)
        self.graph, self.tensors = with_used_captures(simplify_graph(graph), [d.tensor for d in outside])
        known = reachable([x._node for x in roots], mentioned=True)
        fed_ones = [d.variable for d in known if d.variable is not None and d.tensor is None]
        self.placeholders = list(dict.fromkeys(fed_ones))
        self.names = {v.name: v for v in self.placeholders}
        if len(self.names) < len(self.placeholders):
            names = [v.name for v in self.placeholders]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError("Executor", f"two placeholders called {twice}", "different names are needed", "Rename one")

    def run(self, feeds: Mapping[Any, Any]) -> Any:
        """Evaluate the expressions.

        Args:
            feeds: for each placeholder that the expressions need, or for its name, an array of its shape. Arrays of
                other dtypes are converted, if the kind allows it: integers to floats, but not floats to integers.

        Returns:
            The values, in the containers of the expressions; as Tensors if Tensors were fed.

        Raises:
            UsageError: a placeholder is missing, given twice, or not one of these expressions.
            ShapeError: a value has not the placeholder's shape.
            DtypeError: a value cannot be converted to the placeholder's dtype.
        """
        if not isinstance(feeds, Mapping):
            given = f"{shown(feeds)} as feeds"
            raise DtypeError("run", given, "a dict of placeholders and values is needed", "Pass one")
        values: dict[Variable, Any] = {}
        for key, value in feeds.items():
            variable = self.variable_of(key)
            if variable in values:
                given = f"{variable.name} twice"
                raise UsageError("run", given, "one value is needed", "Feed it by itself or by its name")
            values[variable] = convert_feed(variable, value)
        pairs = list(zip(self.graph.inputs, self.tensors, strict=True))
        missing = [variable.name for variable, tensor in pairs if tensor is None and variable not in values]
        if missing:
            raise UsageError("run", f"no value for {', '.join(missing)}", "one for each is needed", "Feed it")
        args = [values[variable] if tensor is None else tensor for variable, tensor in pairs]
        return unflatten(self.structure, list(evaluate(self.graph, args)))

    def variable_of(self, key: Any) -> Variable:
        """Return the variable of a placeholder or name among the feeds."""
        found = self.names.get(key) if isinstance(key, str) else None
        if type(key) is Tensor and current(key)._trace is EXPRESSIONS:
            variable = current(key)._value
            found = variable if self.names.get(variable.name) is variable else None
            key = variable.name or "an intermediate expression"
        if found is None:
            given = f"a value for {key}, which is no placeholder of these expressions"
            needed = f"values for {', '.join(self.names) or 'nothing'} are needed"
            raise UsageError("run", given, needed, "Leave it out")
        return found


def convert_feed(variable: Variable, value: Any) -> Any:
    """Return a value for a placeholder in its dtype, checking its shape."""
    shape, dtype, _ = require_number("run", f"the value for {variable.name}", value)
    found = value if isinstance(value, Tensor | np.ndarray | np.generic) else np.asarray(value)[()]
    if shape != variable.shape:
        action = "Reshape it, or make a placeholder of that shape"
        raise ShapeError("run", f"shape {shape} for {variable.name}", f"shape {variable.shape} is needed", action)
    if dtype == variable.dtype:
        return found
    if not np.can_cast(dtype, variable.dtype, "same_kind"):
        given = f"dtype {dtype} for {variable.name}"
        raise DtypeError("run", given, f"dtype {variable.dtype} is needed", "Convert the value")
    return found.astype(variable.dtype)
